import numpy as np
import pytest

from fastwin.core.keys.keycolumns import decode_rows, encode_rows
from tests.support.arrays import refuses_what_is_no_array, takes_read_only
from tests.support.kernels import ids, times


def test_extremes_survive_the_round_trip() -> None:
    values = times(-(2**63), 2**63 - 1)
    offsets, data = encode_rows([(values, None)], 2)
    ((found, valid),) = decode_rows(offsets, data, [True])
    assert found.tolist() == values.tolist()
    assert valid.all()


def test_read_only_arrays_are_taken() -> None:
    data = np.arange(3, dtype=np.uint8)
    takes_read_only(lambda values: encode_rows([(values, None)], 2), times(1, 2))
    takes_read_only(lambda offsets, text: encode_rows([(offsets, text, None)], 2), ids(0, 1, 3), data)
    takes_read_only(lambda offsets, rows: decode_rows(offsets, rows, [True]), *encode_rows([(times(1), None)], 1))


def test_other_things_than_arrays_are_refused() -> None:
    refuses_what_is_no_array(lambda values: encode_rows([(values, None)], 2), times(1, 2))
    refuses_what_is_no_array(lambda text: encode_rows([(ids(0, 1, 2), text, None)], 2), np.zeros(2, np.uint8))
    refuses_what_is_no_array(lambda at, rows: decode_rows(at, rows, [True]), *encode_rows([(times(1, 2), None)], 2))


def test_corrupt_rows_never_crash() -> None:
    """Any bytes give columns or a ValueError."""
    rng = np.random.default_rng(0)
    for _ in range(2000):
        body = rng.integers(0, rng.choice([2, 256]), rng.integers(0, 40)).astype(np.uint8)
        cuts = np.sort(rng.integers(0, len(body) + 1, 2))
        offsets = np.array([0, *cuts, len(body)])
        try:
            decode_rows(offsets, body, rng.integers(0, 2, rng.integers(0, 4)).astype(bool).tolist())
        except ValueError as problem:
            assert str(problem)  # noqa: PT017


@pytest.mark.parametrize("columns", [None, (), [None], [()], ["ab"]])
def test_columns_of_another_shape_are_refused(columns: object) -> None:
    with pytest.raises((TypeError, ValueError, IndexError, AttributeError)):
        encode_rows(columns, 1)
