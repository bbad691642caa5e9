"""Elements with keys of one column, of several and of none, and their key columns as kernels take them."""

import numpy as np
from hypothesis import strategies as st

TEXTS = ["", "a", "b", "ab", "abcde", "abcdefgh", "abcdefgi", "abcdefghijklm", "x" * 70, "x" * 69 + "y"]
SHAPES = [(), (False,), (True,), (True, False), (False, True, True), (False, False)]
element = st.tuples(
    st.tuples(st.sampled_from(TEXTS), st.sampled_from(TEXTS), st.integers(-2, 2)),
    st.integers(-40, 40),
    st.none() | st.integers(-9, 9),
)
batches = st.lists(st.lists(element, max_size=25), min_size=1, max_size=5)


def key_of(texts: tuple[bool, ...], parts: tuple[str, str, int]) -> tuple:
    return tuple(parts[at % 2] if is_text else parts[2] + at for at, is_text in enumerate(texts))


def columns_of(texts: tuple[bool, ...], keys: list[tuple], wide: bool) -> list[tuple]:
    found: list[tuple] = []
    for at, is_text in enumerate(texts):
        values = [key[at] for key in keys]
        if is_text:
            ends = np.cumsum([3, *(len(value) for value in values)]).astype(np.int64 if wide else np.int32)
            found.append((ends, np.frombuffer(("---" + "".join(values)).encode(), np.uint8), None))
        else:
            found.append((np.array(values, np.int64), None))
    return found
