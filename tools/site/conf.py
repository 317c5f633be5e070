# SPDX-License-Identifier: Apache-2.0
"""How Sphinx makes the site of what tools/site/stage.py laid out; tools/docs calls both."""
import os

project = "Rondo"
version = release = os.environ["RONDO_VERSION"]
copyright = "the authors of Rondo, Apache-2.0"
extensions = ["myst_parser"]
myst_heading_anchors = 4
root_doc = "index"
# Snippets are pieces: some have "..." where a lexer expects code.
suppress_warnings = ["misc.highlighting_failure"]
html_theme = "furo"
html_title = "Rondo " + release
html_static_path = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "static")]
html_css_files = ["rondo.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_domain_indices = False
pygments_style = "default"
