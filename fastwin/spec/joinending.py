"""JoinEnding: rows of two inputs with the same key, matched window by window."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from fastwin.columns.decoding import decoded_type
from fastwin.errors import SpecError
from fastwin.spec.describe import describe
from fastwin.spec.ending import types_text
from fastwin.spec.rowendings import RowsEnding, is_aligned

if TYPE_CHECKING:
    from fastwin.spec.builder import SpecBuilder

__all__ = ["HOWS", "LATE_SIDES", "SIDE", "SIDES", "TIME", "Columns", "How", "JoinEnding", "Side", "free_name"]

How = Literal["inner", "left", "right", "full"]
HOWS = ("inner", "left", "right", "full")
Side = Literal["left", "right"] | None
"""Which input of a join; None: there is one input alone."""
SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")
LATE_SIDES = ("late_left", "late_right")
"""Tags of the side outputs that late rows of each go to."""
SIDE, TIME = "__side", "__time"
"""Columns of the two inputs put together: 0 for the left one and 1 for the right one, and the event time in ms."""
Columns = tuple[tuple[str, str], ...]
"""Columns of one input, without keys: the name in the results, and in the input."""


def free_name(name: str, taken: Collection[str], suffix: str = "_right") -> str:
    """Returns a name that is not taken: with the suffix as often as that needs.

    >>> free_name("v", ["k", "v", "v_right"])
    'v_right_right'
    """
    while name in taken:
        name += suffix
    return name


@dataclass(frozen=True)
class JoinEnding(RowsEnding):
    """Pairs of rows, or what a function makes of the rows of both inputs.

    how: which rows without a partner are results as well. left, right: the columns of the inputs. lateness: allowed to
    each input, ms. function: is called with the key, the window, and the rows of each input; None: pairs are results.
    output: the columns of what it yields.
    """

    how: How
    left: Columns
    right: Columns
    lateness: tuple[int, int]
    function: Callable[..., Any] | None = None  # type: ignore[assignment]
    output: pa.Schema | None = None

    @property
    def method(self) -> str:  # type: ignore[override]
        return "window_join" if self.function is None else "co_group"

    @property
    def called(self) -> None:
        return None

    def filled(self, rows: pa.Schema | None, keys: tuple[str, ...]) -> pa.Schema | None:
        assert rows is not None
        if self.function is not None:
            return self.output
        fields = [rows.field(name) for name, _ in (*self.left, *self.right)]
        return pa.schema([pa.field(field.name, decoded_type(field.type)) for field in fields])

    def arguments(self, *, state_only: bool) -> str:
        parts = [repr(self.how), *(f"{side}={list(names)}" for side, names in self._named)]
        if self.function is not None:
            assert self.output is not None
            parts = [describe(self.function), *parts[1:], f"output={types_text(self.output)}"]
        if self.lateness_of_inputs and not state_only:
            parts.append(f"lateness_ms={self.lateness}")
        return ", ".join(parts)

    @property
    def lateness_of_inputs(self) -> tuple[int, ...]:
        return self.lateness if self.lateness[0] != self.lateness[1] else ()

    @property
    def _named(self) -> list[tuple[str, list[str]]]:
        return [("left", [name for name, _ in self.left]), ("right", [name for name, _ in self.right])]

    def check(self, spec: SpecBuilder) -> None:
        if not is_aligned(spec):
            raise SpecError(
                f"{self.method}: window must be tumbling, sliding, cumulative or of a calendar in event time, got "
                f"{spec.assigner}"
            )

    def operator(self, spec: SpecBuilder) -> tuple[str, str]:
        return "rows", "the rows of both inputs are kept as columns, and matched when a window fires"
