"""The spec: immutable, complete, told apart, told in words."""

import copy
import dataclasses
import os
import pickle
import subprocess
import sys

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.spec.ending import AggregateEnding

HOUR = fw.TumblingEventTimeWindows.of("1 hour")


def full() -> fw.WindowSpec:
    return (
        fw.key_by("a", "b")
        .event_time("ts")
        .window(fw.SlidingEventTimeWindows.of("24 hours", "3 minutes", "-1 minute"))
        .allowed_lateness("5 minutes", coalesce=True)
        .side_output_late_data()
        .bad_rows("divert")
        .aggregate(n=fw.Count(), m=fw.Count("v"), s=fw.Sum("v", on_overflow="null"), lo=fw.Min("v"), hi=fw.Max("v"), avg=fw.Mean("v"))
    )  # fmt: skip


def test_every_step_leaves_the_spec_before_as_it_was() -> None:
    spec = fw.key_by("k")
    before = copy.deepcopy(spec)
    steps = [
        spec.event_time("t"),
        spec.window(HOUR),
        spec.allowed_lateness(5),
        spec.side_output_late_data(),
        spec.bad_rows("drop"),
        spec.event_time("t").window(HOUR).aggregate(n=fw.Count()),
    ]
    assert spec == before
    assert all(step != spec for step in steps)
    assert len(set(steps)) == len(steps)


def test_attributes_cannot_be_set() -> None:
    spec = full()
    for field in dataclasses.fields(spec):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(spec, field.name, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        HOUR.size_ms = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        fw.Sum("v").column = "w"


def test_what_was_said_is_what_is_there() -> None:
    spec = full()
    assert spec.keys == ("a", "b")
    assert spec.time_column == "ts"
    assert spec.assigner == fw.SlidingEventTimeWindows(86_400_000, 180_000, -60_000)
    assert (spec.lateness_ms, spec.coalesce, spec.late_output, spec.bad_row_policy) == (300_000, True, True, "divert")
    assert spec.ending.names == ("n", "m", "s", "lo", "hi", "avg")


def test_the_last_word_counts() -> None:
    spec = fw.key_by("k").event_time("x").event_time("t").window(HOUR).allowed_lateness(5).allowed_lateness(6)
    assert (spec.time_column, spec.lateness_ms) == ("t", 6)
    assert spec.aggregate(n=fw.Count()).aggregate(m=fw.Count()).ending == AggregateEnding((("m", fw.Count()),))


def test_pickle_keeps_spec_and_fingerprint() -> None:
    spec = full()
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(spec, protocol))
        assert again == spec
        assert hash(again) == hash(spec)
        assert again.fingerprint == spec.fingerprint


def test_fingerprint_is_the_same_in_another_process() -> None:
    code = "import pickle, sys; print(pickle.loads(bytes.fromhex(sys.argv[1])).fingerprint.hex())"
    for seed in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", code, pickle.dumps(full()).hex()],
            capture_output=True, text=True, check=True, env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}, timeout=300,
        )  # fmt: skip
        assert told.stdout.strip() == full().fingerprint.hex()


def test_fingerprint_tells_apart_what_makes_other_state() -> None:
    base = fw.key_by("k").event_time("t").window(HOUR)
    others = [
        base.aggregate(n=fw.Count()),
        base.aggregate(m=fw.Count()),
        base.aggregate(n=fw.Count("v")),
        base.aggregate(n=fw.Sum("v")),
        base.aggregate(n=fw.Sum("v", on_overflow="null")),
        base.aggregate(n=fw.Count(), m=fw.Count()),
        base.allowed_lateness(1).aggregate(n=fw.Count()),
        base.event_time("t2").aggregate(n=fw.Count()),
        base.window(fw.TumblingEventTimeWindows.of("1 hour", 1)).aggregate(n=fw.Count()),
        base.window(fw.SlidingEventTimeWindows.of("1 hour", "1 hour")).aggregate(n=fw.Count()),
        base.window(fw.EventTimeSessionWindows.with_gap("1 hour")).aggregate(n=fw.Count()),
        dataclasses.replace(base, keys=("k2",)).aggregate(n=fw.Count()),
        dataclasses.replace(base, keys=()).aggregate(n=fw.Count()),
    ]
    assert len({spec.fingerprint for spec in others}) == len(others)
    assert all(len(spec.fingerprint) == 16 for spec in others)


def test_fingerprint_leaves_out_what_state_does_not_depend_on() -> None:
    spec = fw.key_by("k").event_time("t").window(HOUR).allowed_lateness(5).aggregate(n=fw.Count())
    other = spec.allowed_lateness(5, coalesce=True).side_output_late_data().bad_rows("drop")
    assert other.fingerprint == spec.fingerprint


def test_str_reads_as_it_was_written() -> None:
    spec = fw.key_by("k").event_time("t").window(HOUR).allowed_lateness("90 s").aggregate(n=fw.Count(), s=fw.Sum("v"))
    assert str(spec) == (
        "key_by('k').event_time('t').window(TumblingEventTimeWindows(size_ms=3600000, offset_ms=0))"
        ".allowed_lateness('90 s').aggregate(n=Count(column=None), s=Sum(column='v', on_overflow='raise'))"
    )


def test_public_names_are_there() -> None:
    for name in fw.__all__:
        assert getattr(fw, name) is not None
    assert set(fw.__all__) <= set(dir(fw))


def test_errors_are_one_family_and_fit_pythons() -> None:
    for error, base in [
        (fw.SpecError, ValueError), (fw.BadRowError, ValueError),
        (fw.StateError, RuntimeError), (fw.AggregateOverflowError, OverflowError),
    ]:  # fmt: skip
        assert issubclass(error, fw.FastwinError)
        assert issubclass(error, base)


def test_explain_says_which_operator_and_why() -> None:
    schema = pa.schema([("a", pa.string()), ("b", pa.int32()), ("ts", pa.timestamp("us")), ("v", pa.int64())])
    text = full().explain(schema)
    assert "operator: aligned" in text
    assert "480 windows" in text
    assert "key_by('a', 'b')" in text
