"""When a log of deltas begins to repeat what it has."""

import pytest

from spark_glue.state.book import DeltaLog, Entry


def book(rows: int, deltas: int) -> DeltaLog:
    return DeltaLog(tuple(Entry(at, 1, 100, rows, None, f"t{at}") for at in range(deltas)))


@pytest.mark.parametrize(
    ("state_rows", "groups", "rows", "deltas", "begins"),
    [
        (100_000, 32, 1_000, 315, False),  # by rows: four times, and 10,000
        (100_000, 32, 41_001, 10, True),
        (100_000, 32, 41_000, 10, False),
        (100_000, 32, 1, 316, True),  # by deltas: the root of the rows
        (900, 8, 1, 31, False),  # no fewer than 32
        (900, 8, 1, 32, True),
        (10**7, 32, 1, 511, False),  # no more than 512
        (10**7, 32, 1, 512, True),
        (10**7, 300, 1, 511, False),  # of many groups as well: a round repeats several at a time
        (10**7, 300, 1, 512, True),
        (900, 40, 1, 79, False),  # but twice the groups, of which each may leave one
        (900, 40, 1, 80, True),
    ],
)
def test_when_a_round_begins(state_rows, groups, rows, deltas, begins):
    refresh = book(rows, deltas).refresh(state_rows, 1_000, range(groups))
    assert (refresh is not None) == begins
