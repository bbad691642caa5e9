"""A join of two inputs that fall quiet, on Spark; and what each of its micro-batches gives, from their times alone."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import fastwin as fw
import spark_glue
from fastwin.run.inputclocks import InputClocks
from tests.support.spark_events import START_MS
from tests.support.spark_streams import Source, batch_time_ms, part

__all__ = ["SCHEMA", "Replayed", "frame_of", "join", "late_rows", "read_files", "replayed", "side"]

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", tz="UTC"))])
IDLE_MS = 1_500
DELAYS = (1_000, 2_000)


def side(*seconds: float, key: int = 1) -> pa.Table:
    """Returns rows of one key at these times, in seconds from START_MS."""
    return pa.table({"k": [key] * len(seconds), "ts": [int((START_MS + 1_000 * at) * 1_000) for at in seconds]}, SCHEMA)


def join() -> fw.JoinSpec:
    one = fw.key_by("k").event_time("ts").bad_rows("drop").side_output_late_data()
    return fw.window_join(one, one, fw.TumblingEventTimeWindows.of("10 s"), "full")


def frame_of(spark, sources: Sequence[Source]):
    """Returns the join of two folders of files, which waits for neither longer than IDLE_MS."""
    frames = tuple(source.frame(spark) for source in sources)
    delays = tuple(f"{delay} ms" for delay in DELAYS)
    return spark_glue.apply(join(), frames, watermark=delays, key_groups=4, idle=f"{IDLE_MS} ms")


def read_files(folder: Path, batch: int) -> list[int]:
    """Returns how many files of each input have been read by the end of a micro-batch, less one."""
    path = folder / "checkpoint" / "offsets" / str(batch)
    if not path.exists():
        return [-1, -1]
    lines = path.read_text().splitlines()[2:]
    return [-1 if line == "-" else json.loads(line)["logOffset"] for line in lines]


def late_rows(rows: pa.Table) -> int:
    """Returns how many late rows a result has."""
    return sum(part(rows, name).num_rows for name in ("side_late_left", "side_late_right"))


@dataclass(frozen=True)
class Replayed:
    """What this process gives for a micro-batch. late: rows; heard: whether any input has spoken; holder: who holds
    time back then."""

    main: pa.Table
    late: int
    heard: bool
    holder: int | None


def replayed(
    folder: Path, batches: Sequence[int], files: Sequence[Sequence[pa.Table]]
) -> Iterator[tuple[int, Replayed]]:
    """Yields the numbers of micro-batches, and what this process gives for them.

    folder: of the checkpoint, which has the times of the micro-batches. batches: all of them, in order. files: what
    each input has got, in order.
    """
    stream, clocks, watermark = join().open(schemas=(SCHEMA, SCHEMA)), None, fw.MIN_TIMESTAMP
    before, seen = [-1, -1], 0
    for batch in batches:
        now, after = batch_time_ms(folder, batch), read_files(folder, batch)
        results, newest = [stream.advance_watermark(watermark)], [fw.MIN_TIMESTAMP] * 2
        came = [
            pa.concat_tables([SCHEMA.empty_table(), *mine[a + 1 : b + 1]])
            for mine, a, b in zip(files, before, after, strict=True)
        ]
        before = after
        if any(table.num_rows for table in came):
            results.append(stream.process(*came))
            clocks, seen = (InputClocks.begin(2, now), now) if clocks is None else (clocks, seen)
            newest = [
                pc.max(table["ts"].cast(pa.int64())).as_py() // 1_000 if table.num_rows else fw.MIN_TIMESTAMP
                for table in came
            ]
        holder = None
        if clocks is not None:
            clocks, seen = clocks.unseen(seen, now, IDLE_MS).hear(newest, now), now
            holder = clocks.holder(DELAYS, now, IDLE_MS)
            watermark = max(watermark, clocks.watermark(DELAYS, now, IDLE_MS))
        main = pa.concat_tables([result.main for result in results])
        late = sum(table.num_rows for result in results for table in result.side.values())
        yield batch, Replayed(main, late, clocks is not None, holder)
