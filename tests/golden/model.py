"""A naive model of the window operator, in dicts and lists: answers scenarios without any code of ours.

Written from the rules that real Flink's answers teach; ``test_model.py`` holds it to those answers first, and then
uses it for scenarios that nobody has asked Flink.
"""

import json
from typing import Any

MAX = 2**63 - 1
MIN = -(2**63)
GLOBAL = (None, None)
FIRE, PURGE = 1, 2

Window = tuple[Any, Any]


class RefusedError(Exception):
    """What the operator answers with an error."""


def toward_zero(a: int, b: int) -> int:
    """The remainder of a division that rounds toward zero."""
    return a % b if a >= 0 else -(-a % b)


def last_of(window: Window) -> int:
    return MAX if window == GLOBAL else window[1] - 1


class Model:
    """Runs one scenario."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = scenario
        assigner = scenario["assigner"]
        self.kind = assigner["type"]
        self.event = self.kind == "global" or assigner.get("time", "event") == "event"
        self.merging = self.kind in ("session", "dynamic_session")
        self.lateness = scenario.get("allowed_lateness") or 0
        self.watermark, self.clock = MIN, 0
        self.timers: dict[bool, set[tuple[int, str, Window]]] = {True: set(), False: set()}
        self.contents: dict[tuple[str, Window], list[tuple[int, int]]] = {}
        self.open: dict[str, set[Window]] = {}
        self.notes: dict[tuple[str, Window], dict[str, Any]] = {}
        self.window_fires: dict[tuple[str, Window], int] = {}
        self.key_fires: dict[str, int] = {}
        self.output: list[dict[str, Any]] = []
        self.late: list[list[Any]] = []
        self.dropped = 0
        self.at = -1
        self.trigger = scenario.get("trigger") or self._default()

    def _default(self) -> dict[str, Any]:
        if self.kind == "global":
            return {"type": "never"}
        return {"type": "event_time" if self.event else "processing_time"}

    def run(self) -> dict[str, Any]:
        error = error_at = None
        try:
            if self.merging and not self.can_merge(self.trigger):
                raise RefusedError("this trigger cannot merge")
            for item in self.scenario["input"]:
                self.at += 1
                self._take(item)
        except RefusedError as problem:
            error, error_at = str(problem), self.at
        return {
            "output": self.output, "late": self.late, "dropped": self.dropped, "error": error, "error_at": error_at,
            "timers_left": sum(map(len, self.timers.values())), "unordered_values": False, "state_window_reset": False,
        }  # fmt: skip

    def _take(self, item: list[Any]) -> None:
        match item:
            case ["e", key, ts, value, *gap]:
                self.element(key, ts, value, gap[0] if gap else None)
            case ["w", watermark]:
                if watermark > self.watermark:
                    self.watermark = watermark
                    self.run_timers(True, watermark)
            case ["p", time]:
                self.clock = time
                self.run_timers(False, time)
            case ["snapshot"]:
                self.watermark = MIN

    # --- elements ---

    def windows_of(self, ts: int, gap: int | None) -> list[Window]:
        told = self.scenario["assigner"]
        if self.kind == "global":
            return [GLOBAL]
        time = ts if told.get("time", "event") == "event" else self.clock
        if time is None:
            raise RefusedError("an element without a time")
        if self.kind == "thirty_seconds":
            start = time - toward_zero(time, 30_000)
            return [(start, start + 30_000)]
        if self.merging:
            gap = told["gap"] if self.kind == "session" else gap
            if gap is None or gap <= 0:
                raise RefusedError("a gap must be above 0")
            if time + gap > MAX:
                raise RefusedError("a bound past int64")
            return [(time, time + gap)]
        size, offset = told["size"], told.get("offset") or 0
        slide = told.get("slide") or size
        start = time - (time - offset) % slide
        found = []
        while start > time - size:
            found.append((start, start + size))
            start -= slide
        return found

    def cleanup(self, window: Window) -> int:
        return min(MAX, last_of(window) + self.lateness) if self.event else last_of(window)

    def is_late(self, window: Window) -> bool:
        return self.event and self.cleanup(window) <= self.watermark

    def element(self, key: str, ts: int, value: int, gap: int | None) -> None:
        taken = False
        for window in self.windows_of(ts, gap):
            if self.merging:
                window = self.merge(key, window)
            if self.is_late(window):
                if self.merging:
                    self.open[key].discard(window)
                continue
            taken = True
            self.contents.setdefault((key, window), []).append((ts, value))
            result = self.on_element(self.trigger, key, window, ts, value)
            if result & FIRE:
                self.fire(key, window, None)
            if result & PURGE:
                self.contents.pop((key, window), None)
            if self.cleanup(window) < MAX:
                self.timers[self.event].add((self.cleanup(window), key, window))
        if not taken and self.event and ts + self.lateness <= self.watermark:
            if self.scenario.get("late_output"):
                self.late.append([key, ts, value, self.at])
            else:
                self.dropped += 1

    def merge(self, key: str, new: Window) -> Window:
        """Adds a window to the open ones of the key; returns the one it has become part of."""
        known = self.open.setdefault(key, set())
        found = {w for w in known if w[0] <= new[1] and w[1] >= new[0]}
        whole = (min(w[0] for w in found | {new}), max(w[1] for w in found | {new}))
        known -= found
        known.add(whole)
        if not found or found == {whole}:
            return whole
        self.on_merge(self.trigger, key, whole, found)
        for old in found:
            self.clear(self.trigger, key, old)
            self.notes.pop((key, old), None)
            self.timers[self.event].discard((self.cleanup(old), key, old))
        parts = [part for w in found for part in self.contents.pop((key, w), [])]
        if parts:
            self.contents[key, whole] = parts
        return whole

    # --- timers ---

    def run_timers(self, event: bool, until: int) -> None:
        timers = self.timers[event]
        while timers and min(timer[0] for timer in timers) <= until:
            timer = min(timers, key=lambda t: t[0])
            timers.discard(timer)
            time, key, window = timer
            if self.merging and window not in self.open.get(key, ()):
                continue
            result = self.on_timer(self.trigger, key, window, time, event)
            if result & FIRE:
                self.fire(key, window, time)
            if result & PURGE:
                self.contents.pop((key, window), None)
            if event == self.event and time == self.cleanup(window):
                self.contents.pop((key, window), None)
                self.clear(self.trigger, key, window)
                self.window_fires.pop((key, window), None)
                if self.merging:
                    self.open[key].discard(window)

    def register(self, event: bool, time: int, key: str, window: Window) -> None:
        self.timers[event].add((time, key, window))

    # --- what goes out ---

    def fire(self, key: str, window: Window, timer: int | None) -> None:
        if not self.contents.get((key, window)):
            return
        elements = self.contents[key, window]
        evictor = self.scenario.get("evictor")
        if evictor and not evictor.get("after"):
            elements = self.evict(evictor, elements)
        value = self.value_of(key, window, elements)
        start, end = window
        self.output.append(
            {"after": self.at, "timer": timer, "key": key, "start": start, "end": end, "ts": last_of(window),
             "value": value}
        )  # fmt: skip
        if evictor and evictor.get("after"):
            elements = self.evict(evictor, elements)
        if elements:
            self.contents[key, window] = elements
        else:
            self.contents.pop((key, window))

    @staticmethod
    def evict(evictor: dict[str, Any], elements: list[tuple[int, int]]) -> list[tuple[int, int]]:
        if not elements:
            return elements
        match evictor["type"]:
            case "count":
                return elements[len(elements) - min(evictor["n"], len(elements)) :]
            case "time":
                newest = max(MIN if ts is None else ts for ts, _ in elements)
                return [e for e in elements if e[0] is None or e[0] > newest - evictor["ms"]]
            case "delta":
                return [e for e in elements if elements[-1][1] - e[1] < evictor["threshold"]]
        raise ValueError(evictor)

    def value_of(self, key: str, window: Window, elements: list[tuple[int, int]]) -> Any:
        values = [value for _, value in elements]
        aggregate = [len(values), sum(values), min(values, default=None), max(values, default=None)]
        match self.scenario["function"]:
            case "aggregate":
                return aggregate
            case "reduce":
                return sum(values) if values else None
            case "process":
                return values
        per_window = self.scenario["function"] == "aggregate_process"
        if per_window and self.merging:
            raise RefusedError("no per-window state with merging windows")
        fires = None
        if per_window:
            fires = self.window_fires[key, window] = self.window_fires.get((key, window), 0) + 1
        self.key_fires[key] = self.key_fires.get(key, 0) + 1
        return {
            "agg": aggregate, "wm": self.watermark, "pt": self.clock, "window_fires": fires,
            "key_fires": self.key_fires[key],
        }  # fmt: skip

    # --- triggers ---

    def can_merge(self, trigger: dict[str, Any]) -> bool:
        if trigger["type"] == "purging":
            return self.can_merge(trigger["of"])
        return trigger["type"] not in ("delta", "never", "one_second_interval")

    def note(self, key: str, window: Window) -> dict[str, Any]:
        return self.notes.setdefault((key, window), {})

    def on_element(self, trigger: dict[str, Any], key: str, window: Window, ts: int, value: int) -> int:
        last, note = last_of(window), self.note(key, window)
        match trigger["type"]:
            case "purging":
                result = self.on_element(trigger["of"], key, window, ts, value)
                return FIRE | PURGE if result & FIRE else result
            case "event_time":
                if last <= self.watermark:
                    return FIRE
                if window == GLOBAL:
                    raise RefusedError("a global window has no end")
                self.register(True, last, key, window)
            case "processing_time":
                if window == GLOBAL:
                    raise RefusedError("a global window has no end")
                self.register(False, last, key, window)
            case "count":
                note["count"] = note.get("count", 0) + 1
                if note["count"] >= trigger["n"]:
                    del note["count"]
                    return FIRE
            case "continuous_event_time":
                if last <= self.watermark:
                    return FIRE
                self.register(True, last, key, window)
                if "next" not in note:
                    self.set_next(True, ts - toward_zero(ts, trigger["interval"]), trigger, key, window)
            case "continuous_processing_time":
                if "next" not in note:
                    now = self.clock
                    self.set_next(False, now - toward_zero(now, trigger["interval"]), trigger, key, window)
            case "delta":
                if "last" not in note:
                    note["last"] = value
                elif value - note["last"] > trigger["threshold"]:
                    note["last"] = value
                    return FIRE
            case "one_second_interval":
                if window == GLOBAL:
                    raise RefusedError("a global window has no end")
                if "seen" not in note:
                    note["seen"] = True
                    self.register(True, self.next_second(), key, window)
                    self.register(True, window[1], key, window)
            case "early_late_count":
                self.register(True, last, key, window)
                note["count"] = note.get("count", 0) + 1
                if note["count"] >= trigger["n"]:
                    del note["count"]
                    return FIRE
        return 0

    def next_second(self) -> int:
        return self.watermark + (1000 - toward_zero(self.watermark, 1000))

    def set_next(self, event: bool, time: int, trigger: dict[str, Any], key: str, window: Window) -> None:
        upcoming = min(time + trigger["interval"], last_of(window))
        self.note(key, window)["next"] = upcoming
        self.register(event, upcoming, key, window)

    def on_timer(self, trigger: dict[str, Any], key: str, window: Window, time: int, event: bool) -> int:
        note = self.note(key, window)
        match trigger["type"], event:
            case "purging", _:
                result = self.on_timer(trigger["of"], key, window, time, event)
                return FIRE | PURGE if result & FIRE else result
            case ("event_time", True) | ("early_late_count", True):
                return FIRE if time == last_of(window) else 0
            case "processing_time", False:
                return FIRE
            case "continuous_event_time", True:
                if time == last_of(window):
                    return FIRE
                if note.get("next") == time:
                    self.set_next(True, time, trigger, key, window)
                    return FIRE
            case "continuous_processing_time", False:
                if time == last_of(window):
                    return FIRE
                if note.get("next") == time:
                    self.set_next(False, time, trigger, key, window)
                    return FIRE
            case "one_second_interval", True:
                if time == window[1]:
                    return FIRE | PURGE
                if self.next_second() < window[1]:
                    self.register(True, self.next_second(), key, window)
                return FIRE
        return 0

    def on_merge(self, trigger: dict[str, Any], key: str, whole: Window, found: set[Window]) -> None:
        last, notes = last_of(whole), [self.notes.get((key, w), {}) for w in found]
        match trigger["type"]:
            case "purging":
                self.on_merge(trigger["of"], key, whole, found)
            case "event_time" if last > self.watermark:
                self.register(True, last, key, whole)
            case "processing_time" if last > self.clock:
                self.register(False, last, key, whole)
            case "count" | "early_late_count":
                counts = [note.pop("count") for note in notes if "count" in note]
                if counts:
                    self.note(key, whole)["count"] = sum(counts)
                if trigger["type"] == "early_late_count" and last > self.watermark:
                    self.register(True, last, key, whole)
            case "continuous_event_time" | "continuous_processing_time":
                upcoming = [note.pop("next") for note in notes if "next" in note]
                if upcoming:
                    self.note(key, whole)["next"] = min(upcoming)
                    self.register(trigger["type"] == "continuous_event_time", min(upcoming), key, whole)

    def clear(self, trigger: dict[str, Any], key: str, window: Window) -> None:
        note, last = self.notes.get((key, window), {}), last_of(window)
        match trigger["type"]:
            case "purging":
                self.clear(trigger["of"], key, window)
                return
            case "event_time":
                self.timers[True].discard((last, key, window))
            case "processing_time":
                self.timers[False].discard((last, key, window))
            case "continuous_event_time" if "next" in note:
                self.timers[True].discard((note["next"], key, window))
            case "continuous_processing_time" if "next" in note:
                self.timers[False].discard((note["next"], key, window))
            case "early_late_count":
                self.timers[True].discard((last, key, window))
        self.notes.pop((key, window), None)


def answer(scenario: dict[str, Any]) -> dict[str, Any]:
    """Returns the model's answer to a scenario, in the shape of its ``expected``."""
    return Model(json.loads(json.dumps(scenario))).run()
