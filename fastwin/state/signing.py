"""Signatures of stored state, by a key in the environment: what somebody else has written is refused before it is read.

State of user code is pickled, and reading a pickle runs what it says. So whoever can write to a checkpoint can run code
where it is read, unless its state is signed.
"""

import hmac
import os
from typing import Final

from fastwin.errors import StateError

__all__ = ["KEY_VARIABLE", "SIGNATURE_BYTES", "check_signature", "is_signing", "signature"]

KEY_VARIABLE: Final = "FASTWIN_STATE_KEY"
"""The variable that holds the key: at least 16 characters; or several, with commas between: the first one signs."""
SIGNATURE_BYTES: Final = 32
_LEAST_KEY: Final = 16


def is_signing() -> bool:
    """Whether there is a key."""
    return bool(_keys())


def signature(data: bytes) -> bytes:
    """Returns the signature of some bytes, HMAC-SHA256; empty where there is no key. Raises StateError for a short key.

    >>> signature(b"state")
    b''
    """
    keys = _keys()
    return hmac.digest(keys[0], data, "sha256") if keys else b""


def check_signature(data: bytes | memoryview, found: bytes) -> None:
    """Raises StateError unless ``found`` is the signature of these bytes by one of the keys.

    found: empty for bytes without one, which is right where there is no key.
    """
    keys = _keys()
    if not keys and not found:
        return
    if not keys:
        raise StateError(f"state: it is signed, and {KEY_VARIABLE} is not set: the key that signed it is needed")
    if not found:
        raise StateError(f"state: it is not signed, and {KEY_VARIABLE} is set: it was written without the key")
    if not any(hmac.compare_digest(hmac.digest(key, data, "sha256"), found) for key in keys):
        raise StateError(f"state: its signature does not fit: no key in {KEY_VARIABLE} has signed it")


def _keys() -> list[bytes]:
    named = os.environ.get(KEY_VARIABLE)
    if named is None:
        return []
    keys = [key.strip() for key in os.fsencode(named).split(b",")]
    shortest = min(map(len, keys))
    if shortest < _LEAST_KEY:
        raise StateError(f"{KEY_VARIABLE}: a key has at least {_LEAST_KEY} bytes, got one of {shortest}")
    return keys
