"""The handle over one value of Spark's: variables and a timer, kept between visits; timers expire as Spark's do."""

from pyspark.sql import types as T
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from spark_glue.stages.shipped import Packed
from spark_glue.stages.smallstate import _Groups

NUMBER = T.StructType([T.StructField("number", T.LongType())])
MODES = {"EventTime": GroupStateTimeout.EventTimeTimeout, "ProcessingTime": GroupStateTimeout.ProcessingTimeTimeout}


class Counting:
    """A processor that counts its visits, and sets the timer that it is told; a timer gives what it was set for."""

    def init(self, handle):
        self.handle = handle
        self.count = handle.getValueState("count", NUMBER)
        self.other = handle.getValueState("other", NUMBER)

    def handleInputRows(self, key, rows, timerValues):  # noqa: N802, N803
        (count,) = self.count.get() or (0,)
        self.count.update((count + 1,))
        for timer in rows:
            if timer is None:
                self.count.clear()
            else:
                self.handle.registerTimer(timer)
        yield "rows", count + 1, timerValues.getCurrentWatermarkInMs()

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):  # noqa: N802, N803
        yield "timer", expiredTimerInfo.getExpiryTimeInMs()


class Store:
    """What Spark keeps of one group: its value, and when it times out."""

    def __init__(self, mode: str) -> None:
        self.mode, self.value, self.timeout = mode, None, None

    def visit(self, rows, *, now: int = 0, watermark: int = 0):
        """Visits the group with rows, or without where its timeout has passed; None: Spark does not visit it."""
        past = self.timeout is not None and self.timeout < (watermark if self.mode == "EventTime" else now)
        if not rows and not past:
            return None
        state = GroupState(
            self.value, now, watermark or -1, MODES[self.mode], not rows, True, self.value is not None, False, False,
            -1, b"", T.StructType(),
        )  # fmt: skip
        groups = _Groups(Packed(Counting()), self.mode, has_watermark=True)
        told = list(groups.visit((1,), iter(rows), state))
        self.value = state.getOption
        self.timeout = state._timeout_timestamp if state._timeout_timestamp > 0 else None
        return told


def test_variables_are_kept_and_go_when_all_are_cleared():
    store = Store("EventTime")
    assert store.visit([50]) == [("rows", 1, 0)]
    assert store.value == (50, (1,), None)
    assert store.visit([60], watermark=10) == [("rows", 2, 10)]
    assert store.visit([70, None], watermark=69) == [("rows", 3, 69)]
    assert store.value == (70, None, None)
    assert store.visit([70], watermark=70) == [("rows", 1, 70), ("timer", 70)]  # after all input


def test_a_timer_of_event_time_expires_when_the_watermark_has_come_to_it():
    store = Store("EventTime")
    store.visit([50])
    assert store.visit([], watermark=49) is None
    assert store.visit([], watermark=50) == [("timer", 50)]
    assert store.timeout is None
    assert store.visit([], watermark=1_000) is None


def test_a_timer_outlives_visits_that_do_not_set_it():
    class Silent:
        def __iter__(self):
            return iter(())

        def __bool__(self):
            return True

    store = Store("EventTime")
    store.visit([50])
    assert store.visit(Silent(), watermark=20) == [("rows", 2, 20)]
    assert store.visit([], watermark=50) == [("timer", 50)]


def test_a_timer_of_processing_time_expires_in_a_later_micro_batch():
    store = Store("ProcessingTime")
    store.visit([101], now=100)
    assert store.visit([], now=101) is None  # Spark's timeouts are at least a millisecond long, and then past
    assert store.visit([], now=102) == [("timer", 101)]
    store.visit([500], now=200)
    assert store.visit([], now=499) is None
    assert store.visit([], now=500) == [("timer", 500)]
