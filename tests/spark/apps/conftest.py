"""What tests of commands share."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_module_of_another_command() -> Iterator[None]:
    """Commands run in this process, and each takes a module ``specs`` of its own folder."""
    sys.modules.pop("specs", None)
    yield
    sys.modules.pop("specs", None)
