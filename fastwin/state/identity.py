"""StateSpec: what state means, part by part; kept beside the state, so that a restore can tell what has changed."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fastwin.callers import callers_level
from fastwin.errors import SpecError, StateError
from fastwin.spec.codes import changed_codes, without_codes, without_functions
from fastwin.times import format_ms

__all__ = [
    "ADDED_AGGREGATES",
    "CHANGED_FUNCTIONS",
    "REMOVED_AGGREGATES",
    "WIDER_TYPES",
    "Migrate",
    "StateAggregate",
    "StateSpec",
    "allows_wider_types",
    "check_migrate",
    "types_in",
]

ADDED_AGGREGATES: Final = "added aggregates"
"""What ``migrate=`` may allow: aggregates that the state does not have yet."""
REMOVED_AGGREGATES: Final = "removed aggregates"
"""What ``migrate=`` may allow: aggregates that only the state has; they are dropped from it."""
CHANGED_FUNCTIONS: Final = "changed functions"
"""What ``migrate=`` may allow: other code, or another name, of functions that are told by their code."""
WIDER_TYPES: Final = "wider types"
"""What ``migrate=`` may allow: keys and aggregated columns of a wider type that holds the same numbers."""
_WORDS: Final = frozenset({ADDED_AGGREGATES, REMOVED_AGGREGATES, CHANGED_FUNCTIONS, WIDER_TYPES})
_RENAMED: Final = re.compile(r"renamed (.+?) to (.+)")


Migrate = str | Collection[str] | None
"""What ``migrate=`` takes: one of these, or ``"renamed total to amount"``, or several. ``_`` may stand for a space, but
not in the last one."""


def check_migrate(migrate: Migrate) -> None:
    """Raises SpecError unless ``migrate`` is None, or names changes that may be allowed."""
    try:
        known = _allowed(migrate) <= _WORDS
    except (AttributeError, TypeError):
        known = False
    if not known:
        names = ", ".join(map(repr, sorted(_WORDS)))
        raise SpecError(f"migrate: must be None, {names} or 'renamed OLD to NEW', or a set of these, got {migrate!r}")


def allows_wider_types(migrate: Migrate) -> bool:
    """Whether types may have changed, which a fingerprint does not tell."""
    return WIDER_TYPES in _allowed(migrate)


def _names(migrate: Migrate) -> Collection[str]:
    return [migrate] if isinstance(migrate, str) else migrate or ()


def _allowed(migrate: Migrate) -> frozenset[str]:
    return frozenset(name.replace("_", " ") for name in _names(migrate) if not _RENAMED.fullmatch(name))


@dataclass(frozen=True)
class StateAggregate:
    """A built-in aggregate of a spec: its name, itself in words, the types of its columns, its cells in a row."""

    name: str
    text: str
    types: str
    cells: int

    def is_like(self, other: StateAggregate, migrate: Migrate) -> bool:
        """Whether state of one is state of the other: options that say only what a window fires may differ."""
        same = _is_same(_in_cells(self.text), _in_cells(other.text), migrate)
        return same and _are_types(self.types, other.types, migrate)

    def reads(self, other: StateAggregate) -> bool:
        """Whether it has no cells, and finds its values in those of another one of its spec."""
        mine, others = _shared(self), _shared(other)
        return self.cells == 0 and other.cells > 0 and mine is not None and mine == others


@dataclass(frozen=True)
class StateSpec:
    """The parts of a spec, and of its input, that its state depends on.

    operator: which one keeps the state. parts: what the spec's methods were given, in words, by the method's name;
    without allowed lateness and built-in aggregates, which are the next two. keys: types of the key columns. rows:
    names and types of the columns of elements that windows may hold. of_inputs: the allowed lateness of each input of a
    join, ms, where these differ; lateness_ms is the longer one then.
    """

    operator: str
    parts: tuple[tuple[str, str], ...]
    lateness_ms: int
    aggregates: tuple[StateAggregate, ...]
    keys: str
    rows: str
    of_inputs: tuple[int, ...] = ()

    def to_json(self) -> list[Any]:
        """Returns the same as plain values."""
        aggregates = [[one.name, one.text, one.types, one.cells] for one in self.aggregates]
        parts = [list(part) for part in self.parts]
        more = [list(self.of_inputs)] if self.of_inputs else []
        return [self.operator, parts, self.lateness_ms, aggregates, self.keys, self.rows, *more]

    @classmethod
    def from_json(cls, values: Any) -> StateSpec:
        """Returns what ``to_json`` was called on; raises StateError for what does not come from there."""
        try:
            operator, parts, lateness_ms, aggregates, keys, rows, *more = values
            return cls(
                operator,
                tuple((name, text) for name, text in parts),
                lateness_ms,
                tuple(StateAggregate(*one) for one in aggregates),
                keys,
                rows,
                *map(tuple, more),
            )
        except (TypeError, ValueError) as problem:
            raise StateError(f"state: the spec that it was written by cannot be read: {problem}") from problem

    def holder(self, one: StateAggregate) -> StateAggregate:
        """Returns in whose cells an aggregate of this spec finds its values: its own ones, or those of one that it
        shares them with."""
        return next((other for other in self.aggregates if one.reads(other)), one)

    def renamed(self, migrate: Migrate) -> StateSpec:
        """Returns the same with aggregates named as ``migrate`` says, over several renames too."""
        names = {told[1]: told[2] for name in _names(migrate) if (told := _RENAMED.fullmatch(name))}
        own = {one.name for one in self.aggregates}
        return replace(
            self, aggregates=tuple(replace(one, name=_renamed(one.name, names, own)) for one in self.aggregates)
        )

    def check_follows(self, old: StateSpec, migrate: Migrate) -> None:
        """Raises StateError, saying what differs, unless this spec can go on with the state of ``old``.

        It can if it is the same, has a longer allowed lateness, another option of an aggregate that its cells do not
        depend on (what is done on overflow, ``ddof``, what a sketch gives out), or what ``migrate`` allows.
        """
        first, old = old, old.renamed(migrate)
        wrong = self._changed_parts(old, migrate)
        wrong += self._shorter_lateness(old)
        wrong += _of_one_name(first, old)
        before = {one.name: one for one in old.aggregates}
        now = {one.name: one for one in self.aggregates}
        for name in before.keys() | now.keys():
            if name not in now:
                if REMOVED_AGGREGATES not in _allowed(migrate) or not now:
                    hint = _HOW_TO_REMOVE if now else "; without any built-in aggregate it cannot go on"
                    wrong.append(f"aggregate {name}={before[name].text} is missing{hint}")
            elif name in before and not before[name].is_like(now[name], migrate):
                hint = _HOW_TO_WIDEN if before[name].is_like(now[name], WIDER_TYPES) else ""
                wrong.append(f"aggregate {name} was {_of(before[name])}, is {_of(now[name])}{hint}")
            elif name in before and old.holder(before[name]).cells != self.holder(now[name]).cells:
                wrong.append(
                    f"aggregate {name}={now[name].text} shares its values with other aggregates than before; the same "
                    "ones in the order of before go on"
                )
            elif name not in before and not before:
                wrong.append(f"aggregate {name}={now[name].text} is new, and there was no built-in one before")
            elif name not in before and ADDED_AGGREGATES not in _allowed(migrate):
                wrong.append(
                    f"aggregate {name}={now[name].text} is new: in windows that are open it would cover only what "
                    f"comes from now on; migrate={ADDED_AGGREGATES!r} allows that"
                )
        if not _are_types(old.keys, self.keys, migrate):
            hint = _HOW_TO_WIDEN if _are_types(old.keys, self.keys, WIDER_TYPES) else ""
            wrong.append(f"the keys were of {old.keys}, are of {self.keys}{hint}")
        if old.rows != self.rows:
            wrong.append(f"windows held rows of {old.rows or 'no columns'}, now of {self.rows or 'no columns'}")
        if not wrong and old.operator != self.operator:
            wrong.append(f"it was kept by the {old.operator} operator, this spec runs on the {self.operator} one")
        if wrong:
            raise StateError(f"state: written by another spec, or for other columns: {'; '.join(sorted(wrong))}")

    def other_types(self, old: StateSpec) -> list[str]:
        """Returns in words what is of other types in ``old``, the same spec otherwise; those of ``old`` come first."""
        before = {one.name: one.types for one in old.aggregates}
        told = [("the keys", old.keys, self.keys), ("rows that windows hold", old.rows, self.rows)]
        told += [
            (f"aggregate {one.name}={one.text}", before.get(one.name, one.types), one.types) for one in self.aggregates
        ]
        return [f"{what} of {was} and {now}" for what, was, now in told if was != now]

    def _shorter_lateness(self, old: StateSpec) -> list[str]:
        whose = [" of the left input", " of the right input"] if old.of_inputs or self.of_inputs else [""]
        before, now = (spec.of_inputs or [spec.lateness_ms] * len(whose) for spec in (old, self))
        return [
            f"allowed_lateness{name} was {format_ms(was)}, is {format_ms(now_is)}; only a longer one can go on"
            for name, was, now_is in zip(whose, before, now, strict=True)
            if now_is < was
        ]

    def _changed_parts(self, old: StateSpec, migrate: Migrate) -> list[str]:
        before, now = dict(old.parts), dict(self.parts)
        changed = []
        for name in before.keys() | now.keys():
            if name in before and name in now and _is_same(before[name], now[name], migrate):
                continue
            functions = changed_codes(before[name], now[name]) if name in before and name in now else []
            if functions and without_codes(before[name]) == without_codes(now[name]):
                changed.append(f"{name} has other code in {', '.join(functions)}; {_HOW_TO_GO_ON}")
                continue
            was = f"was {before[name] or 'given'}" if name in before else "was not given"
            told = f"is {now[name] or 'given'}" if name in now else "is not given now"
            hint = _HOW_TO_NAME if was.count("__main__.") != told.count("__main__.") else ""
            changed.append(f"{name} {was}, {told}{hint}")
        return changed


def _renamed(name: str, names: Mapping[str, str], own: Collection[str]) -> str:
    """Follows the renames of an aggregate, up to a name that another one of its spec had: that one moves on, too."""
    for _ in names:
        if name not in names:
            break
        name = names[name]
        if name in own:
            break
    return name


def _of_one_name(before: StateSpec, now: StateSpec) -> list[str]:
    """Tells of the aggregates to which renames give one name. now: the spec with its aggregates renamed."""
    names: dict[str, list[str]] = {}
    for one, renamed in zip(before.aggregates, now.aggregates, strict=True):
        names.setdefault(renamed.name, []).append(one.name)
    return [
        f"migrate= makes one aggregate, {name}, of {' and '.join(ones)}"
        for name, ones in names.items()
        if len(ones) > 1
    ]


_HOW_TO_GO_ON = (
    f"if it means the same, migrate={CHANGED_FUNCTIONS!r} goes on, and fastwin.named('a name', function) tells it by "
    "that name from then on"
)


_HOW_TO_NAME = (
    "; a class of the program that is run is known as __main__'s: define it in a module and import it, then it has the "
    "same name everywhere"
)
_HOW_TO_REMOVE = f"; migrate={REMOVED_AGGREGATES!r} drops it, 'renamed OLD to NEW' gives it another name"
_HOW_TO_WIDEN = f", which migrate={WIDER_TYPES!r} allows"
_INTEGERS = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "int64")
_FLOATS = ("float", "double")


def _are_types(before: str, now: str, migrate: Migrate) -> bool:
    """Whether state of columns of some types is state of others: the same, or where that is allowed wider ones."""
    if before == now:
        return True
    ones, others = types_in(before), types_in(now)
    if WIDER_TYPES not in _allowed(migrate) or len(ones) != len(others):
        return False
    return all(one == other or _is_wider(one, other) for one, other in zip(ones, others, strict=True))


def types_in(text: str) -> list[str]:
    """Returns the types that a text names one after the other.

    >>> types_in("int32, timestamp[us, tz=UTC], decimal128(12, 2)")
    ['int32', 'timestamp[us, tz=UTC]', 'decimal128(12, 2)']
    """
    return re.split(r", (?![^\[(]*[\])])", text) if text else []


def _is_wider(before: str, now: str) -> bool:
    return any(
        before in kinds and now in kinds and kinds.index(before) < kinds.index(now)
        for kinds in (_INTEGERS, _UNSIGNED, _FLOATS)
    )


def _is_same(before: str, now: str, migrate: Migrate) -> bool:
    """Whether two texts of a part mean the same state."""
    if before == now:
        return True
    if CHANGED_FUNCTIONS in _allowed(migrate) and without_functions(before) == without_functions(now):
        return True
    if before != without_codes(now):
        return False
    # Once, by state that was written before there were codes.
    warnings.warn(
        f"state: it does not tell the code of the functions in {now}; it is taken to be the same",
        stacklevel=callers_level(),
    )
    return True


# Aggregates that find their values in the same cells where both are of the same column and condition: what they have
# in common. A sum of distinct decimals keeps them as no other one does.
_SHARED = [
    (kind, re.compile(pattern, re.DOTALL))
    for kind, pattern in (
        ("quantile", r"(?:Quantile|Median)(\(.*), q=[^,]+(, relative_error=[^,]+\))"),
        ("distinct", r"CountDistinct(\(.*)()\)"),
        ("distinct", r"Sum(\(.*), distinct=True(), on_overflow='\w+'\)"),
        ("counts", r"TopK(\(.*), k=\d+()\)"),
        ("counts", r"Mode(\(.*)()\)"),
    )
]


def _shared(aggregate: StateAggregate) -> tuple[str, ...] | None:
    """Returns what is the same for aggregates that share their cells, in the order of cells; None for all others."""
    if aggregate.text.startswith("Sum(") and aggregate.types.startswith("decimal"):
        return None
    for kind, pattern in _SHARED:
        found = pattern.fullmatch(aggregate.text)
        if found is not None:
            return kind, aggregate.types, *found.groups()
    return None


# Options of aggregates that their cells do not depend on: (the text before one, the text behind it) are kept.
_TEXT = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_AT_FIRING = [
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"(Sum\(.*), on_overflow='\w+'(\))",
        r"((?:Variance|StdDev|Covar)\(.*), ddof=\d+(\))",
        r"(HyperLogLog\(.*), output='\w+'(\))",
        r"(Quantile\(.*), q=[^,]+(, relative_error=[^,]+\))",
        r"(TopK\(.*), k=\d+(\))",
        rf"(StringAgg\(.*), separator={_TEXT}(\))",
    )
]


def _in_cells(text: str) -> str:
    """Returns the text of an aggregate without what its cells do not depend on."""
    found = next((found for pattern in _AT_FIRING if (found := pattern.fullmatch(text))), None)
    return text if found is None else found[1] + found[2]


def _of(aggregate: StateAggregate) -> str:
    return f"{aggregate.text} of {aggregate.types}"
