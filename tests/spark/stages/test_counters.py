"""What was observed of a stream, by name. No Spark runs."""

from spark_glue.stages.counters import COUNTERS, LEVELS, SHOWN, WATERMARK, counters_text, with_names


def test_what_travels_as_text_has_its_names():
    visits = [{name: scale * (100 + i) for i, name in enumerate(COUNTERS)} for scale in (1, 3)]
    told = {
        name: visits[1][name] if name in (WATERMARK, *LEVELS) else sum(one[name] for one in visits) for name in COUNTERS
    }
    observed = {name: told[name] for name in SHOWN} | {"work": [counters_text(one) for one in visits]}
    assert with_names(observed) == told
    without = {name: value for name, value in observed.items() if name != WATERMARK}  # JSON leaves nulls out
    assert with_names(without) == {name: value for name, value in told.items() if name != WATERMARK}
    assert with_names(dict.fromkeys(SHOWN, 0) | {"work": []}) == dict.fromkeys(COUNTERS, 0)


def test_what_others_observe_and_what_earlier_versions_did_stay_as_they_are():
    for row in ({"work": [1], "events": 5}, dict.fromkeys(COUNTERS, 1), {}):
        assert with_names(row) == row
