"""Means of sums and counts, as the aggregate ``Mean`` gives them."""

from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc

from fastwin.columns.buffers import int64_values
from fastwin.core.accumulators.basic import int_means
from fastwin.errors import AggregateOverflowError

__all__ = ["mean_type", "means_of"]

_MORE = 4
_CONTEXT = Context(prec=120, rounding=ROUND_HALF_UP)


def mean_type(total: pa.DataType) -> pa.DataType:
    """Returns the type of a mean for the type of sums: float64, or a decimal."""
    if not pa.types.is_decimal(total):
        return pa.float64()
    # A sum has ten digits more than what is added up, and a mean four.
    make, most = (pa.decimal256, 76) if total.bit_width == 256 else (pa.decimal128, 38)
    precision = total.precision - 10 + _MORE if total.precision < most else most
    return make(precision, min(total.scale + _MORE, most))


def means_of(total: pa.Array, count: pa.Array, name: str) -> pa.Array:
    """Returns sums over counts, null for a count of 0.

    Raises AggregateOverflowError, with the name of the mean, for a decimal of more digits than its type has.
    """
    if pa.types.is_integer(total.type):
        means = int_means(int64_values(total), int64_values(count))
        return pa.array(means, mask=int64_values(count) == 0)
    if pa.types.is_decimal(total.type):
        kind = mean_type(total.type)
        pairs = zip(total.to_pylist(), count.to_pylist(), strict=True)
        return pa.array([_mean(*one, kind, name) for one in pairs], kind)
    some = pc.if_else(pc.equal(count, 0), pa.scalar(None, pa.int64()), count)
    return pc.divide(total.cast(pa.float64()), some.cast(pa.float64()))


def _mean(total: Decimal | None, count: int | None, kind: pa.DataType, name: str) -> Decimal | None:
    if total is None or not count:
        return None
    mean = _CONTEXT.divide(total, Decimal(count)).quantize(Decimal(1).scaleb(-kind.scale), context=_CONTEXT)
    if len(mean.as_tuple().digits) > kind.precision:
        raise AggregateOverflowError(f"store: the mean {name!r} of panes does not fit {kind}, got {mean}")
    return mean
