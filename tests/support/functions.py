"""Functions of users, for tests of state that they write."""

import fastwin as fw

__all__ = ["Spread"]


class Spread(fw.AggregateFunction):
    """The largest less the smallest ``v``."""

    def create_accumulator(self):
        return (None, None)

    def add(self, value, accumulator):
        low, high = accumulator
        return (value.v if low is None else min(low, value.v), value.v if high is None else max(high, value.v))

    def get_result(self, accumulator):
        return accumulator[1] - accumulator[0]

    def merge(self, a, b):
        return (min(a[0], b[0]), max(a[1], b[1]))
