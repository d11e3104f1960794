"""Test results as JUnit XML, which CI systems read: a suite for each file, a case for each test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree as ET

from whimbrel.testing.running import ScenarioResult, ScenarioResults

_ILLEGAL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot hold, not even escaped."""


def write_junit(results: ScenarioResults, path: str | Path) -> None:
    """Write the results of a run to a file."""
    Path(path).write_text(junit(results), encoding="utf-8")


def junit(results: ScenarioResults) -> str:
    """Write the results of a run as text.

    `failure` stands for a test whose detections are not as expected, `error` for one that could not be run.
    """
    root = ET.Element("testsuites", {"name": "whimbrel test", **_counts(results.results)})
    for file, of_file in groupby(results.results, key=lambda result: result.file):
        listed = list(of_file)
        suite = ET.SubElement(root, "testsuite", {"name": _clean(str(file)), **_counts(listed)})
        for result in listed:
            suite.append(_case(result))
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _counts(results: Sequence[ScenarioResult]) -> dict[str, str]:
    statuses = [result.status for result in results]
    return {
        "tests": str(len(results)),
        "failures": str(statuses.count("failed")),
        "errors": str(statuses.count("error")),
        "skipped": str(statuses.count("skipped")),
        "time": f"{sum(result.seconds for result in results):.3f}",
    }


def _case(result: ScenarioResult) -> ET.Element:
    case = ET.Element(
        "testcase",
        name=_clean(result.name),
        classname=_clean(result.file.with_suffix("").as_posix().strip("/").replace("/", ".")),
        file=_clean(str(result.file)),
        line=str(result.line),
        time=f"{result.seconds:.3f}",
    )
    tag = {"failed": "failure", "error": "error", "skipped": "skipped"}.get(result.status)
    if tag is not None:
        outcome = ET.SubElement(case, tag, message=_clean(result.summary))
        outcome.text = _clean(result.report)
    return case


def _clean(text: str) -> str:
    return _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text)
