"""The specifications of the demo, as a text: the demo leaves it as a file beside the checkpoints of its queries."""

import argparse

from spark_glue.apps.demo.source import Source

__all__ = ["specs_text"]

_TEXT = """\
\"\"\"What the queries of this run compute. fastwin why and fastwin inspect read it: --spec specs.py:tumbling\"\"\"

import fastwin as fw

keyed = fw.key_by({key!r}).event_time({time!r})

tumbling = (
    keyed.window(fw.TumblingEventTimeWindows.of({hop!r}))
    .side_output_late_data()
    .bad_rows("divert")
    .aggregate({of_tumbling})
)

sliding = (
    keyed.window(fw.SlidingEventTimeWindows.of({window!r}, {slide!r})).bad_rows("drop").aggregate(n=fw.Count())
)

sessions = (
    fw.key_by({session_key!r})
    .event_time({time!r})
    .window(fw.EventTimeSessionWindows.with_gap({gap!r}))
    .bad_rows("drop")
    .aggregate(n=fw.Count(), first=fw.Min({time!r}), last=fw.Max({time!r}))
)

# The windows that the page shows: how many events there are, and of how many aircraft. An element that is late for its
# pane is not late for the windows over it, so panes are kept as long as a window.
shown = (
    keyed.window(fw.SlidingEventTimeWindows.of({window!r}, {slide!r}))
    .allowed_lateness({window!r})
    .bad_rows("drop")
    .aggregate({of_page})
)
page = shown.panes()
"""


def specs_text(source: Source, arguments: argparse.Namespace) -> str:
    """Returns the text of a file with the specifications tumbling, sliding, sessions, shown, and page, its panes."""
    delay = "" if source.delay is None else f", mean_delay=fw.Mean({source.delay!r})"
    visitors = "" if source.session_key == source.key else f", uv=fw.HyperLogLog({source.session_key!r})"
    return _TEXT.format(
        key=source.key,
        time=source.time,
        session_key=source.session_key,
        hop=arguments.hop,
        window=arguments.window,
        slide=arguments.slide,
        gap=arguments.gap,
        of_tumbling=f"n=fw.Count(){delay}",
        of_page=f"pv=fw.Count(){visitors}",
    )
