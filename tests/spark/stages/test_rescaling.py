"""The micro-batch that divides state anew, without Spark."""

import pytest
from pyspark.sql.streaming.stateful_processor import TimerValues

from fastwin.errors import StateError
from spark_glue.plan.keygroups import LEDGER_ID
from spark_glue.stages.rescaling import Divided, RescalingProcessor
from spark_glue.state.log import StateLog
from tests.support.spark_events import events
from tests.support.spark_fakes import FakeHandle
from tests.support.spark_jobs import frame_plan_for


def test_the_zone_in_which_times_are_read_goes_along():
    handle, now = FakeHandle(), Divided(8, 3)

    def processor(zone: str | None) -> RescalingProcessor:
        frame_plan = frame_plan_for(events(0, 10), time_zone=zone)
        return RescalingProcessor(frame_plan, "EventTime", Divided(4, 2), now, None)

    berlin = processor("Europe/Berlin")
    berlin.init(handle)
    handle.key = LEDGER_ID
    list(berlin.handleInputRows((LEDGER_ID,), iter(()), TimerValues(0, 0)))
    with pytest.raises(StateError, match=r"times are read in 'Europe/Berlin', and .* is 'UTC' now"):
        StateLog(handle, processor("UTC")._identity(now)).sign()
