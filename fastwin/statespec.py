"""StateSpec: what state means, part by part; kept beside the state, so that a restore can tell what has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from fastwin.duration import format_ms
from fastwin.errors import SpecError, StateError

__all__ = ["ADDED_AGGREGATES", "StateAggregate", "StateSpec", "check_migrate"]

ADDED_AGGREGATES: Final = "added aggregates"
"""What ``migrate=`` may allow."""


def check_migrate(migrate: str | None) -> None:
    """Raises SpecError unless ``migrate`` is None or ADDED_AGGREGATES."""
    if migrate not in (None, ADDED_AGGREGATES):
        raise SpecError(f"migrate: must be None or {ADDED_AGGREGATES!r}, got {migrate!r}")


@dataclass(frozen=True)
class StateAggregate:
    """A built-in aggregate of a spec: its name, itself in words, the types of its columns, its cells in a row."""

    name: str
    text: str
    types: str
    cells: int


@dataclass(frozen=True)
class StateSpec:
    """The parts of a spec, and of its input, that its state depends on.

    operator: which one keeps the state. parts: what the spec's methods were given, in words, by the method's name;
    without allowed lateness and built-in aggregates, which are the next two. keys: types of the key columns. rows:
    names and types of the columns of elements that windows may hold.
    """

    operator: str
    parts: tuple[tuple[str, str], ...]
    lateness_ms: int
    aggregates: tuple[StateAggregate, ...]
    keys: str
    rows: str

    def to_json(self) -> list[Any]:
        """Returns the same as plain values."""
        aggregates = [[one.name, one.text, one.types, one.cells] for one in self.aggregates]
        return [self.operator, [list(part) for part in self.parts], self.lateness_ms, aggregates, self.keys, self.rows]

    @classmethod
    def from_json(cls, values: Any) -> StateSpec:
        """Returns what ``to_json`` was called on; raises StateError for what does not come from there."""
        try:
            operator, parts, lateness_ms, aggregates, keys, rows = values
            return cls(
                operator,
                tuple((name, text) for name, text in parts),
                lateness_ms,
                tuple(StateAggregate(*one) for one in aggregates),
                keys,
                rows,
            )
        except (TypeError, ValueError) as problem:
            raise StateError(f"state: the spec that it was written by cannot be read: {problem}") from problem

    def check_follows(self, old: StateSpec, migrate: str | None) -> None:
        """Raises StateError, saying what differs, unless this spec can go on with the state of ``old``.

        It can if it is the same, has a longer allowed lateness, or, where ``migrate`` is ADDED_AGGREGATES, more
        built-in aggregates.
        """
        wrong = self._changed_parts(old)
        if self.lateness_ms < old.lateness_ms:
            was, now_is = format_ms(old.lateness_ms), format_ms(self.lateness_ms)
            wrong.append(f"allowed_lateness was {was}, is {now_is}; only a longer one can go on")
        before = {one.name: one for one in old.aggregates}
        now = {one.name: one for one in self.aggregates}
        for name in before.keys() | now.keys():
            if name not in now:
                wrong.append(f"aggregate {name}={before[name].text} is missing")
            elif name in before and before[name] != now[name]:
                wrong.append(f"aggregate {name} was {_of(before[name])}, is {_of(now[name])}")
            elif name not in before and not before:
                wrong.append(f"aggregate {name}={now[name].text} is new, and there was no built-in one before")
            elif name not in before and migrate != ADDED_AGGREGATES:
                wrong.append(
                    f"aggregate {name}={now[name].text} is new: in windows that are open it would cover only what "
                    f"comes from now on; migrate={ADDED_AGGREGATES!r} allows that"
                )
        if old.keys != self.keys:
            wrong.append(f"the keys were of {old.keys}, are of {self.keys}")
        if old.rows != self.rows:
            wrong.append(f"windows held rows of {old.rows or 'no columns'}, now of {self.rows or 'no columns'}")
        if not wrong and old.operator != self.operator:
            wrong.append(f"it was kept by the {old.operator} operator, this spec runs on the {self.operator} one")
        if wrong:
            raise StateError(f"state: written by another spec, or for other columns: {'; '.join(sorted(wrong))}")

    def _changed_parts(self, old: StateSpec) -> list[str]:
        before, now = dict(old.parts), dict(self.parts)
        changed = []
        for name in before.keys() | now.keys():
            if before.get(name) != now.get(name):
                was = f"was {before[name] or 'given'}" if name in before else "was not given"
                changed.append(f"{name} {was}, {f'is {now[name]}' if name in now else 'is not given now'}")
        return changed


def _of(aggregate: StateAggregate) -> str:
    return f"{aggregate.text} of {aggregate.types}"
