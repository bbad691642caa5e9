"""Panes that a store does not take: counted, told once, and no others go with them."""

import warnings

import pyarrow as pa
import pytest

from fastwin.errors import SpecError
from fastwin.store import PaneStore, Written
from tests.support.clicks import FIRST, HOUR, MINUTE
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
