"""``python -m bench``: runs the benchmarks, prints one table, keeps a summary as JSON and draws one chart."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from bench import chart, report, scale

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, epilog="What follows a -- goes to pytest."
    )
    parser.add_argument(
        "json", nargs="?", type=Path, help="pytest-benchmark's JSON of an earlier run: only report on it"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that everything runs")
    parser.add_argument("--keep", action="store_true", help="put the works into results/latest.json, for those there")
    parser.add_argument("--only", metavar="NAME", help="works or files whose name matches, as pytest's -k does")
    known, rest = _split(sys.argv[1:])
    arguments = parser.parse_args(known)
    RESULTS.mkdir(exist_ok=True)
    status, source = 0, arguments.json
    if source is None:
        source = RESULTS / "raw.json"
        status = _run(source, arguments.quick, arguments.only, rest)
    whole = arguments.json is None and not arguments.only and not rest and status == 0
    return _report(source, whole, arguments.keep and status == 0) or status


def _split(given: list[str]) -> tuple[list[str], list[str]]:
    at = given.index("--") if "--" in given else len(given)
    return given[:at], given[at + 1 :]


def _run(target: Path, quick: bool, only: str | None, rest: list[str]) -> int:
    target.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", str(HERE), "--benchmark-only", f"--benchmark-json={target}", "-q"]
    command += ["--benchmark-columns=min,median,rounds", "--tb=short", *(["-k", only] if only else []), *rest]
    environment = dict(os.environ)
    if quick:
        environment[scale.VARIABLE] = "quick"
    return subprocess.run(command, cwd=HERE.parent, env=environment, check=False).returncode


def _report(source: Path, whole: bool, keep: bool) -> int:
    if not source.is_file() or not source.stat().st_size:
        print(f"{source}: there is no result", file=sys.stderr)
        return 1
    found = json.loads(source.read_text())
    summary = found if "works" in found else report.summarise(found)
    if not summary["works"]:
        print(f"{source}: nothing was measured", file=sys.stderr)
        return 1
    print(report.table(summary))
    # What is kept in the repository comes from runs in which nothing failed.
    stem, status = "latest" if (whole or keep) and summary["scale"] == "full" else "partial", 0
    if stem == "latest" and not keep and (kept := RESULTS / "latest.json").exists():
        lost = report.lost(json.loads(kept.read_text()), summary)
        if lost:
            told = f"this run is without {', '.join(lost)}. Delete that file to begin anew"
            print(f"\n{kept} stays as it is: {told}", file=sys.stderr)
            stem, status = "partial", 1
    if keep and stem == "latest" and (kept := RESULTS / "latest.json").exists():
        try:
            summary = report.joined(json.loads(kept.read_text()), summary)
        except ValueError as problem:
            print(f"\n--keep: {problem}", file=sys.stderr)
            stem, status = "partial", 1
    (RESULTS / f"{stem}.json").write_text(json.dumps(summary, indent=1) + "\n")
    picture = RESULTS / ("chart.png" if stem == "latest" else "partial.png")
    chart.draw(summary, picture)
    print(f"\nSummary: {RESULTS / f'{stem}.json'}\nChart: {picture}\nAll rounds: {source}")
    return status


if __name__ == "__main__":
    sys.exit(main())
