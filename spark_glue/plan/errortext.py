"""Which error a text of Spark's names: it has the traceback of Python in it, and much around that."""

import re

__all__ = ["error_in"]

_ERROR = re.compile(r"^(?:: )?(\S*(?:Error|Exception)\b.*)", re.MULTILINE)  # py4j puts the JVM's behind a colon
_BEHIND = "JVM stacktrace:"


def error_in(text: str) -> str | None:
    """Returns the last line of a text that begins with the name of an error, that of Python where there is one.

    What comes behind Spark's "JVM stacktrace:" is left out. None: no line does.
    """
    found = _ERROR.findall(text.split(_BEHIND, 1)[0])
    return found[-1].strip() if found else None
