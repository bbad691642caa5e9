"""Replica: a stream of which several copies live, in processes that hand each other its input and its changes."""

from __future__ import annotations

from fastwin.errors import StateError
from fastwin.run.guard import alone
from fastwin.run.lostchunks import fails_with_its_chunk
from fastwin.run.ownedstream import OwnedStream
from fastwin.run.planner import Plan
from fastwin.run.results import Result
from fastwin.state.chunks import read_meta
from fastwin.state.gathering import gathered
from fastwin.state.refresh import Refresh

__all__ = ["Replica", "open_replica"]


class Replica(OwnedStream):
    """A stream that also takes elements as partial results, and the changes that another copy of it has made."""

    @alone
    def merge(self, partials: list[bytes]) -> Result:
        """Takes partial results of elements that a feeder has made; see ``Plan.new_feeder``.

        They count as one batch of elements without order. Raises StateError for chunks that are none, or of another
        spec; the stream is of no use then, and every call but restore() is refused.
        """
        operator = self._planned("merge")
        try:
            main, late = operator.merge(partials)
            operator.counters.num_late_records_dropped += late
            return self._result(main, [], [])
        except BaseException as problem:
            self._fail(problem)
            raise

    @fails_with_its_chunk(lambda stream: stream)
    @alone
    def delta(self, refresh: Refresh | None = None) -> bytes:
        """Returns what has changed since the last snapshot() or delta() as one chunk.

        refresh: which unchanged rows to repeat, for a log that forgets its oldest deltas.
        """
        return self._planned("delta").delta(refresh)

    @alone
    def catch_up(self, deltas: list[bytes]) -> None:
        """Takes the deltas of a stream that went on from this one's state, and with them its watermark.

        A fresh stream takes all deltas from a fresh one's first. Raises StateError as restore() does; the state is
        of no use then, and every call but restore() is refused.
        """
        self._caught_up(deltas)

    def _caught_up(self, deltas: list[bytes]) -> None:
        operator = self._planned("catch_up")
        try:
            operator.apply(deltas)
        except BaseException as problem:
            self._fail(problem)
            if isinstance(problem, StateError | MemoryError) or not isinstance(problem, Exception):
                raise
            raise StateError(f"catch_up: the state makes no sense: {problem}") from problem
        self._take_times(operator)

    @alone
    def place(self, in_file: bool) -> int:
        """Moves what is large of the state to files or back to memory, see ``core.memory.regions``.

        Returns its bytes in files. What has moved takes no memory but that of the pages which are touched; the system
        writes these to the disk when it needs the memory. O(state) where it moves, O(panes) else.
        """
        return self._planned("place").place(in_file)

    @alone
    def parts(self, key_groups: int) -> list[tuple[int, bytes]]:
        """Returns all state as chunks of one key group each, with its number; ``gather`` takes them. O(groups x rows).

        key_groups: into how many the keys are divided. What has changed must have been saved. The stream is to be left
        as it is then: its chain of chunks has gone on.
        """
        operator = self._planned("parts")
        groups, turn, found = tuple(range(key_groups)), 0, []
        while turn < key_groups:
            part = operator.delta(Refresh(key_groups, groups, turn, most_turns=key_groups))
            meta = read_meta(part)
            if meta["rows"]:  # then it is of one group; without rows it may be of several
                found.append((turn, part))
            turn += meta["refreshed"]
        return found

    @alone
    def gather(self, parts: list[bytes]) -> None:
        """Takes parts of the state of other replicas of this plan, of different keys, into a fresh one.

        Its watermark is then the highest of theirs. Raises StateError as ``catch_up`` does.
        """
        self._planned("gather")
        assert self._plan is not None
        self._caught_up(gathered(parts, self._plan.config))


def open_replica(plan: Plan) -> Replica:
    """Opens a replica for a plan."""
    return Replica(plan.spec, plan=plan)
