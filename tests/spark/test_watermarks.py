"""Who holds Spark's watermark back, from what micro-batches tell: without Spark."""

from spark_glue.stages.counters import INPUT_DELAYS, INPUT_TIMES
from spark_glue.watermarks import Holder, Holders

LEFT, RIGHT = Holder("a", 0), Holder("a", 1)


def frame(*inputs: tuple[int, int]) -> dict[str, int]:
    """Counters of a frame. inputs: the newest time of each, 0 for none, and its delay."""
    times = {key: newest for key, (newest, _) in zip(INPUT_TIMES, inputs, strict=False)}
    return times | {key: delay + 1 for key, (_, delay) in zip(INPUT_DELAYS, inputs, strict=False)}


def join(left: int, right: int) -> dict[str, dict[str, int]]:
    return {"a": frame((left, 10), (right, 0))}


def test_one_input_holds_from_the_first_micro_batch_on():
    holders = Holders()
    assert holders.take("run", {"one": frame((500, 10))}, 0) == Holder("one", 0)
    assert holders.take("run", {"one": frame((0, 10))}, 489) == Holder("one", 0)
    assert holders.take("run", {"one": frame((600, 10))}, 300) is None  # another withWatermark is behind


def test_the_least_of_two_inputs_holds_and_what_has_been_said_counts():
    holders = Holders()
    holders.begin("run")
    assert holders.take("run", join(500, 0), 0) is None  # nothing to check it by
    assert holders.take("run", join(0, 0), 0) == RIGHT  # it has had no row
    assert holders.take("run", join(0, 495), 0) == LEFT  # 489 and 494
    assert holders.take("run", join(506, 0), 489) == RIGHT  # 495 and 494
    assert holders.take("run", join(400, 0), 494) == RIGHT  # late rows do not count


def test_a_run_that_was_not_seen_from_its_start_tells_when_all_have_spoken():
    holders = Holders()
    assert holders.take("run", join(500, 0), 300) is None
    assert holders.take("run", join(600, 0), 300) is None  # who knows what the right one has said before
    assert holders.take("run", join(0, 900), 300) == LEFT
    assert holders.take("run", join(0, 0), 589) == LEFT


def test_a_start_anew_waits_for_each_input_again():
    holders = Holders()
    holders.begin("first")
    holders.take("first", join(500, 800), 0)
    assert holders.take("first", join(0, 0), 489) == LEFT
    holders.end("first")
    holders.begin("second")
    holders.take("second", join(900, 0), 489)
    assert holders.take("second", join(950, 0), 489) == RIGHT


def test_one_of_several_frames_holds_the_others():
    holders = Holders()
    holders.begin("run")
    both = {"a": frame((500, 10)), "b": frame((400, 10))}
    assert holders.take("run", both, 0) is None
    assert holders.take("run", both, 389) == Holder("b", 0)
    assert holders.take("run", both, 200) is None  # there is one behind, of which nothing is known
    assert holders.take("run", both, 389) == Holder("b", 0)
