"""A spec bound to an input schema: the operator, the columns, the schemas, and what is refused."""

import pickle
from dataclasses import replace

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.operators.aligned.operator import AlignedOperator
from fastwin.operators.session.operator import SessionOperator
from fastwin.run.stream import open_plan
from tests.support.columns import KEY_TYPES

TIME = pa.timestamp("ms", tz="UTC")
SCHEMA = pa.schema(
    [
        ("other", pa.list_(pa.string())),
        ("k", pa.string()),
        ("k2", pa.dictionary(pa.uint32(), pa.string_view())),
        ("t", pa.timestamp("us")),
        ("i", pa.int16()),
        ("f", pa.float32()),
        ("d", pa.date32()),
    ]
)
BASE = fw.key_by("k").event_time("t").window(fw.TumblingEventTimeWindows.of("1 hour"))


@pytest.mark.parametrize(
    ("assigner", "name", "kind", "why"),
    [
        (fw.TumblingEventTimeWindows.of(10), "aligned", AlignedOperator, "aligned to the clock"),
        (fw.SlidingEventTimeWindows.of(96, 1), "aligned", AlignedOperator, "instead of 96 windows"),
        (fw.SlidingEventTimeWindows.of(25, 10), "aligned", AlignedOperator, "2 for each slide of 10 ms"),
        (fw.SlidingEventTimeWindows.of(30, 10), "aligned", AlignedOperator, "1 for each slide of 10 ms"),
        (fw.SlidingEventTimeWindows.of(5, 10), "aligned", AlignedOperator, "1 for each slide"),
        (fw.EventTimeSessionWindows.with_gap(10), "session", SessionOperator, "fixed gap"),
    ],
)
def test_operator_and_reason(assigner: fw.WindowAssigner, name: str, kind: type, why: str) -> None:
    plan = fw.plan(BASE.window(assigner).aggregate(n=fw.Count()), SCHEMA)
    assert plan.operator == name
    assert why in plan.explain()
    assert str(plan.spec) in plan.explain()
    assert isinstance(plan.new_operator(), kind)


EVENTS = fw.key_by().event_time("t")


@pytest.mark.parametrize(
    ("spec", "end", "times", "results", "says"),
    [
        (
            EVENTS.window(fw.EventTimeSessionWindows.with_gap(10)),
            fw.Count(),
            [15, 24],
            ([1], [2]),
            "a late one is taken",
        ),
        (
            EVENTS.window(fw.TumblingEventTimeWindows.of(90)),
            None,
            [45, 34],
            ([45], [34]),
            "the first one is the earliest",
        ),
    ],
)
def test_explain_says_where_the_order_of_rows_decides(spec, end, times, results, says) -> None:
    for coalesce, wanted in zip((None, True), results, strict=True):
        asked = spec if coalesce is None else spec.allowed_lateness(0, coalesce=coalesce)
        asked = asked.deduplicate() if end is None else asked.aggregate(n=end)
        lines = [line for line in asked.explain().splitlines() if line.startswith("  order: ")]
        assert [says in line for line in lines] == ([True] if coalesce is None else [])
        stream = asked.open(schema=pa.schema([("t", pa.int64())]))
        stream.advance_watermark(30)
        found = pa.concat_tables([stream.process(pa.table({"t": times})).main, stream.advance_watermark(999).main])
        assert found.column(found.num_columns - 1).to_pylist() == wanted
    plain = EVENTS.window(fw.TumblingEventTimeWindows.of(90)).aggregate(n=fw.Count())
    assert "order:" not in plain.explain()


def test_only_what_is_needed_is_read() -> None:
    spec = BASE.aggregate(n=fw.Count(), s=fw.Sum("i"), m=fw.Mean("i"), c=fw.Count("k2"))
    assert fw.plan(spec, SCHEMA).input_columns == ["k", "t", "i", "k2"]
    assert fw.plan(replace(spec, keys=()), SCHEMA).input_columns == ["t", "i", "k2"]
    assert fw.plan(BASE.aggregate(n=fw.Max("t")), SCHEMA).input_columns == ["k", "t"]


@pytest.mark.parametrize("spec", [BASE.side_output_late_data(), BASE.bad_rows("divert")])
def test_all_is_read_if_rows_are_handed_out(spec: fw.WindowSpec) -> None:
    assert fw.plan(spec.aggregate(n=fw.Count()), SCHEMA).input_schema == SCHEMA


def test_dictionaries_have_room_for_what_later_batches_bring() -> None:
    schema = pa.schema([("k", pa.dictionary(pa.int8(), pa.string(), ordered=True)), ("t", pa.int64())])
    spec = BASE.side_output_late_data().aggregate(n=fw.Count())
    assert fw.plan(spec, schema).late_schema.field("k").type == pa.dictionary(pa.int32(), pa.string(), ordered=True)


def test_schemas_of_late_and_bad_rows() -> None:
    plain = fw.plan(BASE.aggregate(n=fw.Count()), SCHEMA)
    assert (plain.late_schema, plain.bad_schema) == (None, None)
    plan = fw.plan(BASE.side_output_late_data().bad_rows("divert").aggregate(n=fw.Count()), SCHEMA)
    assert plan.late_schema == SCHEMA
    assert plan.bad_schema == pa.schema([*SCHEMA, ("bad_reason", pa.string())])


def test_schema_of_the_result() -> None:
    spec = fw.key_by("k2", "d").event_time("t").window(fw.TumblingEventTimeWindows.of(5)).aggregate(
        n=fw.Count(), c=fw.Count("f"), si=fw.Sum("i"), sf=fw.Sum("f"), mi=fw.Mean("i"), lo=fw.Min("f"), hi=fw.Max("i"), first=fw.Min("t"), day=fw.Max("d"),
    )  # fmt: skip
    wanted = [
        ("k2", pa.string()), ("d", pa.date32()), ("window_start", TIME), ("window_end", TIME),
        ("n", pa.int64()), ("c", pa.int64()), ("si", pa.int64()), ("sf", pa.float64()), ("mi", pa.float64()),
        ("lo", pa.float32()), ("hi", pa.int16()), ("first", pa.timestamp("us")), ("day", pa.date32()),
    ]  # fmt: skip
    plan = fw.plan(spec, SCHEMA)
    assert plan.main_schema == pa.schema(wanted)
    stream = open_plan(plan)
    assert stream.process(SCHEMA.empty_table()).main.schema == plan.main_schema
    assert stream.advance_watermark(0).main.schema == plan.main_schema
    assert spec.run(SCHEMA.empty_table()).main.schema == plan.main_schema


@pytest.mark.parametrize(("kind"), [case[1] for case in KEY_TYPES], ids=[case[0] for case in KEY_TYPES])
def test_type_of_a_key_stays_but_for_encodings(kind: pa.DataType) -> None:
    plan = fw.plan(BASE.aggregate(n=fw.Count()), pa.schema([("k", kind), ("t", pa.int64())]))
    found = plan.main_schema.field("k").type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    assert found == {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(kind, kind)


@pytest.mark.parametrize(
    "kind",
    [
        pa.int64(),
        pa.null(),
        *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "Asia/Tokyo")),
    ],
    ids=str,
)
def test_types_of_event_time(kind: pa.DataType) -> None:
    assert fw.plan(BASE.aggregate(n=fw.Count()), pa.schema([("k", pa.string()), ("t", kind)])).input_columns == [
        "k",
        "t",
    ]


def test_several_aggregates_share_a_column() -> None:
    plan = fw.plan(
        BASE.aggregate(c=fw.Count("i"), s=fw.Sum("i"), n=fw.Count(), m=fw.Mean("f"), d=fw.Count("i")), SCHEMA
    )
    assert plan.inputs.sources == (("i", "int64", None), ("f", "float64", None))
    assert [column.at for column in plan.config.results] == [(0,), (0,), (), (1,), (0,)]


def test_coalesce_of_the_spec_wins_over_the_runner() -> None:
    for said, asked, holds in [(None, False, False), (None, True, True), (True, False, True), (False, True, False)]:
        spec = BASE.allowed_lateness(5, coalesce=said).aggregate(n=fw.Count())
        plan = fw.plan(spec, SCHEMA, coalesce=asked)
        assert plan.config.coalesce is plan.new_operator()._config.coalesce is holds
        assert plan.fingerprint == spec.fingerprint


def test_fingerprint_is_that_of_the_spec() -> None:
    spec = BASE.aggregate(n=fw.Count())
    assert fw.plan(spec, SCHEMA).fingerprint == spec.fingerprint == pickle.loads(pickle.dumps(spec)).fingerprint


def test_metadata_of_the_schema_does_not_matter() -> None:
    spec = BASE.side_output_late_data().aggregate(n=fw.Count())
    tagged = SCHEMA.with_metadata({"pandas": "{}"})
    assert fw.plan(spec, tagged).late_schema == SCHEMA
    assert fw.plan(spec, tagged).config.input_schema == fw.plan(spec, SCHEMA).config.input_schema


def test_open_gives_the_stream_that_spec_open_gives() -> None:
    spec = BASE.aggregate(n=fw.Count())
    table = pa.table({"k": ["a"], "t": pa.array([5], pa.int64())})
    streams = [open_plan(fw.plan(spec, table.schema)), spec.open(), spec.open(schema=table.schema)]
    for stream in streams:
        stream.process(table)
    first, *others = (stream.advance_watermark(fw.MAX_TIMESTAMP).main for stream in streams)
    assert all(other == first for other in others)


class _Ported(fw.Trigger):
    def on_element(self, element, timestamp, window, ctx):
        return fw.TriggerResult.FIRE

    def on_processing_time(self, time, window, ctx):
        return fw.TriggerResult.CONTINUE


class _Waiting(_Ported):
    def on_processing_time(self, time, window, ctx):
        return fw.TriggerResult.FIRE


class _Inheriting(fw.Trigger):
    def on_element(self, element, timestamp, window, ctx):
        return fw.TriggerResult.FIRE


class _ByDefault(_Inheriting):
    def on_processing_time(self, time, window, ctx, answer=fw.TriggerResult.FIRE):
        return answer


def _closing_over(answer):
    class Closing(_Inheriting):
        def on_processing_time(self, time, window, ctx):
            return answer

    return Closing()


class _Noting(_Inheriting):
    def on_processing_time(self, time, window, ctx):
        ctx.register_processing_time_timer(time + 1)
        return fw.TriggerResult.CONTINUE


_ANSWER = fw.TriggerResult.FIRE


class _ByGlobal(_Inheriting):
    def on_processing_time(self, time, window, ctx):
        return _ANSWER


class _OfTheObject(_Inheriting):
    def __init__(self):
        self.on_processing_time = lambda time, window, ctx: fw.TriggerResult.FIRE


class _Counting(fw.CountTrigger):
    pass


class _CountingByClock(fw.CountTrigger):
    def on_processing_time(self, time, window, ctx):
        return fw.TriggerResult.FIRE


_EVENT = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10))
_ARRIVAL = fw.key_by("k").processing_time().window(fw.TumblingProcessingTimeWindows.of(10))
_WAITS = {
    "aligned": (_EVENT, False),
    "count": (_EVENT.trigger(fw.CountTrigger.of(3)), False),
    "never": (_EVENT.trigger(fw.NeverTrigger()), False),
    "ported": (_EVENT.trigger(_Ported()), False),
    "ported, and does something": (_EVENT.trigger(_Noting()), True),
    "ported, of another global": (_EVENT.trigger(_ByGlobal()), True),
    "by default": (_EVENT.trigger(_ByDefault()), True),
    "by closure": (_EVENT.trigger(_closing_over(fw.TriggerResult.FIRE)), True),
    "of the object": (_EVENT.trigger(_OfTheObject()), True),
    "inherited": (_EVENT.trigger(_Inheriting()), False),
    "derived count": (_EVENT.trigger(_Counting.of(2)), False),
    "derived, waiting": (_EVENT.trigger(_CountingByClock.of(2)), True),
    "waiting": (_EVENT.trigger(_Waiting()), True),
    "inside": (_EVENT.trigger(fw.any_of(fw.EventTimeTrigger(), fw.PurgingTrigger.of(_Waiting()))), True),
    "inside, ported": (_EVENT.trigger(fw.all_of(fw.EventTimeTrigger(), fw.PurgingTrigger.of(_Ported()))), False),
    "inside, inherited": (_EVENT.trigger(fw.all_of(fw.EventTimeTrigger(), fw.PurgingTrigger.of(_Inheriting()))), False),
    "early": (_EVENT.trigger(fw.after_watermark(early=fw.ContinuousProcessingTimeTrigger.of(5))), True),
    "early count": (_EVENT.trigger(fw.after_watermark(early=fw.CountTrigger.of(5))), False),
    "timeout": (_EVENT.trigger(fw.ProcessingTimeoutTrigger.of(fw.CountTrigger.of(5), 7)), True),
    "windows": (_ARRIVAL, True),
    "windows with counts": (_ARRIVAL.trigger(fw.CountTrigger.of(2)), True),
    "count windows": (fw.key_by("k").count_window(3), False),
}


@pytest.mark.parametrize("case", _WAITS)
def test_what_waits_for_the_clock(case):
    spec, waits = _WAITS[case]
    planned = fw.plan(spec.aggregate(n=fw.Count()), pa.schema([("k", pa.int64()), ("ts", pa.int64())]))
    assert planned.waits_for_clock is waits


def test_hidden_columns_are_not_seen_by_python_code():
    schema = pa.schema([("k", pa.int64()), ("ts", pa.int64()), ("own", pa.int64())])
    planned = fw.plan(_EVENT.reduce(lambda a, b: a), schema, hidden=("own",))
    assert planned.main_schema.names == ["k", "window_start", "window_end", "ts"]
    stream = open_plan(planned)
    stream.process(pa.table({"k": [1, 1], "ts": [2, 3], "own": [0, 0]}))
    assert stream.advance_watermark(9).main["ts"].to_pylist() == [2]
