"""Runs a spec over a bounded input on several threads: each takes the elements of some of the keys."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from fastwin import batches
from fastwin.arrowbuffers import take_rows
from fastwin.bounded import run
from fastwin.core.hashing import group_rows
from fastwin.errors import SpecError
from fastwin.planner import Plan
from fastwin.planner import plan as make_plan
from fastwin.results import Result
from fastwin.spec import WindowSpec

__all__ = ["run_threads"]

# Below, starting threads and dividing the rows costs more than they save.
_FEW_ROWS = 100_000
# As many rows as a thread divides at a time: their columns stay in the cache.
_PIECE_ROWS = 1 << 18


def run_threads(spec: WindowSpec, data: Any, threads: int) -> Result:
    """Runs a spec over a bounded input; see ``WindowSpec.run``."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise SpecError(f"threads: must be an int of at least 1, got {threads!r}")
    if threads == 1:
        return run(spec, data)
    table = batches.as_table(data)
    plan = make_plan(spec, table.schema)
    # The general operator calls Python, one thread at a time; without keys there is nothing to divide by.
    if plan.operator == "general" or not spec.keys or table.num_rows < _FEW_ROWS:
        return run(spec, table)
    table = batches.conform(table, plan.input_schema)
    pieces = [rows for rows in table.to_batches(max_chunksize=_PIECE_ROWS) if rows.num_rows]
    _refuse_bad_rows(plan, pieces)

    def divide(rows: pa.RecordBatch) -> list[pa.RecordBatch]:
        return _by_thread(rows, spec, threads)

    with ThreadPoolExecutor(threads, thread_name_prefix="fastwin") as pool:
        divided = zip(*pool.map(divide, pieces), strict=True)
        results = list(pool.map(lambda parts: run(spec, pa.Table.from_batches(parts)), divided))
    return Result(
        pa.concat_tables([result.main for result in results]),
        pa.concat_tables([result.late for result in results]),
        pa.concat_tables([result.bad for result in results]),
    )


def _by_thread(rows: pa.RecordBatch, spec: WindowSpec, threads: int) -> list[pa.RecordBatch]:
    """Returns the rows divided by their keys, one part for each thread; the order within a part stays."""
    # Not the low bits: those find the keys' places in tables.
    order, bounds = group_rows(batches.key_hash(rows, spec.keys) >> np.uint64(33), threads)
    ordered = take_rows(rows, order)
    return [ordered.slice(begin, end - begin) for begin, end in pairwise(bounds.tolist())]


def _refuse_bad_rows(plan: Plan, pieces: list[pa.RecordBatch]) -> None:
    """Raises BadRowError for bad rows, if that is the policy, by their place in the whole input."""
    spec, before = plan.spec, 0
    if spec.bad_row_policy == "raise" and spec.time_column is not None:
        for rows in pieces:
            column, limits = rows.column(spec.time_column), plan.limits(batches.Limits())
            batches.check_rows(column, spec.time_column, spec.bad_row_policy, limits, before)
            before += rows.num_rows
