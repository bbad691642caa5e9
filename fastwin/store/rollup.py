"""Coarse panes, each made of the fine panes below it."""

from collections.abc import Mapping, Sequence

import numpy as np

from fastwin.store.cells import Cell, from_cells, to_cells
from fastwin.store.layout import Field
from fastwin.store.merging import merge_windows
from fastwin.store.records import Scan

__all__ = ["rolled_up"]


def rolled_up(fields: Sequence[Field], blocks: Sequence[Mapping[int, Sequence[Cell]]]) -> list[list[Cell]]:
    """Returns the cells of the coarse pane of each block.

    fields: what to merge. blocks: the cells of these fields by the start of the pane; none is empty. Raises as
    ``merge_windows``, and StoreError for a cell that is no value of its field.
    """
    scan = Scan.empty(len(fields))
    for group, panes in enumerate(blocks):
        for cells in panes.values():
            scan.add(group, 0, cells)
    columns = [from_cells(cells, f.kind, f.name) for cells, f in zip(scan.cells, fields, strict=True)]
    groups = np.array(scan.groups, dtype=np.int32)
    _, _, columns = merge_windows(fields, groups, np.zeros(len(groups), np.int64), columns, (1, 1, 0))
    made = [to_cells(column) for column in columns]  # of states these are the bytes already
    return [[column[row] for column in made] for row in range(len(blocks))]
