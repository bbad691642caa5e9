"""Questions about all keys: those that have panes there are read, in portions, however many there are."""

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.errors import SpecError
from fastwin.store import PaneStore
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
    monkeypatch.setattr("fastwin.store.redis._READ_KEYS", 20)
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
