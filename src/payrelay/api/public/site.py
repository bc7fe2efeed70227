"""The pages outside the accounts, which need no credential: health, metrics, the API's description and docs."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from importlib.resources import files
from typing import Final, Protocol

import msgspec

from payrelay.api.http.incoming_request import Network, Networks
from payrelay.api.http.outgoing import PlainAnswer, plain_answer
from payrelay.api.http.visit import Visit
from payrelay.api.metrics.counters import CONTENT_TYPE
from payrelay.api.metrics.exposition import Exposition
from payrelay.api.metrics.health import LIVE, STOPPING, HealthSource, readiness
from payrelay.errors import Code, Refusal
from payrelay.runtime.database.lost_commits import LostCommits

ASSETS: Final = {
    "docs.css": "text/css",
    "docs.js": "text/javascript",
    "swagger-ui.css": "text/css",
    "swagger-ui-bundle.js": "text/javascript",
}
"""The files of the docs page. The package has the large ones compressed, and every browser accepts them so."""
ASSET_CACHED_S: Final = 3600
"""How long browsers may cache a file; short, because an update changes files under the same names."""

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page may load files of this server, but no others, and has no inline scripts or styles."""


METRICS_PATH: Final = "/metrics"
_READING: Final = frozenset({"GET", "HEAD"})


class MetricsText(Protocol):
    """Writes metrics: ``Exposition``, or that of another program."""

    async def text(self) -> bytes:
        """Gives all metrics in Prometheus' text format."""


class MetricsPage:
    """What answers on the metrics' own address: ``/metrics``, and nothing else.

    Args:
        exposition: writes the metrics.
        networks: the networks that may read them; all where none is given.
    """

    def __init__(self, exposition: MetricsText, networks: tuple[Network, ...]) -> None:
        self._exposition = exposition
        self._networks = Networks(networks)

    async def answered(self, visit: Visit) -> PlainAnswer:
        """Gives the metrics, or 404 without a body."""
        is_allowed = not self._networks or self._networks.has(visit.log_record.client)
        if not is_allowed or visit.scope["path"] != METRICS_PATH or visit.scope["method"] not in _READING:
            return PlainAnswer(http_status=HTTPStatus.NOT_FOUND, body=b"", raw_headers=((b"server", b"payrelay"),))
        visit.log_record.route = METRICS_PATH
        return plain_answer(await self._exposition.text(), CONTENT_TYPE, "no-store")


class FurtherPages(Protocol):
    """Further pages on the API's address, such as the console."""

    def answered(self, visit: Visit) -> Awaitable[PlainAnswer]:
        """Answers a request for one of them."""


class PageHandler(Protocol):
    """Answers a request for a page."""

    def __call__(self, client: str, *, is_known: bool) -> Awaitable[PlainAnswer]:
        """Gives the page for a client; ``is_known`` is False where the address may be a proxy's."""


class Pages:
    """The pages by their paths.

    Args:
        store_health: tells ``/health/ready`` whether the store takes writes.
        exposition: writes ``/metrics``.
        metrics_networks: the networks that may read ``/metrics``.
        describe: writes the API's description (``openapi.describe_api``).
        lost_commits: tells whether the database lacks commits, and whether a recovery is under way.
        is_stopping: tells whether the service is about to stop.
    """

    def __init__(
        self,
        *,
        store_health: HealthSource,
        exposition: Exposition,
        metrics_networks: tuple[Network, ...],
        describe: Callable[[], bytes],
        lost_commits: LostCommits,
        is_stopping: Callable[[], bool],
    ) -> None:
        self._store_health = store_health
        self._exposition = exposition
        self._metrics_networks = Networks(metrics_networks)
        self._describe = describe
        self._lost_commits = lost_commits
        self._is_stopping = is_stopping
        self._description: PlainAnswer | None = None
        self._paths: dict[bytes, PageHandler] = {
            b"/health/live": _always(plain_answer(LIVE, "application/json", "no-store")),
            b"/health/ready": self._ready,
            METRICS_PATH.encode(): self._measured,
            b"/openapi.json": self._described,
            b"/docs": _always(_docs()),
            **{f"/docs/{name}".encode(): _always(_asset(name, kind)) for name, kind in ASSETS.items()},
        }

    def find(self, raw_path: bytes) -> PageHandler | None:
        """Gives the handler of this path, or None."""
        return self._paths.get(raw_path)

    async def _described(self, client: str, *, is_known: bool) -> PlainAnswer:  # noqa: ARG002 - one shape for all pages
        """Gives the description, which is made at the first request, so that a start needn't wait for it."""
        if self._description is None:
            self._description = plain_answer(self._describe(), "application/json", "no-cache")
        return self._description

    async def _ready(self, client: str, *, is_known: bool) -> PlainAnswer:  # noqa: ARG002 - one shape for all pages
        if self._is_stopping():
            status, body = HTTPStatus.SERVICE_UNAVAILABLE.value, STOPPING
        else:
            status, body = await readiness(self._store_health, self._lost_commits)
        page = plain_answer(body, "application/json", "no-store")
        return msgspec.structs.replace(page, http_status=status)

    async def _measured(self, client: str, *, is_known: bool) -> PlainAnswer:
        """Shows the metrics to the allowed networks; all others get not_found, and so do clients that aren't known.

        Otherwise every client of a proxy on this machine would count as local, where no setting trusts the proxy, or
        its header can't be read.
        """
        if not is_known or not self._metrics_networks.has(client):
            raise Refusal(Code.NOT_FOUND, "there is nothing at this address")
        return plain_answer(await self._exposition.text(), CONTENT_TYPE, "no-store")


def _always(page: PlainAnswer) -> PageHandler:
    async def answer(client: str, *, is_known: bool) -> PlainAnswer:  # noqa: ARG001 - one shape for all pages
        return page

    return answer


def _docs() -> PlainAnswer:
    return plain_answer(
        _file("docs.html"),
        "text/html; charset=utf-8",
        "no-cache",
        (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
        (b"referrer-policy", b"no-referrer"),
        (b"x-frame-options", b"DENY"),
    )


def _asset(name: str, content_type: str) -> PlainAnswer:
    cache_control = f"public, max-age={ASSET_CACHED_S}"
    is_compressed = name.startswith("swagger-ui")
    body = _file(f"{name}.gz" if is_compressed else name)
    encoding = ((b"content-encoding", b"gzip"),) if is_compressed else ()
    return plain_answer(body, f"{content_type}; charset=utf-8", cache_control, *encoding)


def _file(name: str) -> bytes:
    return files("payrelay.api.openapi").joinpath("docs", name).read_bytes()
