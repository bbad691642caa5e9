"""Two attempts of each task, in processes that share a cache: whichever is committed, nothing is lost, twice or other."""

import pytest

from tests.soak.attempts import SPECS, disturb
from tests.support.seeds import seed
from tests.support.variants import variants


@pytest.mark.parametrize("kind", variants(SPECS, "user-written"))
def test_whichever_attempt_is_committed(kind, tmp_path):
    done = disturb(kind, seed(), 40, tmp_path)
    assert done.open_windows == 0
    assert done.rows > 500
    assert done.attempts > 100
    assert done.in_chunks > 10
