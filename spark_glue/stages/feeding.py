"""What the packets of a share or a key group hold, as a stream takes it: rows, or partial results."""

from collections.abc import Iterable, Sequence
from itertools import groupby

import pyarrow as pa

from spark_glue.plan.frameplan import FramePlan
from spark_glue.plan.types import combined
from spark_glue.stages.packets import Packet, PacketKind, decode

__all__ = ["partials_in", "rows_in"]


def rows_in(packets: Iterable[Packet], schema: pa.Schema) -> pa.Table:
    """Returns all good rows. schema: of a plan's input."""
    return pa.Table.from_batches([decode(blob, schema) for blob in _blobs(packets, PacketKind.GOOD)], schema)


def partials_in(packets: Sequence[Packet], frame_plan: FramePlan) -> list[bytes]:
    """Returns all elements as partial results, for ``Replica.merge``; none where no task has sent some: rows will do.

    packets: in the order in which their elements count as arrived. Rows of other tasks become partial results then, in
    their place: whether they are late is not known before they have met the others.
    """
    if not any(packet.kind == PacketKind.PARTIAL for packet in packets):
        return []
    partials, plan = [], frame_plan.plan
    for kind, some in groupby(packets, lambda packet: packet.kind):
        if kind == PacketKind.PARTIAL:
            partials += _blobs(some, PacketKind.PARTIAL)
        for rows in combined(rows_in(some, plan.input_schema)) if kind == PacketKind.GOOD else ():
            feeder = plan.new_feeder()
            assert feeder is not None
            feeder.add(plan.batch(rows, plan.times(rows)))
            partials += [part.chunk for part in feeder.partials()]
    return partials


def _blobs(packets: Iterable[Packet], kind: PacketKind) -> list[bytes]:
    return [packet.blob for packet in packets if packet.kind == kind and packet.blob is not None]
