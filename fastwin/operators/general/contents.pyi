from typing import Any

from fastwin.columns.handedrows import HandedRows
from fastwin.core.accumulators.accumulator_set import AccumulatorSet
from fastwin.operators.config import Config
from fastwin.operators.general.config import Program
from fastwin.operators.general.elements import Elements

class Contents:
    """The contents of all windows."""

    objects: list[Any]
    saved_lists: dict[int, tuple[Any, int]]
    accumulators: AccumulatorSet
    in_python: bool
    keeps_rows: bool
    keeps_places: bool
    handed: HandedRows | None
    folds: bool
    numbered: bool
    takes_runs: bool
    def __init__(self, elements: Elements, accumulators: AccumulatorSet, program: Program, config: Config) -> None: ...
    def __del__(self) -> None: ...
    def fit_all(self) -> None: ...
