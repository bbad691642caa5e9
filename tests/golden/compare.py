"""Compares an answer with Flink's, leaving open only what Flink leaves open.

Flink defines no order among the timers of one time, and none among the elements of sessions that were joined.
"""

import itertools
import json
from collections import Counter
from typing import Any

COMPARED = ("late", "dropped", "timers_left")


def complaints(expected: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    """Returns what is wrong with an answer, in words; nothing if it agrees."""
    if bool(expected["error"]) != bool(answer["error"]):
        return [f"error: {answer['error']}, Flink's: {expected['error']}"]
    wrong = []
    if expected["error"] and expected["error_at"] != answer["error_at"]:
        wrong.append(f"error at {answer['error_at']}, Flink's at {expected['error_at']}")
    if not expected["error"]:
        wrong += [
            f"{name}: {answer[name]}, Flink's: {expected[name]}" for name in COMPARED if answer[name] != expected[name]
        ]
    unordered = expected["unordered_values"]
    ours = iter([_told(row, unordered) for row in answer["output"]])
    for number, group in enumerate(_unordered_runs(expected["output"])):
        flinks = Counter(_told(row, unordered) for row in group)
        mine = Counter(itertools.islice(ours, len(group)))
        if mine != flinks:
            wrong.append(f"output, run {number}: {sorted(mine - flinks)}, Flink's: {sorted(flinks - mine)}")
            return wrong
    surplus = list(ours)
    if surplus:
        wrong.append(f"output: {len(surplus)} more than Flink's: {surplus[0]}")
    return wrong


def _told(row: dict[str, Any], unordered: bool) -> str:
    value = row["value"]
    if unordered and isinstance(value, list):
        value = sorted(value)
    return json.dumps([row["after"], row["key"], row["start"], row["end"], row["ts"], value], sort_keys=True)


def _unordered_runs(output: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Groups emissions that timers of one time made in one step; one that an element made stands alone."""
    numbered = enumerate(output)
    grouped = itertools.groupby(
        numbered, key=lambda item: (item[1]["after"], item[1]["timer"], item[0] if item[1]["timer"] is None else None)
    )
    return [[row for _, row in group] for _, group in grouped]
