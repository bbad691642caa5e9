"""ByStart finds what a look at all rows finds, however they come and go."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastwin.operators.kept.bystart import ByStart
from fastwin.times import MIN_TIMESTAMP

_starts = st.integers(-50, 50)
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(_starts | st.just(MIN_TIMESTAMP), max_size=30)),  # some are gone already
        st.tuples(st.just("take"), _starts),
        st.tuples(st.just("look"), st.tuples(_starts, _starts)),
    ),
    max_size=30,
)


@given(_steps)
def test_rows_are_found_by_their_slices(steps: list) -> None:
    by_start, there, known = ByStart(), {}, 0
    for kind, what in steps:
        if kind == "add":
            by_start.add(np.array(what, np.int64))
            there |= {known + i: start for i, start in enumerate(what) if start != MIN_TIMESTAMP}
            known += len(what)
            assert by_start.known == known
        elif kind == "take":
            gone = sorted(place for place, start in there.items() if start < what)
            found = sorted(by_start.take_before(what).tolist())
            assert [place for place in found if place in there] == gone  # a slice that comes again brings old rows
            for place in gone:
                del there[place]
        else:
            expected = sorted(place for place, start in there.items() if what[0] <= start <= what[1])
            found = sorted(by_start.between(*what).tolist())
            assert [place for place in found if place in there] == expected
            assert by_start.count(*what) == len(found)
    by_start.take_before(1_000)
    assert by_start.nbytes == 0
