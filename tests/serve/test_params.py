"""Parameters of requests: what they are by default."""

import pytest

import fastwin as fw
from fastwin.serve import params
from fastwin.serve.params import SeriesRequest
from fastwin.store import Layout
from tests.support.clicks import clicks, spec_of

SECONDS = spec_of("24 hours", "1 second", pv=fw.Count())
LAYOUT = Layout.of(SECONDS, SECONDS.panes().run(clicks(10)).main.schema)


def plainly(panes: int, coarse: int, most: int) -> int:
    """Returns the default step in panes, by trying all of them; ``coarse``: panes in a coarse one."""
    steps = [1, coarse, *range(1, panes + 1)]
    return next(step for step in steps if panes % step == 0 and panes // step <= most)


@pytest.mark.parametrize("panes", [1, 2, 480, 481, 960, 3_600, 4_801, 65_537, 86_400, 691_199])
def test_default_step_is_found_without_a_look_at_all_panes(monkeypatch, panes):
    """As where their number is a prime one."""
    looked = []

    def counted(*bounds: int):
        for one in range(*bounds):
            looked.append(one)
            yield one

    monkeypatch.setattr(params, "range", counted, raising=False)
    asked = SeriesRequest.of({"key": ["home"], "range": [f"{panes} s"]}, LAYOUT)
    assert asked.step_ms == 1_000 * plainly(panes, LAYOUT.coarse_ms // 1_000, 480)
    assert len(looked) <= 480
