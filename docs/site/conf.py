# SPDX-License-Identifier: MIT
"""Settings of Sphinx for the web site that tools/site.sh makes."""
project = "Partita"
root_doc = "index"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
nitpicky = True
# Exceptions and types of Python, NumPy and PyTorch, which have no pages here.
nitpick_ignore_regex = [("py:exc", r"(?!partita).*"), ("py:class", r"(?!partita).*")]

myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]
smartquotes = False          # a text may have code without marking it
highlight_language = "none"  # of indented code
default_role = "code"

autodoc_member_order = "groupwise"
autodoc_mock_imports = ["dask", "torch", "zarr", "partita.nn._export"]  # what uses them is described without them
autodoc_default_options = {"members": True}
napoleon_use_param = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = "Partita"
html_copy_source = False


def is_alias(app, what, name, value, skip, options):
    """The class describes the fields of a named tuple; their own texts are "Alias for field number 0"."""
    return str(getattr(value, "__doc__", "")).startswith("Alias for field") or None


def setup(app):
    app.connect("autodoc-skip-member", is_alias)
