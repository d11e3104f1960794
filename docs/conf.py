"""Sphinx settings. The build reads nothing from the network; `make docs` treats warnings as errors."""

from __future__ import annotations

import tomllib
from pathlib import Path

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
