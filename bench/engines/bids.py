"""The bids that all engines read: Parquet files, and the same rows as bare numbers, by columns and, for Flink, rows."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.engines.queries import BIDS, CLOSING_MS
from bench.events import EPOCH_MS, PER_KEY_MS
from bench.scale import PEER_THREADS

__all__ = ["Bids", "make"]

DISORDER_MS = 2_000
BIDS_PER_AUCTION = 15
HOT_EVERY = IN_FLIGHT = 100
ADS_PER_CAMPAIGN = 10


@dataclass(frozen=True)
class Bids:
    """What was written. events: with the last one, which closes the windows, at closed_ms.

    flat, ads: the bids, and each bidder's campaign, as bare int64 row by row. Beside them are ``bids.arrow``, which has
    the bids by columns, and ``ads.parquet``.
    """

    parquet: Path
    flat: Path
    ads: Path
    events: int
    closed_ms: int


def make(folder: Path, events: int, keys: int, batches: int) -> Bids:
    """Writes the bids: one Parquet file for each micro-batch, ``bids.bin`` and ``bids.arrow``.

    Columns: ``auction``, ``bidder``, ``price`` int64 and ``ts``, int64 ms in the flat file. Bidders are drawn evenly,
    12.5 s between two bids of one on average. Auctions are as in Nexmark: every 15th bid opens one, half of the bids
    are for the newest whose number is a multiple of 100, the others for one of the last 100. Each price occurs once.
    For Yahoo's question a bidder is an ad, ten of which are a campaign; what has a price that 3 divides is no view.
    For q8 a price that ends with 0 is a registration, and one that ends with 1, 2 or 3 opens an auction.
    """
    random = np.random.default_rng(11)
    span = events * PER_KEY_MS // keys
    ts = EPOCH_MS + np.arange(events, dtype=np.int64) * span // events
    ts = np.maximum(ts - random.integers(0, DISORDER_MS, events), EPOCH_MS)
    newest = IN_FLIGHT + np.arange(events, dtype=np.int64) // BIDS_PER_AUCTION
    hot, other = newest // HOT_EVERY * HOT_EVERY, newest - random.integers(0, IN_FLIGHT, events)
    auction = np.where(random.integers(0, 2, events) == 0, hot, other)
    names = random.permutation(keys).astype(np.int64) * 7_919 + 1_000_003
    bidder = names[random.integers(0, keys, events)]
    price = random.permutation(events).astype(np.int64)
    closed = EPOCH_MS + span + CLOSING_MS
    parquet = folder / "parquet"
    parquet.mkdir()
    edges = [events * place // batches for place in range(batches + 1)]
    rows = np.column_stack([auction, bidder, price, ts])
    rows = np.vstack([rows, [-1, -1, -1, closed]]).astype("<i8")
    *numbers, times = (np.ascontiguousarray(column) for column in rows.T)
    bids = pa.table([*numbers, pa.array(times, pa.timestamp("ms", tz="UTC"))], names=BIDS)
    with pa.ipc.new_file(folder / "bids.arrow", bids.schema) as file:
        file.write_table(bids)
    for place, (start, end) in enumerate([*itertools.pairwise(edges), (events, events + 1)]):
        part = bids.slice(start, end - start)
        path = parquet / f"{place:04d}.parquet"
        pq.write_table(part, path, row_group_size=-(-len(part) // PEER_THREADS))
        os.utime(path, (1_600_000_000 + place,) * 2)  # Spark takes the oldest first
    rows.tofile(folder / "bids.bin")
    ads = np.append(np.sort(names), -1)
    campaigns = np.append(np.arange(keys, dtype=np.int64) // ADS_PER_CAMPAIGN, -1)
    np.column_stack([ads, campaigns]).astype("<i8").tofile(folder / "ads.bin")
    pq.write_table(pa.table({"bidder": ads, "campaign": campaigns}), folder / "ads.parquet")
    return Bids(parquet, folder / "bids.bin", folder / "ads.bin", events + 1, closed)
