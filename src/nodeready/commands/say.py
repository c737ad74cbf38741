"""What a command says goes to standard output as long as somebody reads it; its exit status stays its own."""

from __future__ import annotations

import os
import sys


def say(line: str) -> None:
    """Print one line; once the reader has gone (`| head`), quietly no more."""
    try:
        print(line)
    except BrokenPipeError:
        fall_silent()


def flush() -> None:
    """Hand over what is buffered, where the reader is still there."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        fall_silent()


def fall_silent() -> None:
    """Point standard output at nothing, so that neither later lines nor the interpreter's last flush fail."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, sys.stdout.fileno())
    finally:
        os.close(nothing)
