"""How Sphinx builds this documentation; `make docs` calls it."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "Kasuri"
author = "The Kasuri developers"
project_copyright = author
release = version = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc", "kasuri_gallery", "kasuri_reference"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "_extensions"]
nitpicky = False
default_role = "code"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "Kasuri"
html_theme_options = {"show_prev_next": False, "navigation_depth": 2}
html_sidebars = {"index": []}
html_show_sourcelink = False
