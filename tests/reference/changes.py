"""What `Change` means, in plain Python, straight from docs/meaning.md."""

from __future__ import annotations

from dataclasses import replace

from whimbrel.graph.expressions import Attribute, Binary
from whimbrel.graph.operators.change import PREVIOUS, Change

from .data import Item, order
from .expressions import Env, World, holds, read
from .streams import Streams, composite, partitioned


def changed(op: Change, streams: Streams, world: World) -> list[Item]:
    found: list[Item] = []
    differs = Binary("!=", Attribute(PREVIOUS, op.attribute), Attribute(op.alias, op.attribute))
    for group, (items,) in partitioned([streams[op.input]], op.partitioning):
        known = [item for item in sorted(items, key=order) if read(item, op.attribute) is not None]
        for place in range(1, len(known)):
            pair = known[place - 1], known[place]
            parts = {PREVIOUS: pair[0], op.alias: pair[1]}
            near = pair[1].end - pair[0].end <= op.within
            if near and all(holds(each, Env(world, {**parts}, group)) for each in (differs, *op.conditions)):
                found.append(replace(composite(pair, parts, group, world), maker=op.name))
    return sorted(found, key=order)
