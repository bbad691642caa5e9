"""Panes that a store does not take: counted, told once, and no others go with them."""

import warnings

import pyarrow as pa
import pytest

import fastwin as fw
from fastwin.errors import SpecError, StoreError
from fastwin.store import PaneStore, Written, key_to_text
from tests.support.clicks import FIRST, HOUR, MINUTE, spec_of
from tests.support.numbered_clicks import batch, spec

TIME = pa.timestamp("ms", tz="UTC")


def panes(*modules: str) -> pa.Table:
    start = pa.array([FIRST] * len(modules), TIME)
    return pa.table({"module": list(modules), "window_start": start, "pv": [1] * len(modules)})


def test_keys_that_are_too_long(url):
    """As of a request that somebody has made up: all other keys go on, also when it comes again."""
    longest, long, escaped = "x" * 1_024, "y" * 1_025, "," * 342
    with PaneStore.open(url, spec()) as store:
        with pytest.warns(
            UserWarning, match=r"keys of at most 1024 bytes as text; 2 panes .* such as of '%2C%2C"
        ) as told:
            done = store.put(panes("ok", long, longest, escaped))
        assert done == Written(stored=2, refused=2, refused_key="%2C" * 20)
        assert told[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert store.put(panes(long)) == Written(refused=1, refused_key="y" * 60)
        assert store.keys()["module"].to_pylist() == ["ok", longest]
        assert store.query()["module"].to_pylist() == ["ok", longest]
        with pytest.raises(SpecError, match="keys: at most 1024 bytes in a key's text, got 1025"):
            store.series([long])


@pytest.mark.parametrize("encoded", [False, True])
def test_keys_that_are_no_utf8(url, encoded):
    """As Kafka has them: two of them never become one, and they end no stream."""
    keys = pa.array([b"\xff", b"ok", b"\xfe", b"\xef\xbf\xbd"], pa.binary()).view(pa.string())
    start = pa.array([FIRST] * 4, TIME)
    rows = {"module": keys.dictionary_encode() if encoded else keys, "window_start": start, "pv": [1] * 4}
    with PaneStore.open(url, spec()) as store:
        with pytest.warns(UserWarning, match=r"2 panes of others, longer or not in UTF-8, .* such as of .*xfe"):
            done = store.put(pa.table(rows))
        assert done == Written(stored=2, refused=2, refused_key="\\xfe")
        assert store.query()["module"].to_pylist() == ["ok", "\ufffd"]
        with pytest.raises(SpecError, match="is no key of module"):
            store.query(["\udcff"])
        with pytest.raises(StoreError, match="or not in UTF-8"):
            key_to_text(["\udcff"])


@pytest.mark.parametrize("earlier", [False, True])
def test_text_of_aggregates_that_is_no_utf8(url, monkeypatch, earlier):
    """earlier: as a build has stored it that did not look."""
    text = pa.array([b"\xff", b"a", b"b", b"c"], pa.binary()).view(pa.string())
    at = pa.array([FIRST, FIRST, FIRST + 3 * MINUTE, FIRST], TIME)
    rows = pa.table({"module": ["x", "x", "x", "y"], "ts": at, "city": text})
    windows = spec_of(
        high=fw.Max("city"), low=fw.Min("city"), all=fw.Collect("city"), first=fw.First("city"), top=fw.TopK("city", 9)
    )
    with PaneStore.open(url, windows) as store:
        panes = windows.panes().run(rows).main
        if earlier:
            with monkeypatch.context() as patch:
                patch.setattr("fastwin.store.blocks.valid_text", lambda column: column)
                assert store.put(panes).replaced == 0
        else:
            with pytest.warns(UserWarning, match="text in UTF-8; in 1 values U.FFFD stands for other bytes"):
                assert store.put(panes) == Written(stored=3, replaced=1)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert store.put(panes).replaced == 1
        for found in (store.query(), store.query(coarse=False), store.series(["x"], step="24 hours")):
            row = found.to_pylist()[0]
            assert (row["high"], row["low"], row["first"]) == ("\ufffd", "a", "\ufffd")
            assert sorted(row["all"]) == ["a", "b", "\ufffd"]
            assert sorted(one["value"] for one in row["top"]) == ["a", "b", "\ufffd"]


def test_a_writer_that_lags_behind_another(url):
    """The store's watermark is that of the first of them; what is too old for it is no silent loss."""
    with PaneStore.open(url, spec(), retention="1 hour") as fast:
        fast.put(batch(99))
    with PaneStore.open(url, spec()) as slow:
        with pytest.warns(UserWarning, match="keeps panes for 1 h before its watermark, 2024-01-01T05:00Z; 50 older"):
            assert slow.put(batch(0)) == Written(expired=50)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert slow.put(batch(1)) == Written(expired=50)
        assert slow.watermark == FIRST + 5 * HOUR


def test_the_store_does_not_say_that_it_has_what_was_left_out(url):
    """Neither what is too old, nor what has too long a key: since is where the first pane is that was written."""
    last = FIRST + 99 * 3 * MINUTE
    with PaneStore.open(url, spec(), retention="1 hour") as store, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = store.put(panes("y" * 1_025), advance=False)
        assert (done.first, done.last) == (None, None)
        done = store.put(batch(99), advance=False)
        assert (done.first, done.last) == (last, last)
        store.advance_watermark(FIRST + 5 * HOUR, done.first)
        store.put(panes("y" * 1_025).set_column(1, "window_start", pa.array([last - 3 * MINUTE], TIME)))
        done = store.put(pa.concat_tables([batch(0), batch(98)]), (1, 1), advance=False)
        assert (done.stored, done.expired, done.first, done.last) == (50, 50, last - 3 * MINUTE, last - 3 * MINUTE)
        assert store.put(batch(1), (1, 2), advance=False).first is None
        assert store.meta().since == last
