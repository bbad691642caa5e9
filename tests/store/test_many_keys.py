"""Questions about all keys: those that have panes there are read, in portions, however many there are."""

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.errors import SpecError
from fastwin.store import PaneStore
from fastwin.store.rollup import rolled_up
from fastwin.store.spans import Span
from tests.support.clicks import FIRST, HOUR, MINUTE, clicks, spec_of

SPEC = spec_of("1 hour", "3 minutes", pv=fw.Count(), uv=fw.HyperLogLog("user"))
TIME = pa.timestamp("ms", tz="UTC")


@pytest.fixture
def store(url):
    """Clicks of three hours; of three of ten modules in the last one."""
    table = clicks(2_000, modules=10, hours=3)
    rows = zip(table["module"].to_pylist(), table["ts"].cast(pa.int64()).to_pylist(), strict=True)
    few = [f"module {int(name[-1]) % 3}" if at >= FIRST + 2 * HOUR else name for name, at in rows]
    with PaneStore.open(url, SPEC) as opened:
        opened.put(SPEC.panes().run(table.set_column(0, "module", pa.array(few))).main)
        yield opened


@pytest.fixture
def read(store, monkeypatch):
    """The keys of each portion that is read."""
    portions: list[list[str]] = []
    scan = type(store)._scan

    def scanned(self, layout, keys, spans):
        portions.append(list(keys))
        return scan(self, layout, keys, spans)

    monkeypatch.setattr(type(store), "_scan", scanned)
    return portions


def test_keys_without_panes_there_are_not_read(store, read, monkeypatch):
    monkeypatch.setattr(type(store), "_key_texts", None)
    assert store.query()["module"].to_pylist() == [f"module {i}" for i in range(3)]
    assert store.query(start=FIRST + 3 * MINUTE, end=FIRST + HOUR).num_rows == 10
    assert store.query(start=FIRST + 5 * HOUR, end=FIRST + 6 * HOUR).num_rows == 0
    assert [len(portion) for portion in read] == [3, 10, 0]
    assert read[0] == [f"module%20{i}" for i in range(3)]


@pytest.mark.parametrize("most", [1, 9, 10_000])
def test_no_number_of_keys_is_refused(store, read, monkeypatch, most):
    """Though the same keys are, when they are named."""
    whole = store.query(start=FIRST, end=FIRST + 3 * HOUR)
    keys = whole["module"].to_pylist()
    panes = 3 * HOUR // store.layout.coarse_ms
    monkeypatch.setattr("fastwin.store.checks._MAX_PANES", most * panes)
    read.clear()
    assert store.query(start=FIRST, end=FIRST + 3 * HOUR).equals(whole)
    assert [len(portion) for portion in read] == ([10] if most > 9 else [most] * (10 // most) + [1] * (10 % most))
    if most < 10:
        with pytest.raises(SpecError, match=f"query: at most {most * panes:,} panes in one go, got {10 * panes:,}"):
            store.query(keys, FIRST, FIRST + 3 * HOUR)


def test_no_number_of_bytes_is_refused(store, read, monkeypatch):
    """Portions get smaller, down to one key."""
    whole = store.query(start=FIRST, end=FIRST + 3 * HOUR)
    keys = whole["module"].to_pylist()
    monkeypatch.setattr("fastwin.store.redis._MOST_CELLS", 20)
    monkeypatch.setattr("fastwin.store.redis._FIRST_CELLS", 20)
    level = [Span(1, FIRST, FIRST + 3 * HOUR)]
    total = store._scan(store.layout, read[0], level).nbytes
    for most, expected in ((total - 1, 5), (total // 2, 2)):
        monkeypatch.setattr("fastwin.store.records._MOST_BYTES", most)
        with pytest.raises(SpecError, match=f"at most {most:,} bytes of panes in one go"):
            store.query(keys, FIRST, FIRST + 3 * HOUR)
        read.clear()
        assert store.query(start=FIRST, end=FIRST + 3 * HOUR).equals(whole)
        assert len(read[0]) == 10 and len(read[-1]) <= expected
    monkeypatch.setattr("fastwin.store.records._MOST_BYTES", 10)
    with pytest.raises(SpecError, match="at most 10 bytes"):
        store.query(start=FIRST, end=FIRST + 3 * HOUR)
    assert len(read[-1]) == 1


def test_sets_of_keys_are_read_in_parts(store, monkeypatch):
    if not hasattr(store, "_client"):
        pytest.skip("Redis alone has sets")
    whole = store.query(start=FIRST, end=FIRST + 3 * HOUR)
    start = pa.array([FIRST] * 5_000, TIME)
    store.put(pa.table({"module": [f"x{i}" for i in range(5_000)], "window_start": start, "pv": [1] * 5_000,
                        "uv": pa.nulls(5_000, pa.binary())}), advance=False)  # fmt: skip
    found = store.query(start=FIRST, end=FIRST + HOUR)["module"].to_pylist()
    assert found == sorted([f"module {i}" for i in range(10)] + [f"x{i}" for i in range(5_000)])
    monkeypatch.setattr("fastwin.store.redis._MOST_BLOCKS", 2)  # of a range with more, all known keys are read
    monkeypatch.setattr("fastwin.store.redisservers.Calls.sscan", None)
    assert store.query(start=FIRST + 3 * MINUTE, end=FIRST + 3 * HOUR).num_rows == whole.num_rows


def test_one_key_is_read_in_portions_of_bytes(redis_server, monkeypatch):
    """A question that is too large ends before all of it is here."""
    spec = spec_of("1 hour", "3 minutes", longest=fw.Max("text"))
    texts = [f"{at:010000}" for at in range(40)]
    times = pa.array([FIRST + at * 3 * MINUTE for at in range(40)], TIME)
    asked: list[int] = []
    with PaneStore.open(f"{redis_server.url}?namespace=portions", spec) as store:
        store.put(spec.panes().run(pa.table({"module": ["a"] * 40, "ts": times, "text": texts})).main)
        hours = {"start": FIRST, "end": FIRST + 2 * HOUR, "window": "3 minutes"}
        whole = store.series(["a"], **hours)
        assert whole["longest"].to_pylist() == texts
        answers = type(store)._answers

        def counted(self, pipeline, scan):
            cells = answers(self, pipeline, scan)
            asked.append(len(cells))
            return cells

        monkeypatch.setattr(type(store), "_answers", counted)
        monkeypatch.setattr("fastwin.store.redis._FIRST_CELLS", 4)
        monkeypatch.setattr("fastwin.store.redis._PORTION_BYTES", 70_000)
        assert store.series(["a"], **hours).equals(whole)
        assert asked == [4, 7, 7, 7, 7, 7, 1]
        monkeypatch.setattr("fastwin.store.records._MOST_BYTES", 150_000)
        with pytest.raises(
            SpecError, match="at most 150,000 bytes of panes in one go, got 180,000 in the first 18 val"
        ):
            store.series(["a"], **hours)
        asked.clear()
        monkeypatch.setattr("fastwin.store.records._MOST_BYTES", 2**30)
        monkeypatch.setattr("fastwin.store.redis._PORTION_BYTES", 9_000)  # less than one
        assert store.series(["a"], **hours).equals(whole)
        assert asked == [4] + [1] * 36


def test_what_a_put_reads_is_bounded_in_bytes(url, monkeypatch):
    """Coarse panes are made of few blocks at a time where their panes are long."""
    spec, keys = spec_of("1 hour", "3 minutes", longest=fw.Max("text")), [f"m{i}" for i in range(20)]
    rows = [(key, FIRST + at * 3 * MINUTE, f"{at:010000}") for key in keys for at in range(10)]
    module, starts, texts = zip(*rows, strict=True)
    panes = pa.table({"module": module, "window_start": pa.array(starts, TIME), "longest": texts})
    merged: list[int] = []

    def counted(fields, blocks):
        merged.append(len(blocks))
        return rolled_up(fields, blocks)

    with PaneStore.open(url, spec) as store:
        store.put(panes, (1, 0))
        for module in ("redisblocks", "rocks"):
            monkeypatch.setattr(f"fastwin.store.{module}.rolled_up", counted)
        monkeypatch.setattr("fastwin.store.redis._FIRST_BLOCKS", 5)
        for limit in ("redis._PORTION_BYTES", "rocks._MERGED_BYTES"):
            monkeypatch.setattr(f"fastwin.store.{limit}", 300_000)
        assert store.put(panes, (1, 1)).stored == 200
        assert merged == ([5, *[6] * 5, 5] if hasattr(store, "_client") else [*[6] * 6, 4])  # of 50 KB each
        assert store.query(start=FIRST, end=FIRST + HOUR)["longest"].to_pylist() == [texts[9]] * 20
