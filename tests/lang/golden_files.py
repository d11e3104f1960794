"""Golden files: cases of a title, an input, `---` and the output that is expected."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"
_TITLE = "# title: "


@dataclass(frozen=True)
class GoldenCase:
    """One case of a golden file."""

    file: str
    title: str
    given: str
    expected: str

    def check(self, actual: str, *, update: bool) -> None:
        """Compare, or write down what is the case now."""
        if update:
            cases = [
                GoldenCase(case.file, case.title, case.given, actual) if case.title == self.title else case
                for case in read_cases(self.file)
            ]
            write_cases(self.file, cases)
        else:
            assert actual.strip("\n") == self.expected


def read_cases(file: str) -> list[GoldenCase]:
    text = (FOLDER / file).read_text(encoding="utf-8")
    cases = []
    for block in ("\n" + text).split("\n" + _TITLE)[1:]:
        title, _, rest = block.partition("\n")
        given, _, expected = rest.partition("\n---\n")
        cases.append(GoldenCase(file, title, given.removesuffix("\n---"), expected.strip("\n")))
    titles = [case.title for case in cases]
    assert len(titles) == len(set(titles)), f"{file} has two cases of one title"
    return cases


def write_cases(file: str, cases: list[GoldenCase]) -> None:
    blocks = [f"{_TITLE}{case.title}\n{case.given}\n---\n{case.expected.strip(chr(10))}\n" for case in cases]
    (FOLDER / file).write_text("\n".join(blocks), encoding="utf-8")
