"""How Sphinx builds the documentation: ``make docs``."""

import re
import sys
from pathlib import Path

import cavity

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # for gallery_arguments.py

project = "cavity"
author = "The cavity developers"
copyright = f"2026, {author}"
version = release = cavity.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "auto_examples/**/*.py", "auto_examples/**/*.ipynb"]
templates_path = ["_templates"]
# A name in single backquotes is one of Python's, and is linked where it is documented here.
default_role = "py:obj"

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "cavity"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f8b", "color-brand-content": "#1f5f8b"},
    "dark_css_variables": {"color-brand-primary": "#7db8de", "color-brand-content": "#7db8de"},
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Words of a parameter's type, such as n_features, are looked up, and several classes have them.
suppress_warnings = ["ref.python"]

autosummary_generate = True
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_ivar = True

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    # Short forms: the build has to take minutes, not an hour.
    "reset_argv": "gallery_arguments.quick",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
}


def skip(app, what, name, obj, skipped, options):
    """Leave out what scikit-learn attaches to its estimators; it is documented there."""
    routing = name.startswith("set_") and name.endswith("_request")
    return True if routing or name == "get_metadata_routing" else None


def keep_underscores(app, what, name, obj, options, lines):
    """Stop reStructuredText from reading ``classes_`` as a link to "classes"."""
    lines[:] = [re.sub(r"^:(ivar|vartype) (\w+)_:", r":\1 \2\\_:", line) for line in lines]


def keep_colons(app, what, name, obj, options, lines):
    """Stop napoleon from reading a property's "One thing: another" as a type and its meaning."""
    if what == "property" and lines:
        lines[0] = lines[0].replace(": ", " – ")


def setup(app):
    """Connect the hooks above, before and behind napoleon."""
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", keep_colons, priority=100)
    app.connect("autodoc-process-docstring", keep_underscores, priority=900)
