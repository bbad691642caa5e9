"""Ports of this machine."""

from fastwin.errors import SpecError

__all__ = ["check_port"]


def check_port(port: int) -> None:
    """Raises SpecError for a number that no port has."""
    if not 0 <= port <= 65_535:
        raise SpecError(f"--port: must be 0 to 65535, got {port}")
