"""State of two inputs that is read with another join: the error says in words what differs, and names the columns."""

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.errors import StateError
from fastwin.run.replica import open_replica
from spark_glue.state.stored import replica_of

ORDERS = pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("price", pa.int64())])
PAYMENTS = pa.schema([("id", pa.int64()), ("at", pa.int64()), ("paid", pa.int64())])
MINUTE = fw.TumblingEventTimeWindows.of("1 minute")


def pairs(key, window, left, right):
    yield (len(left) * len(right),)


def inputs(lateness: str = "0 s") -> tuple[fw.WindowSpec, fw.WindowSpec]:
    return fw.key_by("k").event_time("ts").allowed_lateness(lateness), fw.key_by("id").event_time("at")


def grouped() -> fw.JoinSpec:
    return fw.co_group(*inputs(), MINUTE, pairs, output="n bigint")


def a_delta_of(join: fw.JoinSpec) -> bytes:
    bound = join.bind(ORDERS, PAYMENTS)
    stream = open_replica(fw.plan(bound.spec, bound.schema, coalesce=True))
    rows = pa.table([[1], [5], [7]], schema=ORDERS)
    stream.process(bound.united(0, rows, pa.array([5])))
    return stream.delta()


@pytest.mark.parametrize(
    ("written", "asked", "says"),
    [
        (
            grouped(),
            fw.window_join(*inputs(), MINUTE),
            r"co_group was .*pairs.*left=\['ts', 'price'\], right=\['at', 'paid'\].* is not given now; "
            r"window_join was not given, is 'inner'",
        ),
        (fw.window_join(*inputs(), MINUTE), grouped(), r"co_group was not given, is .*window_join was 'inner', left="),
        (
            fw.window_join(*inputs(), MINUTE, "left"),
            fw.window_join(*inputs(), MINUTE),
            r"window_join was 'left', left=\['ts', 'price'\], right=\['at', 'paid'\], is 'inner'",
        ),
        (
            fw.window_join(*inputs(), fw.TumblingEventTimeWindows.of("2 minutes")),
            fw.window_join(*inputs(), MINUTE),
            r"window was .*size_ms=120000.*, is .*size_ms=60000",
        ),
        (
            fw.window_join(*inputs("5 s"), MINUTE),
            fw.window_join(*inputs(), MINUTE),
            "allowed_lateness of the left input was 5 s",
        ),
    ],
    ids=["join for a grouping", "grouping for a join", "how", "window", "lateness"],
)  # fmt: skip
def test_what_differs_is_said_in_words(written: fw.JoinSpec, asked: fw.JoinSpec, says: str) -> None:
    delta = a_delta_of(written)
    assert replica_of(written, [delta], "why").metrics.state_rows == 1
    with pytest.raises(StateError, match=f"^why: state: written by another spec, or for other columns: .*{says}"):
        replica_of(asked, [delta], "why")


def test_a_share_that_waits_for_its_visit_is_told_of():
    """A longer lateness may go on with the state, and no micro-batch has written it anew yet."""
    delta, longer = a_delta_of(fw.window_join(*inputs(), MINUTE)), fw.window_join(*inputs("5 s"), MINUTE)
    with pytest.raises(
        StateError, match=r"^inspect: state: .*; a share that no micro-batch has visited since the spec ch"
    ):
        replica_of(longer, [delta], "inspect")
    with pytest.raises(StateError, match=r"^inspect: (?!.*visited)"):
        replica_of(longer, [b"damaged"], "inspect")
