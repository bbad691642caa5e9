"""Functions made of texts: pairs of the same code, and of other code."""

from typing import Any


def made(source: str, name: str = "f", module: str = "__main__") -> Any:
    """Returns a function of a module, compiled from a text."""
    space: dict[str, Any] = {"__name__": module}
    exec(compile(source, "somewhere.py", "exec"), space)
    return space[name]


SAME = [
    ("f = lambda a, b: a + b", "\n\n\nf = lambda a, b: a + b"),
    ("f = lambda a, b: a + b", "f = lambda x, y: x + y"),
    ("def f(a):\n    return a", "def f(a):\n    'What it is for.'\n    return a"),
    ("def f(a):\n    return a in {1, 2}", "def f(a):\n    # why\n    return a in {2, 1}"),
    ("def f(a: int) -> int:\n    return a", "def f(a):\n    return a"),
]
OTHER = [
    ("f = lambda a, b: a + b", "f = lambda a, b: a - b"),
    ("f = lambda a: a + 1", "f = lambda a: a + 2"),
    ("f = lambda a: a + 1", "f = lambda a: a + 1.0"),
    ("f = lambda a: a in (1, True)", "f = lambda a: a in (1, 1)"),
    ("f = lambda a: a.x", "f = lambda a: a.y"),
    ("f = lambda a, n=1: a * n", "f = lambda a, n=2: a * n"),
    ("f = lambda a, *, n=1: a * n", "f = lambda a, *, n=2: a * n"),
    ("f = lambda a: max(a, key=lambda x: x.v)", "f = lambda a: max(a, key=lambda x: x.w)"),
    ("n = 1\ndef make(n):\n    return lambda a: a + n\nf = make(1)", "n = 1\ndef make(n):\n    return lambda a: a + n\nf = make(2)"),
    ("def make(n):\n    return lambda a: a + n[0]\nf = make([1])", "def make(n):\n    return lambda a: a + n[0]\nf = make([2])"),
    ("def make(g):\n    return lambda a: g(a)\nf = make(lambda a: a)", "def make(g):\n    return lambda a: g(a)\nf = make(lambda a: -a)"),
    ("def f(a):\n    return a", "def f(a):\n    return -a"),
    ("def f(a):\n    try:\n        return a\n    except KeyError:\n        return 0", "def f(a):\n    try:\n        return a\n    except ValueError:\n        return 0"),
]  # fmt: skip
