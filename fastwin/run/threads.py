"""Runs a spec over a bounded input on several threads: each takes the elements of some of the keys."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastwin.columns.checking import Limits, bad_schema, good_rows
from fastwin.columns.decoding import take_rows
from fastwin.columns.keys import key_hash
from fastwin.columns.schemas import conform
from fastwin.columns.tables import as_table, has_small_chunks
from fastwin.columns.units import warn_of_unit
from fastwin.errors import BadRowError, SpecError
from fastwin.run import planner
from fastwin.run.bounded import Part, needed_columns, run, run_share, runs_whole
from fastwin.run.planner import Plan
from fastwin.run.reading import columns_mentioned
from fastwin.run.results import Result
from fastwin.run.windowtime import timed
from fastwin.spec.builder import SpecBuilder

__all__ = ["run_threads"]

# Below, starting threads and dividing the rows costs more than they save.
_FEW_ROWS = 100_000
# As many rows as a thread looks at together: what it takes of them stays in the cache.
_THREAD_ROWS = 1 << 18


def run_threads(spec: SpecBuilder, data: Any, threads: int) -> Result:
    """Runs a spec over a bounded input; see ``WindowSpec.run``."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise SpecError(f"threads: must be an int of at least 1, got {threads!r}")
    if threads == 1:
        return run(spec, data)
    table = as_table(data, columns_mentioned(spec))
    plan = planner.plan(spec, table.schema)
    # User code is called by one thread at a time; without keys there is nothing to divide by.
    if not plan.operator_type.may_fire_ahead or not spec.keys or table.num_rows < _FEW_ROWS:
        return run(spec, table, plan=plan)
    if runs_whole(plan, table):
        with ThreadPoolExecutor(threads, thread_name_prefix="fastwin") as pool:
            return run(spec, table, pool.map, plan)
    table = conform(table, plan.input_schema)
    if has_small_chunks(table):
        table = table.combine_chunks()
    chunks = [rows for rows in table.to_batches(max_chunksize=_THREAD_ROWS) if rows.num_rows]
    before = accumulate((rows.num_rows for rows in chunks), initial=0)
    with ThreadPoolExecutor(threads, thread_name_prefix="fastwin") as pool:
        try:
            checked = list(pool.map(lambda rows, at: _checked(plan, rows, at, threads), chunks, before))
        except BadRowError:
            # Raises it again, as one thread does: it counts the bad rows of all pieces.
            return run(spec, table, plan=plan)
        if plan.guesses_unit:
            assert spec.time_column is not None
            any(warn_of_unit(spec.time_column, piece.times) for piece in checked)  # up to the first that settles it
        diverted = [piece.diverted for piece in checked if piece.diverted is not None]
        pieces = [piece for piece in checked if len(piece.times)]
        firsts = [int(piece.times.min()) for piece in pieces]

        def run_one(number: int) -> list[pa.RecordBatch]:
            rows = sum(int(np.count_nonzero(piece.thread == number)) for piece in pieces)
            return run_share(plan, _share(pieces, number), rows, firsts)

        results = list(pool.map(run_one, range(threads)))
    return Result(
        timed(
            pa.Table.from_batches([rows for result in results for rows in result], plan.config.main_schema),
            plan.spec.window_time,
        ),
        plan.input_schema.empty_table(),
        pa.Table.from_batches(diverted, bad_schema(plan.input_schema)),
        source=plan.source,
    )


@dataclass(frozen=True)
class _Piece:
    """Good rows, their times (int64[n], ms) and the thread that each is for (uint[n]); and the bad ones to divert."""

    rows: pa.RecordBatch
    times: NDArray[np.int64]
    thread: NDArray
    diverted: pa.RecordBatch | None


def _checked(plan: Plan, rows: pa.RecordBatch, before: int, threads: int) -> _Piece:
    spec = plan.spec
    assert spec.time_column is not None
    limits = plan.limits(Limits())
    good = good_rows(rows, spec.time_column, spec.bad_row_policy, limits, before)
    # By the high bits: the low ones find the keys' places in tables.
    high = key_hash(good.rows, spec.keys) >> np.uint64(32)
    thread = ((high * np.uint64(threads)) >> np.uint64(32)).astype(np.min_scalar_type(threads - 1))
    return _Piece(good.rows.select(needed_columns(plan)), good.times, thread, good.diverted)


def _share(pieces: list[_Piece], number: int) -> Iterator[Part]:
    """Yields the rows that are for a thread, with their times; made when asked for, so that they are in the cache."""
    for piece in pieces:
        of_it = np.flatnonzero(piece.thread == number)
        yield take_rows(piece.rows, of_it), piece.times[of_it]
