"""Copies of state where /dev/shm is a small file system of its own, as in containers, or none that can be used."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
IN_NAMESPACE = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
PROGRAM = """
import logging, os, sys, tempfile
from pathlib import Path
from spark_glue.state.copies import Shelf
from spark_glue.state.folders import cache_root, leave

logging.basicConfig(format="LOG %(message)s", stream=sys.stdout)
data, shelf = os.urandom(1 << 20), Shelf("run")
print("ROOT", cache_root().parent)
kept = [f"{n:032x}" for n in range(40) if shelf.put(f"{n:032x}", data)]
print("KEPT", len(kept), all(shelf.get(token, len(data)) == data for token in kept))
filler = Path("/dev/shm/filler")
try:
    with filler.open("wb", buffering=0) as file:
        while True:
            file.write(data)
except OSError:
    pass
print("FULL", shelf.put("f" * 32, data), shelf.get(kept[0], len(data)) == data)
shelf.remove(kept[0])
print("AGAIN", shelf.get(kept[0], len(data)))
leave()
print("LEFT", len(list(cache_root().glob("*/*"))))
"""


def told(options: str, folder: Path) -> dict[str, list[str]]:
    """Runs the program with a /dev/shm of its own; returns its lines by their first word. options: of the mount."""
    command = f'mount -t tmpfs -o {options} tmpfs /dev/shm && exec "$0" -c "$1"'
    done = subprocess.run(
        [*IN_NAMESPACE, command, sys.executable, PROGRAM],
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "TMPDIR": str(folder)},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        name, _, text = line.partition(" ")
        found.setdefault(name, []).append(text)
    return found


@pytest.fixture(autouse=True, scope="module")
def allowed():
    command = [*IN_NAMESPACE, "mount -t tmpfs -o size=1m tmpfs /dev/shm"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    except OSError as problem:
        pytest.skip(f"no namespaces here: {problem}")
    if done.returncode:
        pytest.skip(f"no namespaces here: {done.stderr.strip()}")


def test_a_quarter_of_64_mb_is_taken_and_no_more(tmp_path):
    found = told("size=64m", tmp_path)
    assert found["ROOT"] == ["/dev/shm"]
    count, whole = found["KEPT"][0].split()
    assert 14 <= int(count) <= 16
    assert whole == "True"
    assert found["FULL"] == ["False True"]
    assert found["AGAIN"] == ["None"]
    assert found["LEFT"] == ["0"]
    assert len([line for line in found["LOG"] if "/dev/shm" in line and "is full" in line]) == 1


@pytest.mark.parametrize(
    ("options", "says"), [("size=8m", "has 8 MB free, fewer than 64"), ("ro,size=4k", "may not be written to")]
)
def test_without_room_there_they_lie_in_the_temporary_folder(tmp_path, options, says):
    found = told(options, tmp_path)
    assert found["ROOT"] == [str(tmp_path)]
    assert found["KEPT"] == ["40 True"]
    assert found["FULL"] == ["True True"]
    assert found["LEFT"] == ["0"]
    (line,) = found["LOG"]
    assert says in line
    assert line.endswith(f"they lie in {tmp_path}")
