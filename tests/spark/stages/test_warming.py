"""What is done before the first micro-batch needs it, once, and never in its way."""

import fastwin as fw
import spark_glue
from spark_glue.stages import running
from spark_glue.stages.warming import _warmed, warm_up
from tests.support.spark_jobs import jobs_of


def test_a_job_runs_once(spark):
    """Its group is its own: whoever looks at the jobs of no group finds his alone."""
    _warmed.discard(spark.sparkContext)
    tracker = spark.sparkContext.statusTracker()
    before, others = jobs_of(spark, "fastwin warm-up"), jobs_of(spark)
    warm_up(spark).join(60)
    jobs = jobs_of(spark, "fastwin warm-up") - before
    assert not jobs_of(spark) - others
    assert jobs and {tracker.getJobInfo(job).status for job in jobs} == {"SUCCEEDED"}
    assert warm_up(spark) is None


def test_a_session_that_has_ended():
    """Whatever is wrong, the query itself tells."""

    class Ended:
        defaultParallelism = 2  # noqa: N815

        def __getattr__(self, name):
            if name == "sparkContext":
                return self
            raise RuntimeError("stopped")

    thread = warm_up(Ended())
    thread.join(10)
    assert not thread.is_alive()


def test_the_first_streaming_frame_starts_it(spark, monkeypatch):
    warmed = []
    monkeypatch.setattr(running, "warm_up", warmed.append)
    frame = spark.readStream.format("rate").load()
    spec = fw.key_by("value").event_time("timestamp").window(fw.TumblingEventTimeWindows.of("1 minute"))
    spark_glue.apply(spec.aggregate(n=fw.Count()).bad_rows("drop"), frame, watermark="1 minute")
    assert warmed == [spark]
