import importlib.util
import pathlib

import pytest


def _load():
    spec = importlib.util.spec_from_file_location("render_sample", pathlib.Path(__file__).with_name("sample.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def sample():
    """The module that builds results documents."""
    return _load()
