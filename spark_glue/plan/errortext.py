"""Which error a text of Spark's names: it has the traceback of Python in it, and much around that."""

import re

__all__ = ["error_in"]

_ERROR = re.compile(r"^(?:: )?(\S*(?:Error|Exception)\b.*)", re.MULTILINE)  # py4j puts the JVM's behind a colon
_TRACEBACK = "Traceback (most recent call last):"
_BEHIND = "JVM stacktrace:"


def error_in(text: str) -> str | None:
    """Returns the line that names an error: that of Python which stands behind the last traceback, if there is one.

    Else it is the last line that begins with the name of an error. What comes behind Spark's "JVM stacktrace:" is left
    out. None: there is no such line.
    """
    told = text.split(_BEHIND, 1)[0]
    _, mark, behind = told.rpartition(_TRACEBACK)
    raised = next((line for line in behind.splitlines() if line and not line[0].isspace()), None) if mark else None
    if raised is not None and not raised.startswith("py4j."):  # what the JVM said stands behind that
        return raised.strip()
    found = _ERROR.findall(told)
    return found[-1].strip() if found else None
