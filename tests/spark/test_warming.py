"""Kernels on Spark: on every executor before they are needed, and once on a machine."""

from __future__ import annotations

import whimbrel as wb
from whimbrel.spark import warm
from whimbrel.spark.warming import begin

LATE = "define Late detect Leave then not Arrive for 1 h group by source"


def test_tasks_compile_on_executors_what_is_not_there(spark):
    done = warm(spark, wb.compile(LATE), tasks=2)
    assert done.num_rows == 2
    for row in done.to_pylist():
        assert row["compiled"] + row["kept"] >= 10
        assert row["folders"]


def test_a_local_spark_is_warmed_by_its_driver(spark):
    query = wb.compile(LATE)
    work = begin(query, spark.range(1))
    assert work is not None
    work.wait()
    assert begin(query, spark.range(1)) is work
