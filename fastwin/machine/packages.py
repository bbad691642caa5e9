"""Installed packages, held against what fastwin's metadata asks for, by extra."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from operator import eq, ge, gt, le, lt, ne

from fastwin.errors import NotInstalledError

__all__ = ["Need", "check_extra", "command_for", "explained", "fits", "needs_of", "of_its_extras", "parse"]

_NEED = re.compile(r"(?P<name>[\w.-]+)\s*(?:\[(?P<extras>[^\]]*)\])?\s*\(?(?P<limits>[^;)]*)\)?\s*(?:;(?P<marker>.*))?")
_LIMIT = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*([\w.]+)\s*")
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w-]+)["']""")
_HOLDS = {">=": ge, "<=": le, "==": eq, "!=": ne, ">": gt, "<": lt}


@dataclass(frozen=True)
class Need:
    """One package that fastwin, or an extra of it, asks for. limits: such as ``">=4.0,<5"``, or nothing."""

    name: str
    limits: str
    extras: tuple[str, ...] = ()  # of that package
    extra: str | None = None  # of fastwin, that asks for it

    @property
    def installed(self) -> str | None:
        """The version that is installed; None if the package is not there."""
        try:
            return version(self.name)
        except PackageNotFoundError:
            return None

    @property
    def fault(self) -> str | None:
        """What is wrong, to stand behind "needs"; None if a version is installed that fits."""
        found = self.installed
        if found is None:
            return f"the package {self.name}"
        return None if fits(found, self.limits) else f"{self.name} {self.limits}, and {found} is installed"


def _numbers(text: str) -> tuple[int, ...]:
    """Returns a version's numbers, without what follows them and without zeros at the end.

    >>> _numbers("4.3.0.dev1"), _numbers("5")
    ((4, 3), (5,))
    """
    found = re.match(r"\d+(?:\.\d+)*", text)
    numbers = [int(part) for part in found[0].split(".")] if found else [0]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def fits(found: str, limits: str) -> bool:
    """Returns whether a version is within limits. Of a version, only the numbers count.

    >>> fits("4.3.1", ">=4.0,<5"), fits("5.0.0", ">=4.0,<5"), fits("1.2", "")
    (True, False, True)
    """
    known = (_LIMIT.fullmatch(one) for one in limits.split(",") if one.strip())
    return all(_HOLDS[limit[1]](_numbers(found), _numbers(limit[2])) for limit in known if limit)


def parse(text: str) -> Need | None:
    """Returns a requirement of package metadata as a Need; None for one that is none."""
    found = _NEED.fullmatch(text.strip())
    if found is None:
        return None
    extra = _EXTRA.search(found["marker"] or "")
    # Setuptools orders them by text: the lower limit reads better first.
    limits = sorted((one.strip() for one in found["limits"].split(",") if one.strip()), reverse=True)
    extras = tuple(one.strip() for one in (found["extras"] or "").split(",") if one.strip())
    return Need(found["name"], ",".join(limits), extras, extra[1] if extra else None)


def needs_of(extra: str | None = None, metadata: Iterable[str] | None = None) -> list[Need]:
    """Returns what fastwin itself (None), or one of its extras, asks for, also by way of other extras.

    metadata: requirements, as package metadata has them; those of the installed fastwin if not given. Without one
    installed, there are none.
    """
    if metadata is None:
        try:
            metadata = requires("fastwin") or []
        except PackageNotFoundError:
            metadata = []
    needs = [need for need in map(parse, metadata) if need is not None]
    found: list[Need] = []
    for need in needs:
        if need.extra == extra and need.name == "fastwin":
            found += [one for other in need.extras for one in needs_of(other, metadata)]
        elif need.extra == extra:
            found.append(need)
    return list({need.name: need for need in found}.values())


def of_its_extras(need: Need) -> list[Need]:
    """Returns what the extras of a package ask for, such as ``pyspark[connect]``; nothing where it is not installed."""
    try:
        metadata = (requires(need.name) or []) if need.extras else []
    except PackageNotFoundError:
        return []
    return [one for one in map(parse, metadata) if one is not None and one.extra in need.extras]


def command_for(extra: str) -> str:
    """Returns the command that installs an extra."""
    return f"pip install 'fastwin[{extra}]'"


def explained(who: str, extra: str, problem: Exception) -> Exception:
    """Returns the error for an import that failed: of packages of an extra that are missing or of a wrong version.

    If all of them are there and fit, the problem is another, and comes back itself. who: what cannot run.
    """
    faults = [need.fault for need in needs_of(extra) if need.fault]
    name = (getattr(problem, "name", None) or "").partition(".")[0]
    if not faults and isinstance(problem, ModuleNotFoundError) and name not in {"", "fastwin", "spark_glue"}:
        faults = [f"the package {name}"]
    if not faults:
        return problem
    return _not_installed(who, extra, faults)


def check_extra(who: str, extra: str) -> None:
    """Raises NotInstalledError unless all packages of an extra are there and fit. who: what needs them."""
    faults = [need.fault for need in needs_of(extra) if need.fault]
    if faults:
        raise _not_installed(who, extra, faults)


def _not_installed(who: str, extra: str, faults: list[str]) -> NotInstalledError:
    return NotInstalledError(f"{who}: needs {'; and '.join(faults)}: {command_for(extra)}")
