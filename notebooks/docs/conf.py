"""How Sphinx makes HTML of these pages: ``make docs``."""

from __future__ import annotations

import tomllib
from pathlib import Path

_project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text("utf-8"))

project = "nbdurable"
author = copyright = "the nbdurable maintainers"
release = version = _project["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["performance-figures.md"]  # a part of another page
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

# Docstrings name things in single backticks, also such as are no page's.
default_role = "py:obj"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = napoleon_use_param = False  # types are words, and no links

html_theme = "furo"
html_title = f"nbdurable {release}"
html_copy_source = False
html_show_sphinx = False
