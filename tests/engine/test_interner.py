"""Codes for rows of several columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from whimbrel.engine.interner import Interner
from whimbrel.engine.values import Column, from_arrow, nothing
from whimbrel.model.schema import Type


def test_rows_have_the_same_code_if_they_have_the_same_values() -> None:
    texts = pa.array(["a", "b", None, "a", None]).dictionary_encode()
    numbers = Column(Type.INT, np.array([1, 1, 1, 2, 1]))
    codes = Interner().row_codes([from_arrow(texts), numbers]).tolist()
    assert codes[2] == codes[4]
    assert len(set(codes)) == 4


def test_codes_stay_when_the_same_texts_come_from_another_dictionary() -> None:
    interner = Interner()
    numbers = Column(Type.INT, np.array([7, 7]))
    first = interner.row_codes([from_arrow(pa.array(["x", "y"]).dictionary_encode()), numbers])
    again = interner.row_codes([from_arrow(pa.array(["y", "x"])), numbers])
    assert again.tolist() == first[::-1].tolist()


def test_a_column_of_nulls_is_one_value_whatever_its_type() -> None:
    empty = from_arrow(
        pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int32()), pa.array([], pa.string()))
    )
    interner = Interner()
    assert interner.row_codes([empty, nothing(2)]).tolist() == [0, 0]
    assert interner.row_codes([nothing(1), nothing(1)]).tolist() == [0]
