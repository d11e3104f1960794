"""Sphinx settings. The build reads nothing from the network; `make docs` treats warnings as errors."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text
from sphinx.application import Sphinx

_project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]

project = "Whimbrel"
author = "The Whimbrel maintainers"
project_copyright = author
release = version = _project["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]

# Headings of every page can be linked to, as on the web pages of the repository.
myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# Signatures name types of other projects and private aliases; there is no page of ours to link them to.
nitpick_ignore_regex = [("py:.*", r".*")]

html_theme = "furo"
html_title = f"Whimbrel {release}"
html_show_copyright = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "monokai"


class QueryLexer(RegexLexer):
    """Colours for the Whimbrel language."""

    name = "Whimbrel"
    aliases = ("wbl",)
    _KEYWORDS = (
        *(
            "aggr",
            "all",
            "and",
            "as",
            "assign",
            "between",
            "by",
            "case",
            "consuming",
            "context",
            "coordinates",
        ),
        *(
            "define",
            "detect",
            "each",
            "event",
            "every",
            "false",
            "first",
            "for",
            "from",
            "group",
            "having",
            "in",
        ),
        *(
            "is",
            "last",
            "not",
            "null",
            "or",
            "outer",
            "over",
            "param",
            "range",
            "region",
            "seq",
            "Subscription",
        ),
        *("ahead", "along", "around", "completeness", "deliver", "lifetime", "listed", "predict", "refresh"),
        *(
            "report",
            "reuse",
            "subscription",
            "then",
            "this",
            "timestamp",
            "to",
            "true",
            "until",
            "where",
            "within",
        ),
    )
    tokens = {  # noqa: RUF012 (Pygments reads it from the class)
        "root": [
            (r"(#|//).*$", Comment.Single),
            (r"<\s*(pre|post)\s*>", Keyword),
            (words(_KEYWORDS, prefix=r"\b", suffix=r"\b"), Keyword),
            (r"'(\\.|[^'\\])*'|\"(\\.|[^\"\\])*\"", String),
            (r"\d+(\.\d+)?", Number),
            (r"[A-Z]\w*", Name.Class),
            (r"\w+", Name),
            (r"[^\w\s]", Operator),
            (r"\s+", Text),
        ]
    }


def setup(app: Sphinx) -> None:
    """Teach Sphinx the Whimbrel language."""
    app.add_lexer("wbl", QueryLexer)
