"""Sphinx's settings for the docs as a site: the Markdown of this repository, where it lies.

`make docs` builds it. The pages are written for the forge; what a site needs beyond that is in `for_the_web.py`.
"""

import sys
from importlib import metadata
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))

project: Final = "Payrelay"
release: Final = metadata.version("payrelay")
language: Final = "en"
html_title: Final = f"Payrelay {release}"

extensions: Final = ["myst_parser", "for_the_web"]
source_suffix: Final = {".md": "markdown"}
root_doc: Final = "docs/README"
# The source directory is the whole repository, so that links between its folders hold as they do on the forge.
include_patterns: Final = [
    "*.md",
    "docs/**.md",
    "clients/README.md",
    "clients/*/README.md",
    "examples/shop/README.md",
    "src/payrelay_simulator/README.md",
]
exclude_patterns: Final = [".venv", "**/node_modules", "mutants", "build", ".git"]

myst_heading_anchors: Final = 6
myst_enable_extensions: Final = ["html_image"]
# Examples leave parts of JSON out, with an ellipsis; tests/test_doc_blocks.py says which of them are whole.
suppress_warnings: Final = ["misc.highlighting_failure"]

html_theme: Final = "furo"
html_static_path: Final = ["static"]
html_css_files: Final = ["site.css"]
html_favicon: Final = "static/icon.svg"
html_search_scorer: Final = str(Path(__file__).parent / "scorer.js")
html_show_sphinx: Final = False
html_show_copyright: Final = False
html_copy_source: Final = False
html_use_index: Final = False
html_theme_options: Final = {"navigation_with_keys": False}
pygments_style: Final = "a11y-high-contrast-light"
pygments_dark_style: Final = "a11y-high-contrast-dark"
