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
html_js_files = ["rondo.js"]
# Furo's own colours in the dark. Debian 12's build of the theme has lost them where the reader's system
# is dark and no button was pressed, and its script does not run (rondo.js has the button).
html_theme_options = {"dark_css_variables": {
    "color-problematic": "#ee5151",
    "color-foreground-primary": "#ffffffcc",
    "color-foreground-secondary": "#9ca0a5",
    "color-foreground-muted": "#81868d",
    "color-foreground-border": "#666666",
    "color-background-primary": "#131416",
    "color-background-secondary": "#1a1c1e",
    "color-background-hover": "#1e2124ff",
    "color-background-hover--transparent": "#1e212400",
    "color-background-border": "#303335",
    "color-background-item": "#444444",
    "color-brand-primary": "#2b8cee",
    "color-brand-content": "#368ce2",
    "color-highlighted-background": "#083563",
    "color-highlight-on-target": "#333300",
    "color-admonition-background": "#18181a",
    "color-card-background": "#18181a",
}}
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_domain_indices = False
pygments_style = "default"
