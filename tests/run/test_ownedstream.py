"""What the owner of a stream asks of it, and what streams of users have no part in."""

import pytest

import fastwin as fw
from fastwin.run.opening import open_owned
from fastwin.run.ownedstream import OwnedStream
from tests.support.streams import COUNT, table

ROWS = table(("a", 5, 1))
PLAN = fw.plan(COUNT, ROWS.schema)


def test_streams_of_users_have_no_part_in_it() -> None:
    names = {name for name in vars(OwnedStream) if not name.startswith("_")}
    assert names == {"check_invariants", "state_spec", "fail", "operator", "refuse_if_failed", "why_as_of"}
    assert not names & set(dir(fw.Stream))
    assert type(COUNT.open()) is type(COUNT.open(schema=ROWS.schema)) is fw.Stream


@pytest.mark.parametrize("trace", [None, 10])
def test_an_owner_fails_it_until_it_is_restored(trace: int | None) -> None:
    stream = open_owned(PLAN, trace=trace)
    stream.process(ROWS)
    saved = stream.snapshot()
    assert stream.operator.name == PLAN.operator
    stream.refuse_if_failed()
    stream.fail(ValueError("lost"))
    for call in (stream.refuse_if_failed, stream.snapshot, lambda: stream.why_as_of((), "a", None, None)):
        with pytest.raises(fw.StateError, match=r"failed in the middle of a batch \(ValueError: lost\)"):
            call()
    stream.restore([saved])
    stream.refuse_if_failed()
    stream.check_invariants()


@pytest.mark.parametrize(("known", "told"), [(-7, 3), (7, 7)])
def test_an_owner_that_knows_more_of_time_has_it_told(known: int, told: int) -> None:
    stream = open_owned(PLAN)
    stream.process(ROWS)
    stream.advance_watermark(3)
    report = stream.why_as_of(("The owner says so.",), "a", None, None, watermark=known)
    assert report.watermark == told
    assert report.time[0] == "The owner says so."
    assert [(one.start, one.end) for one in report.windows] == [(0, 10)]
    assert stream.why_as_of(("The owner says so.",), "a", None, None).watermark == stream.watermark == 3
