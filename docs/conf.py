"""Sphinx: `make docs`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import gpureduce

project = "gpureduce"
author = "The gpureduce developers"
version = release = gpureduce.__version__
extensions = ["myst_nb", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["_build", "accuracy_table.md"]
html_theme = "pydata_sphinx_theme"
html_theme_options = {"navigation_with_keys": False, "show_nav_level": 2}
html_sidebars = {path.stem: [] for path in Path(__file__).parent.glob("*.md")}
html_sidebars |= {"api": ["sidebar-nav-bs"], "generated/*": ["sidebar-nav-bs"]}
html_static_path = ["static"]
html_css_files = ["narrow.css"]
html_title = f"gpureduce {version}"
html_show_sourcelink = False
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]
