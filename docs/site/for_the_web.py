"""What a site needs beyond the pages as they stand on the forge, as an extension of Sphinx.

The navigation is read from the home page and from the other pages that list pages, so that it is written once. A link
to a folder leads to the page that opens the folder. A diagram becomes a table of its steps, which needs no script and
fits a phone. What a theme writes into a page as a script or a style becomes a file, so that a strict policy of contents
can forbid all else.
"""

import hashlib
import re
from collections.abc import Iterator
from os.path import normpath
from pathlib import Path
from typing import Final

from sphinx.application import Sphinx

HOME: Final = "docs/README"
LISTS: Final = (HOME, "docs/production/README")
"""The pages whose links are the navigation."""
FOLDERS: Final = ("docs/production/runbook/README", "docs/decisions/README")
"""The pages that open a folder of many. The forge lists its files; the site does so below the page."""

START: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Payrelay</title>
<meta http-equiv="refresh" content="0; url={home}"></head>
<body><p><a href="{home}">The docs of Payrelay</a></p></body></html>
"""

FOR_EVERYBODY: Final = (
    ('role="heading"', 'role="heading" aria-level="2"'),
    ('<aside class="sidebar-drawer"', '<aside class="sidebar-drawer" aria-label="All pages"'),
    ('<aside class="toc-drawer', '<aside aria-label="On this page" class="toc-drawer'),
    ("<pre>", '<pre tabindex="0">'),
    ('<th class="head"><p></p></th>', '<td class="head"></td>'),
    ('<div id="search-results"></div>', '<h1>Search</h1><div id="search-results"></div>'),
    ('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
)
"""What the theme leaves out for those who use a keyboard or a screen reader, and what stands there instead."""

_LINK: Final = re.compile(r"\[([^][]*)\]\(([^)#\s]+)\)")
_DIAGRAM: Final = re.compile(r"^```mermaid\nstateDiagram-v2\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_STEP: Final = re.compile(r"^ *(\S+) --> (\S+?)(?:: (.+))?$", re.MULTILINE)
_INLINE: Final = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)
_STYLED: Final = re.compile(r'(<(?!svg|path|line|circle)[a-z]+[^<>]*?) style="([^"]*)"')
_STYLED_DRAWING: Final = re.compile(r'(<(?:svg|path|line|circle)\b[^<>]*?) style="([a-z-]+): ?([^";]+);?"')


def pages_linked(text: str, folder: str) -> list[str]:
    """Names the pages that a page links to as a whole, each once, in the order of the text."""
    targets = (normpath(f"{folder}/{target}") for _, target in _LINK.findall(text) if target.endswith(".md"))
    return list(dict.fromkeys(target.removesuffix(".md") for target in targets))


def navigation(name: str, text: str) -> str:
    """Writes the navigation that a page's links are: for the home page a part for each of its headings."""
    folder = str(Path(name).parent)
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    captions = zip(parts[1::2], parts[2::2], strict=True) if name == HOME else [("", text)]
    return "".join(
        "\n```{toctree}\n:hidden:\n"
        + (f":caption: {caption}\n" if caption else "")
        + "".join(f"/{page}\n" for page in pages_linked(part, folder) if page != HOME)
        + "```\n"
        for caption, part in captions
    )


def without_folders(text: str, folder: Path) -> str:
    """Lets each link to a folder lead to the page that opens it; where there is none, its text stays."""

    def instead(link: re.Match[str]) -> str:
        if ":" in link[2] or not (folder / link[2]).is_dir():
            return link[0]
        opening = f"{link[2].rstrip('/')}/README.md"
        return f"[{link[1]}]({opening})" if (folder / opening).exists() else link[1]

    return _LINK.sub(instead, text)


def steps(diagram: str) -> Iterator[str]:
    """Writes the steps of a diagram of states as the rows of a table."""
    yield "| from | what happens | to |"
    yield "| --- | --- | --- |"
    for before, after, event in _STEP.findall(diagram):
        yield f"| {_state(before, 'it begins')} | {event} | {_state(after, 'it ends')} |"


def _state(name: str, edge: str) -> str:
    return edge if name == "[*]" else f"`{name}`"


def for_the_web(text: str, name: str, root: Path) -> str:
    """Gives a page's Markdown as the site needs it."""
    text = without_folders(text, (root / name).parent)
    text = _DIAGRAM.sub(lambda diagram: "\n".join(steps(diagram[1])), text)
    if name in FOLDERS:
        return f"{text}\n```{{toctree}}\n:maxdepth: 1\n:glob:\n*\n```\n"
    return text + navigation(name, text) if name in LISTS else text


def as_files(page: str, to_static: str) -> tuple[str, dict[str, str]]:
    """Takes scripts and styles out of a page; gives it with links to files instead, and the files by their names."""
    files: dict[str, str] = {}

    def named(content: str, ending: str) -> str:
        name = f"inline-{hashlib.sha256(content.encode()).hexdigest()[:16]}.{ending}"
        files[name] = content
        return name

    def linked(inline: re.Match[str]) -> str:
        if inline[1] == "script":
            return f'<script src="{to_static}{named(inline[2], "js")}"></script>'
        return f'<link rel="stylesheet" href="{to_static}{named(inline[2], "css")}">'

    # Drawings have the same properties as attributes, which no policy forbids.
    page = _STYLED_DRAWING.sub(r'\1 \2="\3"', _INLINE.sub(linked, page))

    def classed(element: re.Match[str]) -> str:
        rule = hashlib.sha256(element[2].encode()).hexdigest()[:8]
        files[f"inline-{rule}.css"] = f'[data-style="{rule}"] {{ {element[2]} }}\n'
        return f'{element[1]} data-style="{rule}"'

    page = _STYLED.sub(classed, page)
    rules = (name for name in files if re.fullmatch(r"inline-\w{8}\.css", name))
    styles = "".join(f'<link rel="stylesheet" href="{to_static}{name}">' for name in rules)
    return page.replace("</head>", f"{styles}</head>", 1), files


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    source[0] = for_the_web(source[0], name, Path(app.srcdir))


def _finish(app: Sphinx, failure: Exception | None) -> None:
    if failure is not None:
        return
    folder = Path(app.outdir)
    for page in sorted(folder.rglob("*.html")):
        to_static = "../" * (len(page.relative_to(folder).parts) - 1) + "_static/"
        text, files = as_files(page.read_text(), to_static)
        for left_out, instead in FOR_EVERYBODY:
            text = text.replace(left_out, instead)
        page.write_text(text)
        for name, content in files.items():
            (folder / "_static" / name).write_text(content)
    (folder / "index.html").write_text(START.format(home=f"{HOME}.html"))


def setup(app: Sphinx) -> dict[str, bool]:
    """Tells Sphinx when to call what is here."""
    app.connect("source-read", _read)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
