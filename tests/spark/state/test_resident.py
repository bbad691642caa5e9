"""What a query holds returns to where it was when its keys have gone. The short version of ``make soak``."""

import pytest

from tests.soak.__main__ import PARTS, parse
from tests.soak.resident import assert_returned, run


@pytest.mark.long
def test_all_that_is_held_returns(spark, tmp_path):
    held = run(spark, tmp_path, batches=18, wave=6)
    assert [one.batch for one in held] == [6, 12, 18]
    assert_returned(held)


def test_the_long_version_has_all_parts_if_none_is_named():
    assert parse([]).parts == list(PARTS)
    assert parse(["kills", "--kills", "3"]).parts == ["kills"]
    with pytest.raises(SystemExit):
        parse(["everything"])
