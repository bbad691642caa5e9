"""What is done before the first micro-batch needs it, and never in its way."""

from spark_glue.apps.warming import warm_up


def test_a_job_has_run(spark):
    tracker, group = spark.sparkContext.statusTracker(), None
    before = set(tracker.getJobIdsForGroup(group))
    warm_up(spark).join(60)
    jobs = set(tracker.getJobIdsForGroup(group)) - before
    assert jobs and {tracker.getJobInfo(job).status for job in jobs} == {"SUCCEEDED"}


def test_a_session_that_has_ended():
    """Whatever is wrong, the query itself tells."""

    class Ended:
        def range(self, rows):
            raise RuntimeError("stopped")

    thread = warm_up(Ended())
    thread.join(10)
    assert not thread.is_alive()
