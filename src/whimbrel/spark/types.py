"""The types of columns: what Spark calls them, what Whimbrel calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import types as sql
from pyspark.sql.pandas.types import from_arrow_schema

from whimbrel.engine.identity import ATTRIBUTES
from whimbrel.graph.operators.base import Types
from whimbrel.model.columns import ARROW_TYPES
from whimbrel.model.deliveries import DELIVERY_COLUMNS, PREDICTED, REUSED
from whimbrel.model.schema import RESERVED_COLUMNS, Type

_WHIMBREL: tuple[tuple[tuple[type[sql.DataType], ...], Type], ...] = (
    ((sql.BooleanType,), Type.BOOL),
    ((sql.ByteType, sql.ShortType, sql.IntegerType, sql.LongType), Type.INT),
    ((sql.FloatType, sql.DoubleType, sql.DecimalType), Type.FLOAT),
    ((sql.StringType, sql.CharType, sql.VarcharType), Type.STRING),
    ((sql.TimestampType, sql.TimestampNTZType, sql.DateType), Type.TIMESTAMP),
)


def quoted(name: str) -> str:
    """Write a column's name so that Spark takes it as it is, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


def type_of(kind: sql.DataType) -> Type | None:
    """Determine the type of an attribute of a Spark type; None if events cannot have such an attribute."""
    return next((mine for theirs, mine in _WHIMBREL if isinstance(kind, theirs)), None)


def attributes_of(schema: sql.StructType) -> dict[str, Type]:
    """List the attributes among the columns of a frame of events."""
    others = RESERVED_COLUMNS | {ATTRIBUTES}
    kinds = {field.name: type_of(field.dataType) for field in schema.fields if field.name not in others}
    return {name: kind for name, kind in kinds.items() if kind is not None}


@dataclass(frozen=True)
class DeliveryColumns:
    """What deliveries have besides detections."""

    focal: Type
    """The type of the keys of the objects."""
    predicted: bool = False
    """Whether they say if an area was predicted."""
    reused: bool = False
    """Whether they say whose selection stood for one's own."""

    @property
    def fields(self) -> list[pa.Field]:
        """Describe the columns."""
        kinds = {
            "interest": pa.int64(),
            "live": pa.bool_(),
            "predicted": pa.bool_(),
            "interest_area": pa.binary(),
        }
        kinds |= dict.fromkeys(("interest_start", "told"), pa.timestamp("us", "UTC"))
        kinds |= dict.fromkeys(("precision", "recall", "disparity"), pa.float64())
        kinds |= dict.fromkeys(("focal", "by"), ARROW_TYPES[self.focal])
        left_out = {*(() if self.predicted else (PREDICTED,)), *(() if self.reused else REUSED)}
        names = [name for name in DELIVERY_COLUMNS if name not in left_out]
        return [pa.field(name, kinds.get(name, pa.string())) for name in names]


def detection_schema(attributes: Types, told: DeliveryColumns | None = None) -> sql.StructType:
    """List the columns of a frame of detections, or of deliveries."""
    return from_arrow_schema(arrow_schema(attributes, told))


def arrow_schema(attributes: Types, told: DeliveryColumns | None = None) -> pa.Schema:
    """Describe the same columns as Arrow has them."""
    own = [] if told is None else told.fields
    named = _named(attributes, [] if told is None else DELIVERY_COLUMNS)
    fields = [
        pa.field("id", pa.string()),
        pa.field("type", pa.string()),
        pa.field("start", pa.timestamp("us", "UTC")),
        pa.field("end", pa.timestamp("us", "UTC")),
        pa.field("geometry", pa.binary()),
        *(pa.field(name, ARROW_TYPES[kind or Type.STRING]) for name, kind in named.items()),
        *own,
        pa.field("events", pa.list_(pa.string())),
    ]
    return pa.schema(fields)


def _named(attributes: Mapping[str, Type | None], told: Sequence[str]) -> dict[str, Type | None]:
    """Keep attributes apart from the fixed columns, as the engine does."""
    fixed = ("id", "type", "start", "end", "geometry", "events", *told)
    return {(f"{name}_" if name in fixed else name): kind for name, kind in attributes.items()}
