"""Configuration of the documentation site: ``python -m sphinx -W -j 2 docs build/site``.

The pages are Markdown (MyST), the reference is made from the docstrings (numpydoc), and the gallery is executed from
``examples`` (sphinx-gallery). The build reads nothing from a network, and neither do the pages it makes.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the extensions of the site

from importlib.metadata import version as version_of

project = "maxmargin"
author = "the developers of maxmargin"
copyright = author
version = release = version_of(project)

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "_extensions.docstrings",
    "_extensions.mathml",
    "_extensions.repository_pages",
]
exclude_patterns = ["_extensions", "_templates"]
templates_path = ["_templates"]
nitpicky = False  # types in docstrings are prose

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # docstrings have the types
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False  # the templates list them
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "maxmargin"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navigation_depth": 2,
    "show_prev_next": False,
    "show_nav_level": 1,
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
