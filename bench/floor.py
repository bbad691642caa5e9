"""The bare C loops (floor.c), compiled when it is needed and called through ctypes; and how C files here are."""

import ctypes
import os
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.peers import SESSION_COLUMNS, WINDOW_COLUMNS
from bench.race import Unavailable

__all__ = ["Floor", "compiled", "floor"]

_ROW = np.dtype([(name, np.int64) for name in ("key", "start", "n", "s", "lo", "hi")])
_SESSION = np.dtype([(name, np.int64) for name in ("key", "start", "end", "n", "s", "lo", "hi")])


class Floor:
    """Count, sum, min, max by the C loops: of tumbling windows, and of sessions of events in order of time."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._accumulate = library.accumulate
        self._sessions, self._write = library.accumulate_sessions, library.write_sessions
        self._accumulate.restype = self._sessions.restype = ctypes.c_int64
        self._write.restype = None

    def table(self, rows: int) -> np.ndarray:
        """Returns an empty table with room for twice as many rows."""
        return np.zeros(1 << (2 * rows - 1).bit_length(), dtype=_ROW)

    def run(self, columns: list[np.ndarray], size_ms: int, table: np.ndarray) -> np.ndarray:
        """Fills and returns the table from columns key, time (ms) and value, each int64[n]."""
        pointers = [_pointer(array) for array in (*columns, table)]
        n, bits = len(columns[0]), len(table).bit_length() - 1
        self._accumulate(ctypes.c_int64(n), *pointers[:3], ctypes.c_int64(size_ms), pointers[3], ctypes.c_int64(bits))
        return table

    @staticmethod
    def result(table: np.ndarray) -> pa.Table:
        """Returns the rows as the other contenders give them."""
        taken = table[table["n"] > 0]
        columns = [taken[name] for name in _ROW.names]
        return pa.table(columns, names=WINDOW_COLUMNS)

    def sessions(self, columns: list[np.ndarray], gap_ms: int, keys: int) -> pa.Table:
        """Returns the sessions of events in order of time, in order of their ends; columns, int64[n], as for ``run``.

        keys: how many there are at most.
        """
        n, bits = len(columns[0]), (2 * keys - 1).bit_length()
        table, over = np.zeros(1 << bits, dtype=_SESSION), np.empty(n, dtype=_SESSION)
        at = [_pointer(array) for array in (*columns, table, over)]
        n = self._sessions(ctypes.c_int64(n), *at[:3], ctypes.c_int64(gap_ms), at[3], ctypes.c_int64(bits), at[4])
        ends = over["end"][:n]
        first, span = int(ends.min()), int(ends.max() - ends.min() + 1)
        found, counts = np.empty((len(_SESSION), n), dtype=np.int64), np.zeros(span, dtype=np.int64)
        self._write(
            ctypes.c_int64(n), at[4], ctypes.c_int64(first), _pointer(counts), ctypes.c_int64(span), _pointer(found)
        )
        return pa.table(list(found), names=SESSION_COLUMNS)


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


@cache
def floor() -> Floor | Unavailable:
    """Returns the loops; Unavailable without a compiler."""
    library = compiled("floor.c")
    return library if isinstance(library, Unavailable) else Floor(library)


def compiled(source: str, *options: str, how: type[ctypes.CDLL] = ctypes.CDLL) -> ctypes.CDLL | Unavailable:
    """Compiles a C file of this folder into a temporary one, and loads it; Unavailable without a compiler."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    if shutil.which(command[0]) is None:
        command = ["cc"]
    if shutil.which(command[0]) is None:
        return Unavailable("the C loop needs a C compiler, and there is none (set CC to name one)")
    with tempfile.TemporaryDirectory() as folder:
        target, path = Path(folder) / "library.so", Path(__file__).with_name(source)
        done = subprocess.run(
            [*command, "-O3", "-shared", "-fPIC", *options, "-o", str(target), str(path)],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            return Unavailable(f"{source} does not compile with {command[0]}: {done.stderr.strip()}")
        return how(str(target))
