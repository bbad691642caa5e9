"""Spark's state handle, in memory: for one grouping key at a time, as the processor sees it."""

from collections import defaultdict
from collections.abc import Iterator


class FakeHandle:
    """Keeps values, maps and timers for each key; ``key`` is the current one."""

    def __init__(self) -> None:
        self.key: object = 0
        self.values: dict = defaultdict(dict)
        self.timers: dict = defaultdict(set)
        self.written = 0

    def getValueState(self, name, schema):  # noqa: N802
        return _Value(self, name)

    def getMapState(self, name, key_schema, value_schema):  # noqa: N802
        return _Map(self, name)

    def registerTimer(self, ms: int) -> None:  # noqa: N802
        assert ms >= 0
        self.timers[self.key].add(ms)

    def deleteTimer(self, ms: int) -> None:  # noqa: N802
        self.timers[self.key].remove(ms)

    def expired(self, limit: int) -> list[tuple[int, object]]:
        """Returns the timers up to a time, and their keys, in order."""
        return sorted((ms, key) for key, timers in self.timers.items() for ms in timers if ms <= limit)


class _Value:
    def __init__(self, handle: FakeHandle, name: str) -> None:
        self.handle, self.name = handle, name

    def get(self):
        return self.handle.values[self.handle.key].get(self.name)

    def update(self, value: tuple) -> None:
        assert isinstance(value, tuple)
        self.handle.written += sum(len(part) for part in value if isinstance(part, bytes))
        self.handle.values[self.handle.key][self.name] = value

    def clear(self) -> None:
        self.handle.values[self.handle.key].pop(self.name, None)


class _Map:
    def __init__(self, handle: FakeHandle, name: str) -> None:
        self.handle, self.name = handle, name

    @property
    def items(self) -> dict:
        return self.handle.values[self.handle.key].setdefault(self.name, {})

    def getValue(self, key: tuple):  # noqa: N802
        return self.items.get(key)

    def updateValue(self, key: tuple, value: tuple) -> None:  # noqa: N802
        self.handle.written += sum(map(len, value))
        self.items[key] = value

    def removeKey(self, key: tuple) -> None:  # noqa: N802
        self.items.pop(key, None)

    def keys(self) -> Iterator[tuple]:
        return iter(list(self.items))
