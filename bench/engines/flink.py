"""Flink: where its jars are, and the command that runs FlinkJob.java with them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.engines.bids import Bids
from bench.engines.queries import DELAY_MS, Query
from bench.race import Unavailable
from bench.scale import PEER_THREADS

__all__ = ["PACKAGE", "VARIABLE", "command", "find", "install"]

VARIABLE = "FASTWIN_FLINK"
PACKAGE = "apache-flink-libraries==2.3.0"
BUILD = Path(__file__).resolve().parents[2] / "build"
# What Flink's own scripts open to it on Java 17.
_OPENED = (
    "java.base/java.lang", "java.base/java.net", "java.base/java.io", "java.base/java.nio", "java.base/sun.nio.ch",
    "java.base/java.lang.reflect", "java.base/java.text", "java.base/java.time", "java.base/java.util",
    "java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic", "java.base/java.util.concurrent.locks",
)  # fmt: skip


def find() -> Path | Unavailable:
    """Returns the folder with Flink's jars: of the environment, or of ``build/flink``."""
    given = os.environ.get(VARIABLE)
    root = Path(given) if given else BUILD / "flink"
    for folder in (root, root / "lib", root / "pyflink" / "lib"):
        if any(folder.glob("flink-dist-*.jar")):
            return folder
    if given:
        return Unavailable(
            f"{VARIABLE} names {given}: there is no flink-dist-*.jar in it, in its lib or its pyflink/lib"
        )
    return Unavailable(
        f"Flink is missing: 'python -m bench.engines --install-flink' puts {PACKAGE} (330 MB) into build/flink, or let "
        f"{VARIABLE} name the folder of a Flink"
    )


def install() -> int:
    """Lets pip put Flink's jars into ``build/flink``; returns its exit code."""
    target = BUILD / "flink"
    asked = [sys.executable, "-m", "pip", "install", "--no-deps", "--upgrade", "--target", str(target), PACKAGE]
    return subprocess.run(asked, check=False).returncode


def command(bids: Bids, query: Query, folder: Path, state: str, objects: str) -> list[str] | Unavailable:
    """Compiles the job; returns the command for it. folder: for the classes. state: ``hashmap`` or ``rocksdb``."""
    jars = find()
    if isinstance(jars, Unavailable):
        return jars
    java, javac = (_tool(name) for name in ("java", "javac"))
    if java is None or javac is None:
        return Unavailable("Flink needs a Java development kit, and there is no javac: install one, or set JAVA_HOME")
    path = os.pathsep.join(str(jar) for jar in sorted(jars.glob("flink-*.jar")) + sorted(jars.glob("log4j-*.jar")))
    source = Path(__file__).with_name("FlinkJob.java")
    if not (folder / "FlinkJob.class").is_file():
        asked = [javac, "-nowarn", "-Xlint:none", "-d", str(folder), "-cp", path, str(source)]
        done = subprocess.run(asked, capture_output=True, text=True, check=False)
        if done.returncode:
            return Unavailable(f"FlinkJob.java does not compile: {done.stderr[-600:]}")
    memory = os.environ.get("FASTWIN_BENCH_DRIVER_MEMORY", "4g")
    opened = [f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED]
    given = [bids.flat, query.name, state, PEER_THREADS, DELAY_MS, query.size_ms, query.slide_ms, objects, bids.ads]
    start = [java, f"-Xms{memory}", f"-Xmx{memory}", *opened, "-cp", os.pathsep.join([str(folder), path])]
    return [*start, "FlinkJob", *map(str, given)]


def _tool(name: str) -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which(name, path=None if home is None else os.path.join(home, "bin"))
