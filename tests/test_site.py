"""The docs as a site: every link leads somewhere, and it works without a network, a wide screen or good eyes."""

import functools
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Browser, ConsoleMessage, async_playwright, expect
from tests.browser import OPTIONS, PATIENCE_MS, find_browser
from tests.sources import ROOT

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'"
)
PAGES: Final = ("docs/tutorial.html", "docs/api.html", "docs/operations.html", "README.html", "search.html?q=refund")
"""One of each kind: code, wide tables, a diagram, pictures, and what is found."""
LOOKS: Final = (("light", 1280), ("dark", 390))
BUILT_WITHIN_S: Final = 600


def extension() -> ModuleType:
    """Loads what the site needs beyond the pages; it stands beside its settings, not in a package."""
    spec = spec_from_file_location("for_the_web", ROOT / "docs" / "site" / "for_the_web.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Links(HTMLParser):
    """What a page can be reached at, what it leads to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element."""
        of = dict(attrs)
        self.names.add(of.get("id") or "")
        if target := of.get("href") or of.get("src"):
            (self.targets if tag == "a" else self.loaded).append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it; the build itself fails where a link of a page leads nowhere."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    built = subprocess.run(
        ["make", "--no-print-directory", "docs", f"SITE={folder}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=BUILT_WITHIN_S,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


class UnderPolicy(SimpleHTTPRequestHandler):
    """Serves files under a policy that forbids whatever isn't a file of the site."""

    def end_headers(self) -> None:
        """Adds the policy."""
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Says nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where a strict server serves the site."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(UnderPolicy, directory=site))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest_asyncio.fixture
async def browser() -> AsyncIterator[Browser]:
    """A browser."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find_browser(), headless=True, args=list(OPTIONS))
        yield browser
        await browser.close()


@pytest.mark.integration
def test_every_link_and_anchor_of_the_site_leads_somewhere(site: Path) -> None:
    """What the theme adds is followed too. Links to elsewhere are addresses; nothing is loaded from there."""
    pages = {page.relative_to(site).as_posix(): Links(page.read_text()) for page in site.rglob("*.html")}
    lost = []
    for name, page in pages.items():
        for target in (*page.targets, *page.loaded):
            parts = urlsplit(target)
            if parts.scheme in {"http", "https"}:
                if not parts.hostname or target in page.loaded:
                    lost.append(f"{name}: {target}")
                continue
            path, anchor = urldefrag(unquote(parts._replace(query="").geturl()))
            leads_to = (site / name).parent / path if path else site / name
            at = leads_to.resolve().relative_to(site.resolve()).as_posix()
            if parts.scheme or not leads_to.is_file() or (anchor and anchor not in pages[at].names):
                lost.append(f"{name}: {target}")

    assert len(pages) > len(PAGES)
    assert lost == []


@pytest.mark.integration
@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "width"), LOOKS)
async def test_it_is_readable_by_everybody_under_a_strict_policy(
    address: str, browser: Browser, scheme: str, width: int
) -> None:
    """On a phone and a desk, in light and dark; nothing that weak eyes or a screen reader miss, nothing forbidden."""
    said: list[str] = []

    def note(message: ConsoleMessage) -> None:
        said.append(f"{message.type}: {message.text}")

    context = await browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)  # type: ignore[arg-type]
    page = await context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.on("console", note)
    for name in PAGES:
        await page.goto(f"{address}/{name}")
        if "search" in name:
            await expect(page.locator("#search-results li").first).to_be_visible(timeout=PATIENCE_MS)
        found = await Axe().run(
            page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
        )
        assert found.violations_count == 0, f"{name}\n{found.generate_report()}"
        assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name

    assert said == []


@pytest.mark.integration
@pytest.mark.browser
async def test_it_can_be_searched_without_a_server(site: Path, browser: Browser) -> None:
    """Opened from a disk, it finds the page that tells what to do before those that tell why; it asks nobody else."""
    asked: list[str] = []
    page = await browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    await page.goto(f"{site.as_uri()}/index.html")
    await expect(page.get_by_role("heading", name="The docs of Payrelay")).to_be_visible(timeout=PATIENCE_MS)
    await page.locator("input[name=q]").fill("refund")
    await page.keyboard.press("Enter")
    first = page.locator("#search-results li a").first

    await expect(first).to_have_text("Refunds", timeout=PATIENCE_MS)
    assert [address for address in asked if not address.startswith("file:")] == []


def test_the_navigation_is_what_the_home_page_links_to() -> None:
    """Written once, it can't disagree; what has an anchor is a part of a page, and no page of the navigation."""
    text = "# Docs\n\n## Reference\n\n- [API](api.md), [errors](api.md#errors)\n- [Clients](../clients/README.md)\n"

    assert extension().navigation("docs/README", text) == (
        "\n```{toctree}\n:hidden:\n:caption: Reference\n/docs/api\n/clients/README\n```\n"
    )


def test_a_folder_of_many_pages_is_listed() -> None:
    """A record of a decision that is added needs no line elsewhere, which would be forgotten."""
    page = extension().for_the_web("# Decisions\n", "docs/decisions/README", ROOT)

    assert page == "# Decisions\n\n```{toctree}\n:maxdepth: 1\n:glob:\n*\n```\n"


def test_a_diagram_is_a_table_of_its_steps() -> None:
    """It needs no script, and a screen reader reads it."""
    page = "```mermaid\nstateDiagram-v2\n    [*] --> open\n    open --> paid: completed\n    paid --> [*]\n```\n"

    assert extension().for_the_web(page, "docs/page", ROOT) == (
        "| from | what happens | to |\n| --- | --- | --- |\n"
        "| it begins |  | `open` |\n| `open` | completed | `paid` |\n| `paid` |  | it ends |\n"
    )


def test_a_link_to_a_folder_leads_to_the_page_that_opens_it() -> None:
    """The forge shows a folder; a site has none."""
    page = "[clients](../clients/python), [pictures](pictures), [web](https://example.org/a)"

    assert extension().without_folders(page, ROOT / "docs") == (
        "[clients](../clients/python/README.md), pictures, [web](https://example.org/a)"
    )


def test_what_is_written_into_a_page_becomes_files() -> None:
    """A policy that forbids scripts and styles inside of pages forbids those of an intruder."""
    page = '<head></head><script>a()</script><p style="width: 3em">x</p><svg style="display: none;"></svg>'

    text, files = extension().as_files(page, "../_static/")

    assert 'style="' not in text.replace("data-style", "")
    assert "<script>" not in text
    assert sorted(files.values()) == [
        f'[data-style="{next(n for n in files if len(n) == 19)[7:15]}"] {{ width: 3em }}\n',
        "a()",
    ]
