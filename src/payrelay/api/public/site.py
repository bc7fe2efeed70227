"""What stands outside the accounts and needs no credential: health, metrics, the API's description and its docs."""

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Final, Protocol

import msgspec

from payrelay.api.http.incoming_request import Network, Networks
from payrelay.api.http.outgoing import PlainAnswer
from payrelay.api.metrics.counters import CONTENT_TYPE
from payrelay.api.metrics.exposition import Exposition
from payrelay.api.metrics.health import LIVE, Pingable, readiness
from payrelay.errors import Code, Refusal

ASSETS: Final = {
    "docs.css": "text/css",
    "docs.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
}
"""The files of the docs page; the large ones lie compressed in the package, and every browser takes them so."""
ASSET_KEPT_S: Final = 3600
"""How long a browser needn't ask again; short, because the names stay the same through an update."""

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Everything from here, nothing from elsewhere, nothing in the page itself."""


class Answering(Protocol):
    """Answers a request for a page."""

    def __call__(self, client: str, *, is_known: bool) -> Awaitable[PlainAnswer]:
        """Gives the page for a client; ``is_known`` is False where its address is that of its speaker."""
        ...


class Pages:
    """The pages by their paths.

    Args:
        database: asked by ``/health/ready``.
        exposition: what ``/metrics`` shows.
        metrics_networks: who may read that.
        describe: writes the API's description (``openapi.describe_api``).
    """

    def __init__(
        self,
        *,
        database: Pingable,
        exposition: Exposition,
        metrics_networks: tuple[Network, ...],
        describe: Callable[[], bytes],
    ) -> None:
        self._database = database
        self._exposition = exposition
        self._metrics_networks = Networks(metrics_networks)
        self._describe = describe
        self._description: PlainAnswer | None = None
        self._paths: dict[bytes, Answering] = {
            b"/health/live": _always(_page(LIVE, "application/json", b"no-store")),
            b"/health/ready": self._ready,
            b"/metrics": self._measured,
            b"/openapi.json": self._described,
            b"/docs": _always(_docs()),
            **{f"/docs/{name}".encode(): _always(_asset(name, kind)) for name, kind in ASSETS.items()},
        }

    def find(self, raw_path: bytes) -> Answering | None:
        """Gives what answers at this path, or None."""
        return self._paths.get(raw_path)

    async def _described(self, client: str, *, is_known: bool) -> PlainAnswer:  # noqa: ARG002 - one shape for all pages
        """Gives the description, which is made when somebody wants it: a start should not wait for it."""
        if self._description is None:
            self._description = _page(self._describe(), "application/json", b"no-cache")
        return self._description

    async def _ready(self, client: str, *, is_known: bool) -> PlainAnswer:  # noqa: ARG002 - one shape for all pages
        status, body = await readiness(self._database)
        page = _page(body, "application/json", b"no-store")
        return msgspec.structs.replace(page, http_status=status)

    async def _measured(self, client: str, *, is_known: bool) -> PlainAnswer:
        """Shows the metrics to the networks that may see them; to all others there is nothing here.

        A proxy on this machine that nobody told us to trust, or whose word can't be read, would otherwise make
        everybody local.
        """
        if not is_known or not self._metrics_networks.has(client):
            raise Refusal(Code.NOT_FOUND, "there is nothing at this address")
        return _page(await self._exposition.text(), CONTENT_TYPE, b"no-store")


def _always(page: PlainAnswer) -> Answering:
    async def answer(client: str, *, is_known: bool) -> PlainAnswer:  # noqa: ARG001 - one shape for all pages
        return page

    return answer


def _page(body: bytes, content_type: str, cache_control: bytes, *more: tuple[bytes, bytes]) -> PlainAnswer:
    headers: tuple[tuple[bytes, bytes], ...] = (
        (b"content-type", content_type.encode()),
        (b"cache-control", cache_control),
        (b"x-content-type-options", b"nosniff"),
        (b"server", b"payrelay"),
        *more,
    )
    return PlainAnswer(body=body, raw_headers=headers)


def _docs() -> PlainAnswer:
    return _page(
        _file("docs.html"),
        "text/html; charset=utf-8",
        b"no-cache",
        (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
        (b"referrer-policy", b"no-referrer"),
        (b"x-frame-options", b"DENY"),
    )


def _asset(name: str, content_type: str) -> PlainAnswer:
    kept = f"public, max-age={ASSET_KEPT_S}".encode()
    is_compressed = name.startswith("swagger-ui")
    body = _file(f"{name}.gz" if is_compressed else name)
    encoding = ((b"content-encoding", b"gzip"),) if is_compressed else ()
    return _page(body, f"{content_type}; charset=utf-8", kept, *encoding)


def _file(name: str) -> bytes:
    return files("payrelay.api.openapi").joinpath("docs", name).read_bytes()
