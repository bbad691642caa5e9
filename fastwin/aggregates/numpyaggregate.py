"""NumpyAggregate: aggregates of one's own, written over numpy arrays, on the fast operators."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fastwin.aggregates.aggregate import Aggregate, Input
from fastwin.columns.decoding import decoded_type
from fastwin.columns.expressions import Operand, as_operand
from fastwin.columns.values import stored_as
from fastwin.core.accumulators.basic import Accumulator
from fastwin.core.accumulators.numpyaccumulator import NumpyAccumulator
from fastwin.errors import SpecError, UserFunctionError

__all__ = ["NumpyAggregate"]

State = Sequence[NDArray]
"""Arrays of one length, one for each entry of ``NumpyAggregate.state``: state i is the i-th value of each."""


class NumpyAggregate(Aggregate):
    """An aggregate of one's own. Subclass it, and hand an instance to ``.aggregate(...)`` like any other.

    columns: names of the columns to read, or expressions. Elements in which one of them is null are passed over. A
        uint64 column is refused, as it does not fit in int64: cast it first.
    where: which elements count, see ``Aggregate``.

    A window's state is a few numbers, named by ``state``. All methods work on many states at once, as arrays. They must
    not depend on how elements are grouped: ``combine`` has to be associative and commutative. What a method raises
    arrives as UserFunctionError. The class attribute ``version`` and the instance's attributes are part of the spec's
    fingerprint: state written by another version is not restored. ``run(threads=n)`` may call methods on several
    threads at once, and ``lift`` with some elements twice.

    >>> import numpy as np, pyarrow as pa, fastwin as fw
    >>> class WeightedMean(fw.NumpyAggregate):
    ...     state = {"total": "float64", "weight": "float64"}
    ...     output = pa.float64()
    ...     def lift(self, x, w):
    ...         return x * w, w
    ...     def combine(self, a, b):
    ...         return a[0] + b[0], a[1] + b[1]
    ...     def lower(self, state):
    ...         return state[0] / state[1]
    >>> spec = fw.key_by().event_time("ts").window(fw.TumblingEventTimeWindows.of("1 minute"))
    >>> table = pa.table({"ts": [1, 2, 3], "price": [10.0, 20.0, 60.0], "sold": [3.0, 1.0, None]})
    >>> spec.aggregate(mean=WeightedMean("price", "sold")).run(table).main["mean"].to_pylist()
    [12.5]
    """

    state: ClassVar[Mapping[str, str]] = {}
    """The numbers of a state by name: ``"int64"`` or ``"float64"``."""
    takes: ClassVar[str] = "columns of numbers (uint64 excepted), booleans or times"
    output: ClassVar[pa.DataType] = pa.float64()
    """The type of the result: a number, boolean, date, time or timestamp. Integers that it cannot hold are an error."""

    def __init__(self, *columns: Operand | pc.Expression, where: Operand | pc.Expression | None = None) -> None:
        if not columns:
            raise SpecError(f"{self.name}: columns must be names of columns, at least one, got {columns!r}")
        operands = tuple(as_operand(one, f"{self.name}: columns", "names of columns") for one in columns)
        if not self.state or any(kind not in ("int64", "float64") for kind in self.state.values()):
            raise SpecError(f"{self.name}: state must name int64 and float64 numbers, got {dict(self.state)!r}")
        if not isinstance(self.output, pa.DataType) or stored_as(self.output) not in ("int64", "float64"):
            raise SpecError(f"{self.name}: output must be a pyarrow type of numbers or times, got {self.output!r}")
        object.__setattr__(self, "column", operands[0])
        object.__setattr__(self, "where", where)
        self._take_where()
        self._columns = operands

    def lift(self, *columns: NDArray) -> State | NDArray:
        """Returns the states of single elements, in the order of ``state``.

        columns: an array for each column, without nulls: float64[n] of floats, int64[n] of ints, booleans (0 and 1) and
            times (in the unit of the column).
        """
        raise NotImplementedError(f"{type(self).__name__} needs lift(self, *columns)")

    def combine(self, a: State, b: State) -> State | NDArray:
        """Returns the states of what is in either: state i of the elements of ``a``'s i-th and ``b``'s i-th."""
        raise NotImplementedError(f"{type(self).__name__} needs combine(self, a, b)")

    def lower(self, state: State) -> NDArray:
        """Returns the results of states: an array of numbers; what is masked in a numpy masked array is null."""
        raise NotImplementedError(f"{type(self).__name__} needs lower(self, state)")

    @property
    def columns(self) -> tuple[Operand, ...]:
        return self._columns

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _are_alike(vars(self), vars(other))

    def __hash__(self) -> int:
        return hash((type(self), self._columns))

    def inputs(self, *kinds: pa.DataType) -> tuple[Input, ...]:
        readings: list[Input] = []
        for column, kind in zip(self._columns, kinds, strict=True):
            stored = stored_as(kind)
            if stored not in ("int64", "float64") or decoded_type(kind) == pa.uint64():
                raise self._refusal(kind, column)
            readings.append((column, stored))
        return tuple(readings)

    def result_type(self, *kinds: pa.DataType) -> pa.DataType:
        return self.output

    def accumulator(self, kinds: tuple[pa.DataType, ...], at: tuple[int, ...]) -> Accumulator:
        reads: Any = [(index, reading) for index, (_, reading) in zip(at, self.inputs(*kinds), strict=True)]
        state: Any = self.state.values()
        result: Any = stored_as(self.output)
        return NumpyAccumulator("int64", -1, self, reads, state, result)

    def to_arrow(self, result: tuple, kind: pa.DataType) -> pa.Array:
        """Returns results as a column. Raises UserFunctionError for integers that ``output`` cannot hold."""
        bounds = _bounds(kind)
        if bounds is not None:
            values, valid = result
            outside = (values < bounds[0]) | (values > bounds[1])
            if valid is not None:
                outside &= valid
            if outside.any():
                name, value = f"{type(self).__qualname__}.lower", values[outside][0]
                least, most = bounds
                raise UserFunctionError(f"{name}: must return integers of {kind}, {least} to {most}, returned {value}")
        return super().to_arrow(result, kind)


def _bounds(kind: pa.DataType) -> tuple[int, int] | None:
    """Returns the least and the most int64 that a type holds; None where it holds all, or is made of them otherwise."""
    if stored_as(kind) != "int64" or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return None
    if pa.types.is_unsigned_integer(kind):
        return 0, min(2**kind.bit_width, 2**63) - 1
    most = 2 ** (kind.bit_width - 1)
    return (-most, most - 1) if most < 2**63 else None


def _are_alike(one: Any, other: Any) -> bool:
    """Returns whether attributes are equal: arrays, tables and frames as a whole, also within lists and dicts."""
    if one is other:
        return True
    if type(one) is not type(other):
        return not any(hasattr(side, "__array__") for side in (one, other)) and bool(one == other)
    if isinstance(one, np.ndarray):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        return one.tolist() == other.tolist() if one.dtype.hasobject else one.tobytes() == other.tobytes()
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_are_alike(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_are_alike, one, other))
    return bool(one.equals(other) if hasattr(one, "equals") else one == other)
