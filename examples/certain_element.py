"""A window that fires when a certain element comes: what was in the basket at the checkout."""

import pyarrow as pa

import fastwin as fw


class AtCheckout(fw.Trigger):
    def on_element(self, element, timestamp, window, ctx):
        return fw.TriggerResult.FIRE_AND_PURGE if element.action == "checkout" else fw.TriggerResult.CONTINUE


class Basket(fw.ProcessWindowFunction):
    def process(self, key, context, elements):
        yield {"items": [element.item for element in elements if element.action == "add"]}


SPEC = (
    fw.key_by("user")
    .window(fw.GlobalWindows.create())
    .trigger(AtCheckout())
    .process(Basket(), output="items array<string>")
)


def actions(*rows):
    users, names, items = zip(*rows, strict=True)
    return pa.table({"user": users, "action": names, "item": pa.array(items, pa.string())})


BATCHES = [
    actions(("ann", "add", "tea"), ("bob", "add", "rice"), ("ann", "add", "milk")),
    actions(("ann", "checkout", None), ("ann", "add", "jam"), ("bob", "checkout", None)),
    actions(("ann", "checkout", None), ("bob", "add", "salt")),
]
WATERMARK = None

if __name__ == "__main__":
    from showing import show

    show(SPEC, BATCHES, WATERMARK)
