"""``make soak``: drivers, workers, tasks, shuffles and machines lost, tasks twice, hundreds of micro-batches.

python -m tests.soak [kills] [faults] [attempts] [machines] [resident] [doctor] [spilled] [quiet] [rescaled] [saved]
    [--kills 20] [--batches 500] [--kinds tumbling sessions] [--seed N]

Prints what it does as it does it, and a report at the end. Ends with 1 if anything was lost, twice or different, or did
not return to where it was.
"""

import argparse
import functools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

from spark_glue.state.folders import ROOT_VARIABLE, cache_root
from spark_glue.state.live import LIVE_VARIABLE
from spark_glue.state.spilled import FOLDER_VARIABLE
from tests.soak import faults, quiet, resident
from tests.soak.attempts import SPECS, disturb
from tests.soak.cluster import SECONDS
from tests.soak.moves import exported, rescaled
from tests.soak.runs import Run, assert_same, batches_of
from tests.soak.workload import KINDS, tables
from tests.support.spark_streams import Source

INPUT_BATCHES = 13
PARTS = ("kills", "faults", "attempts", "spilled", "quiet", "rescaled", "saved", "machines", "resident", "doctor")
MOST_SHARES = 7


class TornInputError(Exception):
    """Spark has put two files into one micro-batch, so that there is nothing to compare with."""


class Soak:
    """The parts of the soak, and what they have found. folder: for everything that they write."""

    def __init__(self, folder: Path, options: argparse.Namespace) -> None:
        self.folder, self.options = folder, options
        self.dice = random.Random(options.seed)
        self.report: list[str] = []
        self.failed = 0
        self._expected: dict[str, list] = {}
        self._began = time.monotonic()

    def tell(self, text: str) -> None:
        """Prints a line of progress."""
        print(f"[{time.monotonic() - self._began:6.0f} s] {text}", flush=True)

    def part(self, name: str, work: Callable[[], str]) -> None:
        """Runs a part; its line of the report is what it returns, or what went wrong."""
        self.tell(f"{name} ...")
        began = time.monotonic()
        try:
            line = work()
        except Exception as problem:
            traceback.print_exc()
            self.failed += 1
            line = f"FAILED: {type(problem).__name__}: {problem}"
        self.report.append(f"{name}, {time.monotonic() - began:.0f} s: {line}")
        self.tell(self.report[-1])

    @property
    def _inputs(self) -> list[pa.Table]:
        return tables(self.options.seed, INPUT_BATCHES)

    def _new(self, kind: str, name: str, inputs: Sequence[pa.Table] | None = None) -> Run:
        folder = self.folder / f"{kind} {name}"
        folder.mkdir()
        inputs = self._inputs if inputs is None else inputs
        source = Source(folder, inputs[0].schema)
        source.put(*inputs)
        return Run(kind, source, folder / "run")

    def expected(self, kind: str) -> list:
        """Returns what an undisturbed run of a kind gives."""
        if kind not in self._expected:
            run = self._new(kind, "undisturbed")
            run.finish()
            self.tell(f"{kind}: an undisturbed run, to compare with")
            self._expected[kind] = batches_of(run)
        return self._expected[kind]

    def kills(self, count: int) -> str:
        """Kills drivers, each run once or twice."""
        kills = rows = torn = number = 0
        moments: list[int] = []
        while number < count:
            kind = self.options.kinds[number % len(self.options.kinds)]
            run = self._new(kind, f"killed {number} {torn}")
            times = sorted(self.dice.randrange(INPUT_BATCHES) for _ in range(1 + (self.dice.random() < 0.25)))
            for after in times:
                run.kill(self.dice, after)
                if run.torn:
                    break
            if run.torn and torn < count:
                torn += 1
                self.tell(
                    f"killed after {run.killed_after} batches, where Spark's file source begins another one: again"
                )
                continue
            number += 1
            run.finish()
            same = assert_same(batches_of(run), self.expected(kind))
            kills, rows, moments = kills + len(times), rows + same, moments + run.killed_after
            self.tell(f"run {number} of {count}, {kind}, killed after {run.killed_after} batches: {same} rows same")
        return (
            f"{count} runs, {kills} kills after {sorted(moments)} batches written, {rows} rows compared, all the same; "
            f"{torn} more not compared, because Spark put two files into one micro-batch"
        )

    def faults(self) -> str:
        """Has workers killed and tasks failed at every place, for each kind, in an order of its own."""
        every = [f"{action}@{place}" for place in faults.PLACES for action in ("kill", "fail")]
        every += ["fail@behind", "kill@behind", "linger@stored", "lose@stored"]
        rows = again = spoilt = 0
        for kind in self.options.kinds:
            for where, in_chunks in faults.MOVES.items():
                ordered = self.dice.sample(every, len(every))
                run = self._new(kind, f"with faults, {where}")
                faults.move(run.orders, where)
                told = run.finish({str(number): [fault] for number, fault in enumerate(ordered)})
                assert told["stages_again"] >= 2, (
                    f"{kind}: {told['stages_again']} stages ran again where shuffles were lost"
                )
                again += told["stages_again"]
                assert run.carried_out() == sorted(ordered), f"{kind}: carried out were {run.carried_out()}"
                assert not in_chunks or run.lingered(), f"{kind}: who lingered found nothing to spoil"
                spoilt += run.lingered()
                rows += assert_same(batches_of(run), self.expected(kind))
                self.tell(f"{kind}, {where}: {', '.join(ordered)}")
        return (
            f"{2 * len(self.options.kinds)} runs with {len(every)} faults each, with deltas in chunks and in heads, "
            f"{again} stages ran again for lost shuffles, {spoilt} copies spoilt by attempts that lingered, {rows} rows "
            f"compared, all the same"
        )

    def spoilt(self) -> str:
        """Spoils all files in the cache between all batches; streams are not left standing, so that files are read."""
        rows = files = damaged = 0
        for kind in self.options.kinds:
            run = self._new(kind, "with spoilt files")
            faults.move(run.orders, "deltas in chunks")  # what lies in heads has no files
            told = run.finish({str(number): ["spoil"] for number in range(INPUT_BATCHES)}, **{LIVE_VARIABLE: "0"})
            assert told["spoilt"] >= INPUT_BATCHES, f"{kind}: {told['spoilt']} files were there to be spoilt"
            files, damaged = files + told["spoilt"], damaged + told["damaged"]
            rows += assert_same(batches_of(run), self.expected(kind))
            self.tell(f"{kind}: {told['spoilt']} files spoilt, {told['damaged']} times read from the store for that")
        assert damaged > 0, f"of {files} spoilt files none was read"
        return (
            f"{len(self.options.kinds)} runs, {files} files spoilt, {damaged} times was a share read from the store "
            f"because of them, {rows} rows compared, all the same"
        )

    def spilled(self) -> str:
        """Keeps all state in files on the disk, over more keys, with workers killed and tasks failed."""
        every = ["kill@opened", "fail@stored", "kill@stored", "kill@delta written", "fail@behind"]
        inputs = tables(self.options.seed, INPUT_BATCHES, rows=20_000, keys=20_000)
        rows = most = 0
        for kind in self.options.kinds:
            if kind == "user-written":  # Python objects stay in memory
                continue
            plain = self._new(kind, "in memory", inputs)
            plain.finish()
            run = self._new(kind, "on the disk", inputs)
            disk = self.folder / "disk"
            disk.mkdir(exist_ok=True)
            faulty = {str(2 * number + 1): [fault] for number, fault in enumerate(every)}
            told = run.finish(faulty, **{LIVE_VARIABLE: str(1 << 20), FOLDER_VARIABLE: str(disk)})
            assert told["spilled"] > 0, f"{kind}: nothing lay on the disk"
            assert run.carried_out() == sorted(every), f"{kind}: carried out were {run.carried_out()}"
            same, most = assert_same(batches_of(run), batches_of(plain)), max(most, told["spilled"])
            rows += same
            self.tell(f"{kind}: {told['spilled']:,} bytes of a worker on the disk, {same} rows same")
        assert not list(disk.iterdir()), "files were left behind"
        return (
            f"{len(every)} faults in each run, at most {most:,} bytes of a worker on the disk, "
            f"{rows} rows compared, all the same"
        )

    def quiet(self, kills: int) -> str:
        """Lets the inputs of a join fall quiet, and kills its driver."""
        return str(quiet.run(self.folder / "quiet", self.dice, kills, files=12))

    def _run_on(self, run: Run, batches: int) -> int:
        """Runs over what is there, killed on the way every other time; returns how many kills there were.

        Raises TornInputError where that leaves nothing to compare with.
        """
        killed = self.dice.random() < 0.5
        if killed:
            run.kill(self.dice, self.dice.randrange(batches))
            if run.torn:
                raise TornInputError
        run.finish()
        return int(killed)

    def _compared(self, kind: str, found: list[pa.Table]) -> int:
        return assert_same([pa.concat_tables(found)], [pa.concat_tables(self.expected(kind))])

    def _over_kinds(self, name: str, work: Callable[[str, Path], tuple[int, int, str]]) -> str:
        """Does some work for all kinds, and once more where an input was torn. work: gives rows, kills, a text."""
        rows = kills = torn = 0
        for kind in self.options.kinds:
            while True:
                try:
                    # Spark's reader of state takes no checkpoint with a blank in its path.
                    same, killed, text = work(kind, self.folder / f"{name}-{KINDS.index(kind)}-{torn}")
                    break
                except TornInputError:
                    torn += 1
                    assert torn < 20, "Spark puts two files into one micro-batch each time"
            rows, kills = rows + same, kills + killed
            self.tell(f"{kind}: {text}, {killed} kills, {same} rows same")
        return (
            f"{len(self.options.kinds)} queries, {kills} kills, {rows} rows compared, all the same; {torn} more not "
            f"compared, because Spark put two files into one micro-batch"
        )

    def rescaled(self) -> str:
        """Divides the state of stopped queries anew, twice each."""

        def work(kind: str, folder: Path) -> tuple[int, int, str]:
            folder.mkdir()
            inputs, found, kills, first = self._inputs, [], 0, 0
            source, before, sizes = Source(folder, inputs[0].schema), None, []
            for number, part in enumerate((inputs[:5], inputs[5:9], inputs[9:])):
                source.put(*part)
                shares = self.dice.randint(1, MOST_SHARES)
                groups = self.dice.randint(shares, 2 * MOST_SHARES)
                options = ("--shares", str(shares), "--key-groups", str(groups))
                run = Run(kind, source, folder / f"run-{number}", options)
                sizes.append(f"{groups} key groups in {shares} shares")
                if before is not None:
                    first = 1 + rescaled(kind, before.checkpoint, run.checkpoint, shares, groups)
                    self.tell(f"{kind}: divided anew, into {sizes[-1]}")
                killed = self._run_on(run, len(part))
                kills += killed
                found += batches_of(run, first)
                self.tell(f"{kind}: {len(part)} files in {sizes[-1]}{', killed on the way' if killed else ''}")
                before = run
            return self._compared(kind, found), kills, ", then ".join(sizes)

        return self._over_kinds("rescaled", work)

    def saved(self) -> str:
        """Writes savepoints, and starts other queries with them."""

        def work(kind: str, folder: Path) -> tuple[int, int, str]:
            folder.mkdir()
            inputs, found, kills, options, windows = self._inputs, [], 0, (), 0
            for number, part in enumerate((inputs[:7], inputs[7:])):
                (folder / f"{number}").mkdir()
                source = Source(folder / f"{number}", part[0].schema)
                source.put(*part)
                run = Run(kind, source, folder / f"run-{number}", options)
                killed = self._run_on(run, len(part))
                kills += killed
                found += batches_of(run)
                self.tell(f"{kind}: {len(part)} files{', killed on the way' if killed else ''}")
                if not number:
                    path = folder / "savepoint"
                    windows = exported(kind, run.checkpoint, path)
                    self.tell(f"{kind}: a savepoint of {windows} windows")
                    options = ("--history", str(path), "--shares", "3", "--key-groups", "5")
            return self._compared(kind, found), kills, f"{windows} windows in the savepoint"

        return self._over_kinds("saved", work)

    def attempts(self) -> str:
        """Runs tasks twice."""
        attempts = rows = in_chunks = 0
        for number in range(15):
            kind = list(SPECS)[number % len(SPECS)]
            folder = self.folder / f"attempts {number}"
            folder.mkdir()
            done = disturb(kind, self.dice.randrange(1 << 30), 60, folder)
            attempts, rows, in_chunks = attempts + done.attempts, rows + done.rows, in_chunks + done.in_chunks
            self.tell(f"run {number + 1} of 15, {kind}: {done.attempts} attempts, {done.rows} rows same")
        return (
            f"15 runs, {attempts} attempts of tasks, {in_chunks} deltas in chunks and in the cache, {rows} rows compared, "
            f"all the same"
        )

    def resident(self, batches: int) -> str:
        """Runs many micro-batches."""
        import spark_glue

        config = {
            "spark.ui.enabled": False,
            "spark.ui.showConsoleProgress": False,
            "spark.sql.shuffle.partitions": 2,
            "spark.sql.adaptive.enabled": False,
            "spark.sql.streaming.numRecentProgressUpdates": 10_000,
        }
        spark = spark_glue.session(app_name="soak", master="local[2]", config=config)
        spark.sparkContext.setLogLevel("OFF")
        try:
            folder = self.folder / "resident"
            folder.mkdir()
            held = resident.run(spark, folder, batches, max(batches // 60 * 6, 6), self.tell)
            for one in held:
                self.tell(str(one))
            resident.assert_returned(held)
        finally:
            spark.stop()
        return f"{batches} micro-batches\n    second bottom: {held[1]}\n    last:          {held[-1]}"

    def machines(self, count: int) -> str:
        """Loses machines of a cluster in mid-batch, with all that they have."""
        folder = self.folder / "machines"
        command = [sys.executable, "-m", "tests.soak.cluster", str(folder), "--kills", str(count)]
        sizes = {"--batches": 10 * count, "--seed": self.options.seed, "--seconds": max(SECONDS, 300 * count)}
        command += [str(word) for pair in sizes.items() for word in pair]
        told: list[str] = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    told.append(line.rstrip("\n"))
                    self.tell(told[-1])
            except BaseException:
                process.terminate()  # it takes its machines with it
                raise
        assert process.returncode == 0, told[-2:] or "see above"
        return told[-2]

    def doctor(self) -> str:
        """Runs the queries that have what the doctor looks for, all of them."""
        tests = "tests/spark/test_doctor.py"
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", tests], env=os.environ | {"FASTWIN_LONG": "1"}, check=False
        )
        assert done.returncode == 0, f"{tests} failed"
        return "each found"


def parse(arguments: list[str]) -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description="Exactly once, and bounded, under stress."
    )
    # Without a part, argparse looks for the default itself among the choices.
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[], help="which ones; all if none is named")
    parser.add_argument("--kills", type=int, default=20, help="runs that are killed, and machines that are lost (20)")
    parser.add_argument("--batches", type=int, default=500, help="micro-batches of the resident query (500)")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="of windows, to kill and fault (all)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30), help="of all that is random")
    options = parser.parse_args(arguments)
    options.parts = options.parts or list(PARTS)
    return options


def main() -> int:
    options = parse(sys.argv[1:])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no query stays behind
    made = functools.partial(tempfile.TemporaryDirectory, prefix="fastwin-soak-", ignore_cleanup_errors=True)
    # A folder of its own for copies of state: in that of others, others would sweep it.
    with made() as folder, made(dir=cache_root().parent) as cache:
        os.environ[ROOT_VARIABLE] = cache
        soak = Soak(Path(folder), options)
        soak.tell(f"seed {options.seed}, cache in {cache_root()}")
        if "attempts" in options.parts:
            soak.part("tasks attempted twice", soak.attempts)
        if "faults" in options.parts:
            soak.part("workers killed and tasks failed", soak.faults)
            soak.part("files in the cache spoilt", soak.spoilt)
        if "kills" in options.parts:
            soak.part("drivers killed", lambda: soak.kills(options.kills))
        if "spilled" in options.parts:
            soak.part("state on the disk", soak.spilled)
        if "quiet" in options.parts:
            soak.part("quiet inputs", lambda: soak.quiet(options.kills))
        if "rescaled" in options.parts:
            soak.part("state divided anew", soak.rescaled)
        if "saved" in options.parts:
            soak.part("savepoints", soak.saved)
        if "machines" in options.parts:
            soak.part("machines lost", lambda: soak.machines(options.kills))
        if "resident" in options.parts:
            soak.part("keys that come and go", lambda: soak.resident(options.batches))
        if "doctor" in options.parts:
            soak.part("queries with ailments", soak.doctor)
    print("\n".join(["", f"soak, seed {options.seed}:", *(f"  {line}" for line in soak.report)]), flush=True)
    return 1 if soak.failed else 0


if __name__ == "__main__":
    sys.exit(main())
