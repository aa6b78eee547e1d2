"""How Sphinx builds the site: ``make docs``, or ``sphinx-build -W docs site``."""

from __future__ import annotations

import os
import sys
import warnings
from importlib.metadata import files
from pathlib import Path
from urllib.request import Request, urlopen

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.setdefault("MPLBACKEND", "agg")

from numpydoc import xref  # noqa: E402

import bayescfx  # noqa: E402


def answers(address: str) -> bool:
    """Return whether a site gives its inventory; the build passes without a network."""
    try:
        asked = Request(f"{address}objects.inv", headers={"User-Agent": "sphinx"})
        with urlopen(asked, timeout=3):
            return True
    except OSError:
        return False


def mathjax() -> str:
    """Return where the script is that sets formulas, of which the site has a copy."""
    shipped = files("sphinx-mathjax-offline") or ()
    return next(str(file.locate()) for file in shipped if file.name == "tex-svg.js")


project = "bayescfx"
release = bayescfx.__version__
copyright = "the bayescfx developers, MIT licence"
version = release
smartquotes = False  # quotes in options and texts are code
exclude_patterns = [
    "gallery/backreferences",
    "gallery/*.ipynb",
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
]
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "linked",
    "made",
]
templates_path = ["_templates"]

# Markdown, with formulas and cards.
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

# Docstrings: a name in single backticks is a link where there is something to link to.
default_role = "py:obj"
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = True  # names of types are links, other words are not
numpydoc_xref_ignore = "all"
xref.DEFAULT_LINKS.clear()  # they need inventories that may be out of reach
numpydoc_xref_aliases = {
    **{name: f"bayescfx.{name}" for name in bayescfx.__all__ if name[0].isupper()},
    **{name: f"pandas.{name}" for name in ("DataFrame", "Series")},
    "ndarray": "numpy.ndarray",
    "Generator": "numpy.random.Generator",
}
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 80
add_module_names = False
intersphinx_mapping = {
    name: (address, None)
    for name, address in {
        "numpy": "https://numpy.org/doc/stable/",
        "pandas": "https://pandas.pydata.org/docs/",
        "sklearn": "https://scikit-learn.org/stable/",
    }.items()
    if answers(address)
}

# Formulas are set by a script in the site itself, so that it works from the disk.
mathjax_path = "tex-svg.js"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "capture_repr": ("_repr_html_",),
    "within_subsection_order": "FileNameSortKey",
    "reset_modules": ("matplotlib", "made.sharper"),
    "image_srcset": ["2x"],
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("bayescfx",),
    "reference_url": {"bayescfx": None},
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1e9,
    "show_signature": False,
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"bayescfx {release}"
html_static_path = ["_static", mathjax()]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_sidebars = {"index": [], "tutorial": []}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "alt_text": "",
        "text": "bayescfx",
    },
    "navbar_end": ["theme-switcher"],
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc", "sg_download_links"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
