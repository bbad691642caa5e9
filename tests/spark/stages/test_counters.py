"""What was observed of a stream, by name. No Spark runs."""

from spark_glue.stages.counters import COUNTERS, LEVELS, SHOWN, WORK, with_names


def test_what_travels_as_one_array_has_its_names():
    told = {name: 100 + i for i, name in enumerate(COUNTERS)}
    observed = {name: told[name] for name in SHOWN} | {"work": [told[name] for name in (*WORK, *LEVELS)]}
    assert with_names(observed) == told
    without = {name: value for name, value in observed.items() if name != "watermark_ms"}  # JSON leaves nulls out
    assert with_names(without) == {name: value for name, value in told.items() if name != "watermark_ms"}


def test_what_others_observe_and_what_earlier_versions_did_stay_as_they_are():
    for row in ({"work": [1], "events": 5}, dict.fromkeys(COUNTERS, 1), {}):
        assert with_names(row) == row
