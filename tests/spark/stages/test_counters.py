"""What is observed of a stream, by name."""

from pyspark.sql import Observation

from spark_glue.plan.queries import OBSERVED
from spark_glue.stages.counters import (
    COUNTERS,
    LEVELS,
    SHOWN,
    WATERMARK,
    counters_in,
    counters_text,
    observed_of_shares,
    with_names,
)


def test_visits_are_added_up_by_name(spark):
    visits = [{name: scale * (100 + i) for i, name in enumerate(COUNTERS)} for scale in (1, 3)]
    texts = [(counters_text(visits[0]),), (None,), (counters_text(visits[1]),)]
    for rows, expected in (
        (
            texts,
            {
                name: visits[1][name] if name in (WATERMARK, *LEVELS) else sum(one[name] for one in visits)
                for name in COUNTERS
            },
        ),
        ([(None,)], dict.fromkeys(COUNTERS, 0) | {WATERMARK: None}),  # it is a counter's null, not a watermark of 1970
    ):
        seen = Observation()
        observed_of_shares(spark.createDataFrame(rows, "told string").repartition(2), seen, "told").count()
        assert with_names(seen.get) == expected


def test_what_others_observe_stays_as_it_is():
    for row in ({"counters": {"events": 5}}, {"counters": [1]}, dict.fromkeys(COUNTERS, 1), {}):
        assert with_names(row) == row


def test_counters_are_told_from_what_users_observe():
    whole = dict.fromkeys(COUNTERS, 1)
    older = dict.fromkeys(SHOWN, 1)
    unmarked = {name: 1 for name in SHOWN if name != WATERMARK}
    users = {"mine": {"events": 9}, "map": {OBSERVED: {"events": 9}}, "nothing": {}}
    observed = {"stream": {OBSERVED: whole}, "batch": whole, "older": older, "unmarked": unmarked} | users
    assert counters_in(observed) == {"stream": whole, "batch": whole}
    assert counters_in(observed, earlier=True).keys() == observed.keys() - users.keys()
