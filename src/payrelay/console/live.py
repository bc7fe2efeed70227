"""Live pages: a page that is open is sent its parts again when they have changed, by server-sent events.

Rules:

1. A stream shows what the page itself would show to this operator at that moment. The operator and the session are read
   anew for it. A stream is no use of the session: it doesn't keep it from ending.
2. A stream ends within seconds when the session or the program ends.
3. There are a few at a time (``LiveStreams``). Whoever gets none has the page as it was when it was opened.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final
from urllib.parse import unquote

import msgspec

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.flows.sign_in import Visitor, visitor_of
from payrelay.console.pages import orders, overview, queue
from payrelay.console.rules.live import FULL, OVER, changed, parts_of
from payrelay.console.web.asked import Asked, fields_of
from payrelay.console.web.rendering import event_stream
from payrelay.errors import Code, Refusal, StoreError

CHECKED_EVERY_S: Final = 1.0
"""How long a stream goes on at most after the session or the program has ended."""
_OF_ORDER: Final = 5
"""Parts of the path of an order's page, which is ``/console/orders/ACCOUNT/ORDER``."""

_Handler = Callable[[Asked], Awaitable[ConsoleAnswer]]


class _LivePage(msgspec.Struct, frozen=True):
    """A page that can be live: what answers it, the names in its path, and how many seconds lie between two looks."""

    handler: _Handler
    names: tuple[str, ...]
    every_s: float


async def stream(asked: Asked) -> ConsoleAnswer:
    """Opens a stream of the page whose address is in the query. Raises Refusal (not_found)."""
    path, _, query = asked.form.get("page", "").partition("?")
    page, form = _page_at(path), fields_of(query.encode())
    if page is None or form is None:
        raise Refusal(Code.NOT_FOUND, "there is no live page at this address")
    shown = msgspec.structs.replace(
        asked,
        request=msgspec.structs.replace(asked.request, path=path.encode(), query=query.encode()),
        names=page.names,
        form=form,
    )
    return event_stream(_pieces(shown, page))


async def _pieces(asked: Asked, page: _LivePage) -> AsyncGenerator[bytes, None]:
    live = asked.site.live
    with live.taken(asked.visited.operator.id) as is_taken:
        if not is_taken:
            yield FULL
            return
        sent: dict[str, str] = {}
        waited_s = page.every_s
        while not _is_ending(asked):
            visitor = await _visitor(asked)
            if visitor is None:
                yield OVER
                return
            if waited_s >= page.every_s:
                now = await _shown(page, msgspec.structs.replace(asked, visitor=visitor))
                if now is None:
                    yield OVER
                    return
                yield changed(sent, now)
                sent, waited_s = now, 0.0
            await live.pause(CHECKED_EVERY_S)
            waited_s += CHECKED_EVERY_S


def _page_at(path: str) -> _LivePage | None:
    segments = [unquote(each, errors="replace") for each in path.split("/")]
    if path == "/console/queue":
        return _LivePage(queue.show_queue, (), 3.0)
    if path == "/console/overview":
        return _LivePage(overview.show, (), 10.0)
    if len(segments) == _OF_ORDER and segments[:3] == ["", "console", "orders"]:
        return _LivePage(orders.show, tuple(segments[3:]), 3.0)
    return None


def _is_ending(asked: Asked) -> bool:
    relay = asked.site.relay
    return relay.background.is_stopping or relay.dispatch.followers.is_closed


async def _visitor(asked: Asked) -> Visitor | None:
    try:
        visitor = await visitor_of(asked.parts, asked.cookie, is_use=False)
    except StoreError:
        return None
    return visitor if visitor is not None and visitor.session.stage == "open" else None


async def _shown(page: _LivePage, asked: Asked) -> dict[str, str] | None:
    try:
        answer = await page.handler(asked)
    except (Refusal, StoreError):
        return None
    return parts_of(answer.body)
