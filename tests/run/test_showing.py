"""How specs, streams, results and windows show themselves: in a terminal, and in a notebook."""

import pyarrow as pa

import fastwin as fw
from fastwin.testing import WindowHarness
from tests.support.streams import BASE, table

COUNTED = BASE.allowed_lateness(5).side_output_late_data().bad_rows("drop").aggregate(n=fw.Count())


def test_a_spec_says_its_parts_a_line_each():
    lines = repr(COUNTED).splitlines()
    assert lines[0] == "WindowSpec"
    told = dict(line.strip().split(": ", 1) for line in lines[1:])
    assert told["keys"] == "k"
    assert told["windows"] == "tumbling windows of 10 ms"
    assert told["bad rows"] == "counted and dropped"
    assert told["result"] == "aggregate(n=Count(column=None))"
    assert {"time", "fires", "allowed lateness", "late elements"} <= set(told)


def test_a_spec_that_is_not_complete_says_what_it_has():
    assert repr(fw.key_by()) == "WindowSpec\n  keys: none, all rows are one stream"
    assert "operator" not in fw.key_by("k")._repr_html_()


def test_a_spec_in_a_notebook_names_its_operator():
    assert "aligned, because" in COUNTED._repr_html_()


def test_texts_of_users_are_no_html():
    spec = fw.key_by("<b>").event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).aggregate(n=fw.Count())
    rows = pa.table({"<b>": ["<i>x</i>"], "ts": [1]})
    for shown in (spec, spec.run(rows), spec.open()):
        assert "<b>" not in shown._repr_html_().replace("<p><b>", "")
        assert "<i>" not in shown._repr_html_()


def test_a_result_shows_its_first_rows():
    result = BASE.aggregate(n=fw.Count()).run(table(*[("a", 10 * n, 1) for n in range(20)]))
    shown = result._repr_html_()
    assert "<b>result.main</b>: 20 rows" in shown
    assert shown.count("<tr>") == 1 + 8 + 1
    assert "result.late" not in shown


def test_a_result_shows_what_else_came_out():
    stream = COUNTED.open(watermark=0)
    stream.process(table(("a", 50, 1)))
    assert "<b>result.late</b>: 1 row<" in stream.process(table(("a", 5, 1)))._repr_html_()


def test_times_that_python_has_no_object_for_are_shown_as_numbers():
    spec = fw.key_by("k").event_time("ts").window(fw.TumblingEventTimeWindows.of(10)).bad_rows("divert")
    rows = pa.table({"k": [1, 2], "ts": [2**54, 2**62], "d": pa.array([2**62, 1], pa.duration("s"))})
    shown = spec.side_output_late_data().aggregate(d=fw.Last("d")).run(rows)._repr_html_()
    assert f"{2**54 // 10 * 10} of timestamp[ms, tz=UTC]" in shown
    assert f"{2**62} of duration[s]" in shown
    assert "<b>result.bad</b>: 1 row<" in shown


def test_a_stream_says_where_it_stands():
    stream = COUNTED.open(watermark=0)
    assert repr(stream) == "Stream(watermark none yet, 0 events, 0 late, 0 results, 0 open windows)"
    stream.process(table(("a", 5, 1), ("a", 1_050, 1)))
    assert repr(stream) == ("Stream(watermark 1970-01-01 00:00:01.049, 2 events, 0 late, 1 results, 1 open windows)")
    assert "tumbling windows" in stream._repr_html_()
    assert "1970-01-01 00:00:01.049" in stream._repr_html_()
    stream.advance_watermark(fw.MAX_TIMESTAMP)
    assert "watermark the end of time" in repr(stream)


def test_a_join_stream_says_where_it_stands():
    join = fw.window_join(
        fw.key_by("k").event_time("ts"), fw.key_by("k").event_time("ts"), fw.TumblingEventTimeWindows.of(10)
    )
    assert repr(join.open()).startswith("JoinStream(watermark none yet")


def test_a_harness_and_windows_in_a_notebook():
    harness = WindowHarness(COUNTED)
    harness.push({"k": "a", "t": 1, "v": 1})
    assert repr(harness) == "WindowHarness(watermark none yet, 0 emissions, 0 late, 1 open windows, 2 timers)"
    assert harness._repr_svg_().startswith("<svg ")
    assert fw.TumblingEventTimeWindows.of("1 min")._repr_html_() == "<code>tumbling windows of 1 min</code>"
    assert "<th>events</th>" in COUNTED.open().metrics._repr_html_()
