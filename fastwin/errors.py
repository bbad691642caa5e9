"""The one family of exceptions that fastwin raises on purpose, and what they say of a name that is not there."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "AggregateOverflowError",
    "BadRowError",
    "FastwinError",
    "NotInstalledError",
    "SketchError",
    "SourceError",
    "SpecError",
    "StateError",
    "StoreError",
    "StoreUnavailableError",
    "UserFunctionError",
    "did_you_mean",
]


class FastwinError(Exception):
    """Base class of every error that fastwin raises on purpose."""


class SpecError(FastwinError, ValueError):
    """A window specification, or an argument to one of its runners, makes no sense.

    The message names the argument, its value and the limit.
    """


class BadRowError(FastwinError, ValueError):
    """The input holds a row that no window can take, and the policy for bad rows is ``"raise"``; or a value that Python
    code asks for and Python has no object for, such as a time after the year 9999."""


class StateError(FastwinError, RuntimeError):
    """State cannot be used: a blob is corrupt, or belongs to another spec or version, or a
    stream was used again after it had failed."""


class StoreError(FastwinError, RuntimeError):
    """A pane store cannot be used: it is out of reach, full, locked by another writer, or holds something else."""


class StoreUnavailableError(StoreError):
    """A pane store cannot be used now, and may be later: it is out of reach, slow, loading, or was started again.
    Put the batch again."""


class AggregateOverflowError(FastwinError, OverflowError):
    """An exact sum, or a mean of decimals, does not fit into the type of its result, such as int64."""


class UserFunctionError(FastwinError, RuntimeError):
    """A user-written assigner, trigger, evictor or function raised, or answered what makes no sense.

    The message names the function, the key and the window; the original exception is its ``__cause__``.
    """


class NotInstalledError(FastwinError, ImportError):
    """A package of an extra, Java, or fastwin's compiled modules are missing, or of a version that does not fit.

    The message has the command that mends it; ``fastwin doctor`` looks for all of them.
    """


class SourceError(FastwinError, RuntimeError):
    """A file cannot be read as it should: it is gone, has changed, is damaged, came too late, or has other columns."""


class SketchError(FastwinError, ValueError):
    """Bytes that should be a HyperLogLog of Redis are none."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns an end for the sentence that there is no ``name``: those of the known names that are like it, or nothing.

    >>> did_you_mean("cuont", ["count", "sum"])
    '; did you mean count?'
    """
    by_lower: dict[str, list[str]] = {}
    for one in known:
        if not one.startswith("_"):
            by_lower.setdefault(one.lower(), []).append(one)
    close = get_close_matches(name.lower(), by_lower, n=2, cutoff=0.75)
    near = [one for lower in close for one in by_lower[lower]]
    return f"; did you mean {' or '.join(near)}?" if near else ""
