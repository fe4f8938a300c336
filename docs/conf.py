"""Configuration of the documentation site: ``python -m sphinx -W -j 2 docs build/site``.

The pages are Markdown (MyST), the reference is made from the docstrings (numpydoc), and the gallery is executed from
``examples`` (sphinx-gallery). The build reads nothing from a network, and neither do the pages it makes.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # the extensions of the site

from importlib.metadata import version as version_of

from sphinx_gallery.sorting import ExplicitOrder

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
    "sphinx_gallery.gen_gallery",
    "_extensions.docstrings",
    "_extensions.mathml",
    "_extensions.pictures",
    "_extensions.repository_pages",
]
exclude_patterns = ["_extensions", "_templates"]
templates_path = ["_templates"]
nitpicky = False  # types in docstrings are prose

highlight_language = "none"  # blocks without a language are output and formulas
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"  # docstrings have the types
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False  # the templates list them
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery", "../examples/teaching"],
    "gallery_dirs": ["generated/gallery", "generated/teaching"],
    "filename_pattern": "",  # all scripts are executed
    "subsection_order": ExplicitOrder(
        [
            f"../examples/gallery/{section}"
            for section in (
                "classification",
                "kernels",
                "regression",
                "novelty",
                "model_selection",
                "streams",
                "solvers",
            )
        ]
    ),
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_",),
    "image_scrapers": ("_extensions.slide_figures.scrape",),
    "image_srcset": ["2x"],
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("maxmargin",),
    "reference_url": {"maxmargin": None},
    "min_reported_time": 3600,  # times of a build say little
    "show_memory": False,
    "write_computation_times": False,
    "parallel": 2,
}

html_theme = "pydata_sphinx_theme"
html_title = "maxmargin"
html_logo = html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_copy_source = False
html_theme_options = {
    "logo": {"text": "maxmargin"},
    "header_links_before_dropdown": 8,
    "navbar_persistent": ["search-button"],
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
