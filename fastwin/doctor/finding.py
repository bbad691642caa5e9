"""What the doctor says of one thing."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "Status"]

Status = Literal["ok", "missing", "wrong"]
"""``missing``: not there, and nothing needs it unless the user does. ``wrong``: there, but it cannot work."""


@dataclass(frozen=True)
class Finding:
    """One thing: what it is called, how it stands, what was found, what it is for, and what mends it.

    extra: the extra of fastwin that it belongs to, if to one.
    """

    name: str
    status: Status
    found: str
    purpose: str
    mend: str | None = None
    extra: str | None = None
