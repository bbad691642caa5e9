"""Faults in Spark's Python workers, ordered from outside: a worker killed, a task failed, or shuffles lost, at a place.

An order is a file in a folder; the first worker that comes to its place takes it, by renaming it, and carries it out.
The places are reached by wrapping methods of ``spark_glue`` in the workers: ``tests.soak.daemon`` does that.
"""

import functools
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["ACTIONS", "FOLDER_VARIABLE", "PLACES", "carried_out", "check", "install", "order"]

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


def order(folder: Path, action: str, place: str) -> None:
    """Orders a fault: ``kill`` the worker, ``fail`` the task, or fail it and let a process of it ``linger``.

    ``lose``: the files of all shuffles go, and the task goes on. Tasks behind it find none, so Spark runs the stage
    before once more, and then the rest of this one.
    """
    assert action in ACTIONS
    (folder / f"{action}@{place}").touch()


def carried_out(folder: Path) -> list[str]:
    """Returns the faults that were carried out, as ``action@place``."""
    return sorted(path.name.removeprefix("done ") for path in folder.glob("done *"))


def check(place: str, then: Callable[[], object] = lambda: None) -> None:
    """Carries out an order for this place, if there is one. then: what a process that lingers does in the end."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return
    for action in ACTIONS:
        path = Path(folder) / f"{action}@{place}"
        try:
            path.rename(path.with_name(f"done {path.name}"))
        except OSError:
            continue
        if action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if action == "linger" and os.fork() == 0:
            time.sleep(1.5)  # by then, another attempt has been committed
            then()
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

    for place, (module, owner, method) in PLACES.items():
        _wrap(place, getattr(importlib.import_module(module), owner), method)


def _wrap(place: str, owner: type, method: str) -> None:
    inner = getattr(owner, method)

    @functools.wraps(inner)
    def outer(self: Any, *arguments: Any, **named: Mapping[str, Any]) -> Any:
        result = inner(self, *arguments, **named)
        check(place, functools.partial(_write_again, self))
        return result

    setattr(owner, method, outer)


def _write_again(states: Any) -> None:
    """Spoils what the run has in the cache: a delta cut short, one with other bytes, one that nobody knows."""
    shelf = getattr(states, "_shelf", None)
    if shelf is None:
        return
    for number, path in enumerate(sorted(path for path in shelf._folder.iterdir() if not path.name.startswith("."))):
        data = path.read_bytes()
        spoilt = data[: len(data) // 2] if number % 2 else data[::-1]
        hidden = path.with_name(f".{path.name}.{os.getpid()}")
        hidden.write_bytes(spoilt)
        os.replace(hidden, path)
    shelf.put("0" * 32, b"of an attempt that was forgotten")
