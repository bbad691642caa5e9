"""Count windows with an evictor: after every two trades of a share, the last three of them."""

import pyarrow as pa

import fastwin as fw


class Trades(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        prices = [element.price for element in elements]
        yield prices, sum(prices) / len(prices)


SPEC = (
    fw.key_by("share")
    .window(fw.GlobalWindows.create())
    .trigger(fw.CountTrigger.of(2))
    .evictor(fw.CountEvictor.of(3))  # the same as .count_window(3, 2)
    .process(Trades(), output="prices array<double>, average double")
)


def trades(*rows):
    shares, prices = zip(*rows, strict=True)
    return pa.table({"share": shares, "price": prices})


BATCHES = [
    trades(("x", 1.0), ("y", 50.0), ("x", 2.0)),
    trades(("x", 3.0), ("x", 4.0), ("x", 5.0)),
    trades(("y", 52.0), ("x", 6.0)),
]
WATERMARK = None

if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
