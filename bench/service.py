"""``python -m bench.service``: readers of the page's API and a writer, for a minute; how long readers wait, and the CPU
time of a request."""

import argparse
import contextlib
import http.client
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from multiprocessing import Process, Queue

import numpy as np
import pyarrow as pa

from bench.events import EPOCH_MS
from bench.processes import cpu_seconds, ending
from bench.visitors import PANE, SPEC
from fastwin.store import PaneStore

KEYS = 40
TIMEOUT_S = 60


def panes(first: int, count: int) -> pa.Table:
    """Returns panes of all keys, from a time on."""
    dice = np.random.default_rng(first % 1_000_003)
    n = KEYS * count * 5
    table = pa.table(
        {
            "module": pa.array([f"m{i}" for i in dice.integers(0, KEYS, n)]),
            "ts": pa.array(np.sort(dice.integers(first, first + count * PANE, n)), pa.timestamp("ms", tz="UTC")),
            "user": dice.integers(0, 50_000, n),
        }
    )
    return SPEC.panes().run(table).main


def questions(dice: random.Random) -> str:
    """Returns what a page asks: mostly a few windows and ranges, of keys that many look at."""
    kind = dice.random()
    window, span = dice.choice(("1h", "6h", "24h")), dice.choice(("6h", "24h"))
    if kind < 0.3:
        return "/api/store"
    if kind < 0.6:
        return f"/api/current?window={window}&limit=1000"
    some = dice.sample(range(8), 3) if dice.random() < 0.8 else dice.sample(range(KEYS), 3)
    return f"/api/series?window={window}&range={span}" + "".join(f"&key=m{i}" for i in some)


def read(port: int, readers: int, seconds: float, pause: float, found: Queue) -> None:
    """Lets readers ask, each on a connection of its own; puts how long each answer took, and what failed or was no
    200."""
    waits: list[tuple[str, float]] = []
    wrong: list[str] = []
    end = time.monotonic() + seconds

    def one(seed: int) -> None:
        dice = random.Random(seed)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        while time.monotonic() < end:
            path = questions(dice)
            began = time.perf_counter()
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                body = answer.read()
            except (OSError, http.client.HTTPException) as problem:
                wrong.append(f"{type(problem).__name__}: {problem}")
                connection.close()  # the next question opens it anew
                time.sleep(max(pause, 0.1))
                continue
            waits.append((path.partition("?")[0], time.perf_counter() - began))
            if answer.status != 200:
                wrong.append(f"{answer.status} {body[:200]!r}")
            time.sleep(pause)

    threads = [threading.Thread(target=one, args=(seed,)) for seed in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.put((waits, wrong))


@contextlib.contextmanager
def serving(url: str, arguments: list[str]) -> Iterator[tuple[int, int]]:
    """Runs ``fastwin serve`` over a store; yields its process's number and its port."""
    command = [sys.executable, "-m", "fastwin", "serve", "--port", "0", *arguments]
    service = subprocess.Popen(command, env=os.environ | {"FASTWIN_STORE": url}, stdout=subprocess.PIPE, text=True)
    assert service.stdout is not None
    try:
        port = int(service.stdout.readline().split("//127.0.0.1:")[1].split("/")[0])
        print(f"fastwin serve: process {service.pid}, port {port}", flush=True)
        yield service.pid, port
    finally:
        service.terminate()
        service.wait()
        service.stdout.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--pause", type=float, default=0.0, help="of a reader between two questions, s")
    parser.add_argument("--every", type=float, default=3.0, help="the writer's pause between two batches, s")
    parser.add_argument(
        "--store", help="URL of an empty store, which is filled and stays so; a RocksDB of its own if there is none"
    )
    parser.add_argument("arguments", nargs="*", help="for fastwin serve, behind --")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.store or f"rocksdb:{folder}/store"
        found: Queue = Queue()
        with PaneStore.open(url, SPEC) as store:
            if store.meta() is not None:
                parser.error(f"--store: {url} holds panes; give an empty one, for what is put stays there")
            store.put(panes(EPOCH_MS, 960))
            with serving(url, given.arguments) as (pid, port):
                began, before = time.monotonic(), cpu_seconds(pid)
                reader = Process(target=read, args=(port, given.readers, given.seconds, given.pause, found))
                reader.start()
                with ending([reader]):
                    batches = 0
                    while time.monotonic() - began < given.seconds:
                        store.put(panes(EPOCH_MS + (960 + batches) * PANE, 1))
                        batches += 1
                        time.sleep(given.every)
                    waits, wrong = found.get(timeout=2 * TIMEOUT_S)
                    reader.join()
                used = cpu_seconds(pid) - before
    told = f"{len(waits):,} answers, {len(wrong)} failed or were no 200, {batches} batches"
    print(f"{told}, load {os.getloadavg()[0]:.1f}")
    if not waits:
        sys.exit("\n".join(wrong[:5]))
    print(f"CPU time of the service: {1_000 * used / len(waits):.2f} ms a request")
    for name in ("", *sorted({path for path, _ in waits})):
        some = 1_000 * np.array([seconds for path, seconds in waits if path.startswith(name)])
        p50, p99 = np.percentile(some, [50, 99])
        print(
            f"  {name or 'all':<16}{len(some):>9,}   p50 {p50:6.0f} ms   p99 {p99:6.0f} ms   max {some.max():6.0f} ms"
        )
    for line in wrong[:5]:
        print(line)


if __name__ == "__main__":
    main()
