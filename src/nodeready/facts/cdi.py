"""Which devices the Container Device Interface offers, from `nvidia-ctk cdi list` or a specification file."""

from __future__ import annotations

import json
import re

from nodeready.evidence.probe import command, file
from nodeready.facts.text import is_cut, lines
from nodeready.reading import Known, Reading, Unknown

_SERVES = ("container.runtime",)

CDI_LIST = command("nvidia-ctk", "cdi", "list", family="container", serves=_SERVES)
# where `nvidia-ctk cdi generate` is told to write, and where its service does since 1.18
CDI_SPEC = file("/etc/cdi/nvidia.yaml", instead_of=CDI_LIST.name, serves=_SERVES)
CDI_SPEC_RUN = file("/var/run/cdi/nvidia.yaml", instead_of=CDI_LIST.name, serves=_SERVES)

_KIND_TEXT = r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}/[A-Za-z0-9][A-Za-z0-9_-]{0,60}"
_NAME_TEXT = r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,100}"
_KIND = re.compile(_KIND_TEXT)
_NAME = re.compile(_NAME_TEXT)
_DEVICE = re.compile(f"{_KIND_TEXT}={_NAME_TEXT}")
_FOUND = re.compile(r"\bFound ([0-9]{1,6}) CDI devices\b")
_COMMENT = re.compile(r"\s*(?:#.*)?")
_KEY = re.compile(r"([A-Za-z]{1,40}):(?:\s(.*))?")
_SCALAR = re.compile(r"""(?:"([^"\\]*)"|'([^']*)'|([^\s"'#&*!|>%@`{\[,\]}]+))\s*(?:\s#.*)?""")


def parse(data: bytes) -> Reading[tuple[str, ...]]:
    r"""The names that the toolkit lists, such as nvidia.com/gpu=0, in its order.

    Unknown where the output is empty, names nothing, stops in the middle of a line, or holds another
    number of names than it says it found. That sentence usually goes to standard error; without it a
    list that was cut between two lines can't be told from a whole one.

    >>> parse(b"nvidia.com/gpu=0\nnvidia.com/gpu=all\n").value
    ('nvidia.com/gpu=0', 'nvidia.com/gpu=all')
    >>> parse(b"INFO[0000] Found 2 CDI devices\nnvidia.com/gpu=0\n").reason
    'nvidia-ctk cdi list says it found 2 devices and names 1'
    """
    if not data.strip():
        return Unknown("nvidia-ctk cdi list printed nothing: no specification offers a device")
    if is_cut(data):
        return Unknown("the output of nvidia-ctk cdi list stops in the middle of a line: it was cut")
    text = lines(data)
    names = tuple(dict.fromkeys(line.strip() for line in text if _DEVICE.fullmatch(line.strip())))
    counts = {int(match[1]) for match in map(_FOUND.search, text) if match}
    if counts - {len(names)}:
        said = ", ".join(str(count) for count in sorted(counts))
        return Unknown(f"nvidia-ctk cdi list says it found {said} devices and names {len(names)}")
    if not names and not counts:
        return Unknown("nvidia-ctk cdi list names no device")
    return Known(names)


def parse_spec(data: bytes) -> Reading[tuple[str, ...]]:
    r"""The names that one specification file declares, JSON or YAML; the engine may not have read it.

    YAML is read in the plain form that the toolkit writes: a list of devices, each with its name, then
    another part of the document, without which it could have been cut. All else is unknown.

    >>> parse_spec(b'cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- name: "0"\ncontainerEdits:\n').value
    ('nvidia.com/gpu=0',)
    >>> parse_spec(b'{"kind": "nvidia.com/gpu", "devices": [{"name": "all"}]}').value
    ('nvidia.com/gpu=all',)
    """
    if not data.strip():
        return Unknown("the CDI specification is empty")
    found = _json_spec(data) if data.lstrip().startswith(b"{") else _yaml_spec(data)
    if isinstance(found, Unknown):
        return found
    kind, names = found
    if _KIND.fullmatch(kind) is None:
        return Unknown(f"{kind[:80]!r} is no kind of CDI device")
    strange = next((name for name in names if _NAME.fullmatch(name) is None), None)
    if strange is not None:
        return Unknown(f"{strange[:80]!r} is no name of a CDI device")
    if len(set(names)) < len(names):
        return Unknown("the CDI specification declares a device twice")
    return Known(tuple(f"{kind}={name}" for name in names))


def _json_spec(data: bytes) -> tuple[str, list[str]] | Unknown:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return Unknown("the CDI specification is no whole JSON document")
    kind, devices = found.get("kind"), found.get("devices")
    if not isinstance(kind, str) or not isinstance(devices, list):
        return Unknown("the CDI specification has no kind or no list of devices")
    names = [device.get("name") if isinstance(device, dict) else None for device in devices]
    texts = [name for name in names if isinstance(name, str)]
    if len(texts) < len(names):
        return Unknown("a device of the CDI specification has no name")
    return kind, texts


def _yaml_spec(data: bytes) -> tuple[str, list[str]] | Unknown:
    """Kind and names of a YAML document, by its top keys and the indentation of the devices."""
    parts = _yaml_parts(data)
    if isinstance(parts, Unknown):
        return parts
    if "kind" not in parts or "devices" not in parts:
        return Unknown("the CDI specification has no kind or no list of devices: it could be cut")
    if list(parts)[-1] == "devices":
        return Unknown("the CDI specification stops with its devices: it could be cut")
    beside, block = parts["devices"]
    kind, names = _scalar(parts["kind"][0]), _device_names(block)
    if not kind or _COMMENT.fullmatch(beside) is None or isinstance(names, Unknown):
        return Unknown("the devices of the CDI specification are not in the form that the toolkit writes")
    return kind, names


def _yaml_parts(data: bytes) -> dict[str, tuple[str, list[str]]] | Unknown:
    """The text beside each top key, and the lines below it, in the order of the document."""
    if is_cut(data):
        return Unknown("the CDI specification stops in the middle of a line: it was cut")
    parts: dict[str, tuple[str, list[str]]] = {}
    key = ""
    for number, line in enumerate(lines(data), 1):
        if not line.strip() or line.lstrip().startswith("#") or (line.rstrip() == "---" and not parts):
            continue
        top = _KEY.fullmatch(line.rstrip())
        if top and top[1] in parts:
            return Unknown(f"the CDI specification has two parts {top[1]}")
        if top:
            key = top[1]
            parts[key] = (top[2] or "", [])
        elif key and line[0] in " -" and "\t" not in line:
            parts[key][1].append(line.rstrip())
        else:
            return Unknown(f"line {number} of the CDI specification can't be read: {line[:80]!r}")
    return parts


def _device_names(block: list[str]) -> list[str] | Unknown:
    """The name of each item of a list: a key at the item's own indentation, deeper ones belong to others."""
    indent = len(block[0]) - len(block[0].lstrip()) if block else 0
    items: list[list[str]] = []
    for line in block:
        text = line[indent:]
        if line[:indent].strip():
            return Unknown("a line stands left of the list")
        if text.startswith("- "):
            items.append([])
        elif not items or not text.startswith("  "):
            return Unknown("a line belongs to no item")
        key, colon, value = text[2:].partition(":")
        if key == "name" and colon:
            items[-1].append(_scalar(value))
    if not all(len(names) == 1 and names[0] for names in items):
        return Unknown("an item has no name, or two")
    return [names[0] for names in items]


def _scalar(text: str) -> str:
    """The value of a plain or quoted scalar; '' where it is anything else."""
    match = _SCALAR.fullmatch(text.strip())
    return next((group for group in match.groups() if group), "") if match else ""
