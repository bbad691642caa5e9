"""What feeders have made of elements, see ``operators.partials``, as rows that an operator can merge with its own."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.core.accumulators.exchange import renumber_rows
from fastwin.core.keys.keytable import KeyTable
from fastwin.core.rows.rowstore import RowStore
from fastwin.operators.config import Config
from fastwin.state.reading import read_partials
from fastwin.state.rows import cell_names, fill_rows, load_keys, load_rows

__all__ = ["add_partial", "partial_columns"]


def partial_columns(
    chunks: list[bytes], config: Config, keys: KeyTable, accumulators: AccumulatorSet, *head: str
) -> Iterator[dict[str, Any]]:
    """Yields the rows of each chunk as columns, as ``load_rows`` does, with ``elements``, how many are in each row.

    keys: which those of the rows go to. head: the columns before the accumulators. Raises StateError for all but
    partial results of this configuration.
    """
    wanted = [*head, *cell_names(accumulators.new_rows(), accumulators.head_cells), "elements"]
    for chunk in read_partials(chunks, config):
        yield load_rows(chunk.tables, load_keys(config.codec, keys, chunk.tables["keys"]), wanted)


def add_partial(accumulators: AccumulatorSet, rows: RowStore, columns: dict[str, Any]) -> NDArray[np.int32]:
    """Adds rows of ``partial_columns`` to a store, as elements that come now; returns their slots, int32[n]."""
    slots = rows.fresh(columns["key"], columns["start"])
    fill_rows(accumulators, rows, slots, columns, accumulators.head_cells)
    renumber_rows(accumulators, rows, slots)
    return slots
