"""Faults in Spark's Python workers, ordered from outside: a worker killed, a task failed, or shuffles lost, at a place.

An order is a file in a folder; the first worker that comes to its place takes it, by renaming it, and carries it out.
The places are reached by wrapping methods of ``spark_glue`` in the workers: ``tests.soak.daemon`` does that.

Small deltas lie in the heads of shares, where nothing can happen to them alone. ``move`` has all workers write them to
chunks, and to copies, as large ones are.
"""

import functools
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = [
    "ACTIONS",
    "FOLDER_VARIABLE",
    "MOVES",
    "PLACES",
    "carried_out",
    "check",
    "install",
    "lingered",
    "move",
    "order",
]

FOLDER_VARIABLE = "FASTWIN_TEST_FAULTS"

PLACES = {
    "packed": ("spark_glue.stages.pack", "Packer", "finish"),
    "opened": ("spark_glue.state.shares", "States", "open"),
    "delta written": ("spark_glue.state.log", "StateLog", "append"),
    "stored": (
        "spark_glue.state.shares",
        "States",
        "store",
    ),  # with its files in the cache and its stream left standing
}
"""After which method of which class the place is. There is one more, ``behind``: see ``check``."""

ACTIONS = ("kill", "fail", "linger", "lose")

MOVES = {"deltas in chunks": True, "deltas in heads": False}
_MOVED = "moved"


def move(folder: Path, to: str) -> None:
    """Has workers write deltas as MOVES says from now on; in heads, that is, so long as they are small."""
    path = folder / _MOVED
    if MOVES[to]:
        path.touch()
    else:
        path.unlink(missing_ok=True)


def order(folder: Path, action: str, place: str) -> None:
    """Orders a fault: ``kill`` the worker, ``fail`` the task, or fail it and let a process of it ``linger``.

    ``lose``: the files of all shuffles go, and the task goes on. Tasks behind it find none, so Spark runs the stage
    before once more, and then the rest of this one.
    """
    assert action in ACTIONS
    (folder / f"{action}@{place}").touch()


def carried_out(folder: Path) -> list[str]:
    """Returns the faults that were carried out, as ``action@place``, each as often as it was."""
    return sorted(path.name.split(" ", 2)[2] for path in folder.glob("done *"))


def lingered(folder: Path) -> int:
    """Returns how many copies of deltas the processes that lingered have spoilt."""
    return sum(int(path.name.split()[1]) for path in folder.glob("lingered *"))


def check(place: str, then: Callable[[], int] = lambda: 0) -> None:
    """Carries out an order for this place, if there is one.

    then: what a process that lingers does in the end; it returns how many copies it has spoilt.
    """
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return
    for action in ACTIONS:
        path = Path(folder) / f"{action}@{place}"
        try:
            path.rename(path.with_name(f"done {time.monotonic_ns()} {path.name}"))
        except OSError:
            continue
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if action == "linger" and os.fork() == 0:
            try:
                time.sleep(1.5)  # by then, another attempt has been committed
                (Path(folder) / f"lingered {then()}").touch()
            finally:  # whatever comes, this process never goes on as a worker
                os._exit(0)
        if action == "lose":
            for local in os.environ["SPARK_LOCAL_DIRS"].split(","):  # as Spark tells its workers
                for lost in Path(local).glob("*/shuffle_*"):
                    lost.unlink(missing_ok=True)
            return
        raise RuntimeError(f"a fault, {place}, as it was ordered")


def install() -> None:
    """Wraps the methods of PLACES in this process."""
    import importlib

    _wrap_append()
    for place, (module, owner, method) in PLACES.items():
        _wrap(place, getattr(importlib.import_module(module), owner), method)


def _wrap_append() -> None:
    """Asks before each delta where it shall lie."""
    from spark_glue.state import log

    inner, usual = log.StateLog.append, log.INLINE_BYTES

    @functools.wraps(inner)
    def append(self: Any, *arguments: Any, **named: Any) -> Any:
        folder = os.environ.get(FOLDER_VARIABLE)
        log.INLINE_BYTES = 0 if folder and (Path(folder) / _MOVED).exists() else usual
        return inner(self, *arguments, **named)

    log.StateLog.append = append


def _wrap(place: str, owner: type, method: str) -> None:
    inner = getattr(owner, method)

    @functools.wraps(inner)
    def outer(self: Any, *arguments: Any, **named: Mapping[str, Any]) -> Any:
        result = inner(self, *arguments, **named)
        check(place, functools.partial(_write_again, self))
        return result

    setattr(owner, method, outer)


def _write_again(states: Any) -> int:
    """Spoils what the run has in the cache: a delta cut short, one with other bytes, one that nobody knows.

    Returns how many known ones there were.
    """
    shelf = getattr(states, "_shelf", None)
    if shelf is None:
        return 0
    paths = sorted(path for path in shelf._folder.glob("*") if not path.name.startswith("."))
    for number, path in enumerate(paths):
        data = path.read_bytes()
        spoilt = data[: len(data) // 2] if number % 2 else data[::-1]
        hidden = path.with_name(f".{path.name}.{os.getpid()}")
        hidden.write_bytes(spoilt)
        os.replace(hidden, path)
    shelf.put("0" * 32, b"of an attempt that was forgotten")
    return len(paths)
