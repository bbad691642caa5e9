"""The scenarios that real Flink has answered, and random ones of their kind."""

import json
import random
from pathlib import Path
from typing import Any

__all__ = ["AGREEING", "RIGHT_SUMS", "SCENARIOS", "scenario"]

FILE = Path(__file__).parent / "flink_2_3_0.jsonl"
SCENARIOS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
AGREEING = [scenario for scenario in SCENARIOS if not scenario["expected"]["state_window_reset"]]
RIGHT_SUMS = {
    "classic-merge-identical-to-merged": [7],
    "classic-merge-identical-to-merged-process": [[1, 2, 3, 4]],
}

SCALE = (1, 10, 1000)


def _assigner(rng: random.Random, unit: int) -> dict[str, Any]:
    time = rng.choice(["event", "event", "event", "processing"])
    kind = rng.choice(["tumbling", "sliding", "session", "dynamic_session", "global", "thirty_seconds"])
    match kind:
        case "tumbling":
            size = unit * rng.randint(1, 5)
            return {
                "type": kind,
                "time": time,
                "size": size,
                "offset": rng.choice([0, rng.randint(1 - size, size - 1)]),
            }
        case "sliding":
            slide = unit * rng.randint(1, 4)
            size = rng.choice([unit * rng.randint(1, 9), slide])
            return {
                "type": kind, "time": time, "size": size, "slide": slide,
                "offset": rng.choice([0, rng.randint(1 - slide, slide - 1)]),
            }  # fmt: skip
        case "session":
            return {"type": kind, "time": time, "gap": unit * rng.randint(1, 3)}
        case "global":
            return {"type": kind}
    return {"type": kind, "time": time}


def _trigger(rng: random.Random, unit: int, assigner: dict[str, Any]) -> dict[str, Any] | None:
    kinds = [
        None, "count", "continuous_event_time", "continuous_processing_time", "delta", "purging", "never",
        "one_second_interval", "early_late_count", "event_time", "processing_time",
    ]  # fmt: skip
    if assigner["type"] == "global":
        kinds = ["count", "delta", "purging", "continuous_event_time", "continuous_processing_time", None]
    if "session" in assigner["type"]:
        kinds = [kind for kind in kinds if kind not in ("delta", "never", "one_second_interval")]
    match rng.choice(kinds):
        case None:
            return None
        case "purging":
            of = _trigger(rng, unit, assigner)
            return None if of is None else {"type": "purging", "of": of}
        case "count":
            return {"type": "count", "n": rng.randint(1, 4)}
        case "early_late_count":
            return {"type": "early_late_count", "n": rng.randint(1, 4)}
        case "delta":
            return {"type": "delta", "threshold": rng.choice([0, 1, 5.5, 20])}
        case ("continuous_event_time" | "continuous_processing_time") as kind:
            return {"type": kind, "interval": rng.choice([unit, unit * 2, max(1, unit * 3 // 4), unit * 7])}
        case kind:
            return {"type": kind}


def _evictor(rng: random.Random, unit: int) -> dict[str, Any] | None:
    after = rng.random() < 0.5
    match rng.choice([None, None, "count", "time", "delta"]):
        case "count":
            return {"type": "count", "n": rng.randint(0, 4), "after": after}
        case "time":
            return {"type": "time", "ms": unit * rng.randint(1, 3), "after": after}
        case "delta":
            return {"type": "delta", "threshold": rng.choice([0, 1, 5.5, 20]), "after": after}
    return None


def scenario(seed: int) -> dict[str, Any]:
    """Returns scenario number ``seed``."""
    rng = random.Random(seed)
    unit = rng.choice(SCALE)
    assigner = _assigner(rng, unit)
    if assigner["type"] == "thirty_seconds":
        unit = 7500
    merging = "session" in assigner["type"]
    trigger = _trigger(rng, unit, assigner)
    functions = ["reduce", "aggregate", "process", "aggregate_process_global"]
    if not merging:
        functions.append("aggregate_process")
    items: list[list[Any]] = []
    watermark, clock = rng.randint(-4, 4) * unit, 0
    for _ in range(rng.randint(3, 40)):
        around = watermark + rng.choice([0, 1, -1, rng.randint(-6 * unit, 6 * unit)])
        match rng.choices(["e", "w", "p", "snapshot"], [10, 3, 2, 1])[0]:
            case "e":
                gap = [unit * rng.choice([1, 1, 2, 3])] if assigner["type"] == "dynamic_session" else []
                items.append(["e", rng.choice("abc"), around, rng.randint(-9, 99), *gap])
            case "w":
                watermark += rng.choice([1, unit - 1, unit, rng.randint(0, 4 * unit)])
                items.append(["w", watermark - rng.choice([0, 0, 0, unit])])
            case "p":
                clock += rng.choice([1, unit - 1, unit, rng.randint(0, 4 * unit)])
                items.append(["p", clock])
            case kind:
                items.append([kind])
    # No order is defined among the elements of joined sessions, so nothing may hang on it.
    evictor = None if merging and rng.random() < 0.9 else _evictor(rng, unit)
    if merging and evictor is not None and evictor["type"] != "time":
        evictor = None
    return {
        "name": f"random-{seed}", "assigner": assigner, "trigger": trigger, "evictor": evictor,
        "allowed_lateness": rng.choice([0, 0, 1, unit, 3 * unit, 10 * unit]), "late_output": rng.random() < 0.5,
        "function": rng.choice(functions), "input": items,
    }  # fmt: skip
