"""Partial results: what a task far from the state makes of its elements, for the operator that has the state.

The feeder is an operator without a watermark: nothing is late to it, and nothing fires. What it holds at the end, rows
of accumulators by (key, slice) or (key, session) with the number of elements in each, goes to the operator proper,
whose ``merge()`` takes it as one batch of elements that have no order among each other.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.aggregates import Count
from fastwin.core.sessions import HEAD_CELLS
from fastwin.operators.aligned import AlignedOperator
from fastwin.operators.base import Batch, Config, ResultColumn, key_groups, save_rows
from fastwin.operators.session import SessionOperator
from fastwin.operators.slicing import Slicing
from fastwin.windows import MIN_TIMESTAMP

__all__ = ["AlignedFeeder", "Partial", "SessionFeeder", "can_count"]

_MOST_MEMBERS = 63


def can_count(config: Config) -> bool:
    """Whether there is room for one more aggregate, which counts the elements."""
    return len(config.results) < _MOST_MEMBERS


def _counting(config: Config) -> Config:
    """Returns the configuration with a count of elements behind the other aggregates."""
    return replace(config, results=(*config.results, ResultColumn("", Count(), (), ())))


@dataclass(frozen=True)
class Partial:
    """The rows of one part of the keys.

    part: its number. elements: how many have gone into the rows. chunk: for merge().
    """

    part: int
    elements: int
    chunk: bytes


class _Feeding:
    """What both feeders share; the other half is an operator with a counting configuration."""

    def __init__(self, config: Config) -> None:
        self._plain = config

    def _divide(
        self, slots: NDArray[np.int32], cells: dict[str, int], first_cell: int, groups: int, parts: int
    ) -> list[Partial]:
        """Returns the rows divided by their keys: key group ``i`` of ``groups`` is in part ``i % parts``."""
        keys, rows, codec = self._keys, self._rows, self._plain.codec  # type: ignore[attr-defined]
        ids = keys.ids()
        part_of = np.zeros(keys.top, dtype=np.uint16)
        part_of[ids] = key_groups(keys, ids, groups) % parts
        part = part_of[rows.keys(slots)]
        order = np.argsort(part, kind="stable")  # a radix sort for 16 bits
        ends = np.cumsum(np.bincount(part, minlength=parts)).tolist()
        found = []
        for number, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            if end > begin:
                chosen = slots[order[begin:end]]
                tables = save_rows(codec, keys, rows, chosen, cells, first_cell)
                counts = rows.cells(chosen, rows.stride // 8 - 1)
                chunk = self._plain.encode_state("delta", MIN_TIMESTAMP, _counted(tables))
                found.append(Partial(number, int(counts.sum()), chunk))
        return found


def _counted(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    rows = tables["rows"]
    return {**tables, "rows": rows.rename_columns([*rows.column_names[:-1], "elements"])}


class AlignedFeeder(_Feeding, AlignedOperator):
    """Makes partial panes. No window may leave a gap to the next one: whether an element in it is late is not known."""

    def __init__(self, config: Config, slicing: Slicing) -> None:
        _Feeding.__init__(self, config)
        AlignedOperator.__init__(self, _counting(config), slicing)

    @property
    def _rows(self):
        return self._panes.rows

    def add(self, batch: Batch) -> None:
        """Takes elements."""
        self.process(batch)

    def partials(self, groups: int, parts: int) -> list[Partial]:
        """Returns all rows, divided by their keys: key group ``i`` of ``groups`` is in part ``i % parts``."""
        return self._divide(self._panes.rows.slots(), {"start": 1}, 3, groups, parts)


class SessionFeeder(_Feeding, SessionOperator):
    """Makes partial sessions."""

    def __init__(self, config: Config, gap_ms: int) -> None:
        _Feeding.__init__(self, config)
        SessionOperator.__init__(self, _counting(config), gap_ms)

    @property
    def _rows(self):
        return self._sessions.rows

    def _arm(self, slots: NDArray[np.int32]) -> None:
        """Nothing fires here."""

    def add(self, batch: Batch) -> None:
        """Takes elements."""
        self.process(batch)

    def partials(self, groups: int, parts: int) -> list[Partial]:
        """Returns all rows, divided by their keys: key group ``i`` of ``groups`` is in part ``i % parts``."""
        return self._divide(self._sessions.rows.slots(), {"start": 1, "end": 3}, HEAD_CELLS, groups, parts)
