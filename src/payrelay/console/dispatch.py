"""Answers a request to the console: finds the page, who visits, and whether the visitor may; then asks the page.

Rules:

1. Nothing is answered for another host than the console's own: a name that somebody points at it is refused.
2. A form counts only from a page of the console, with the token of the browser that sends it.
3. A visitor without a session is led to the sign-in. One whose role lacks the act gets 403, whatever the page.
4. What needs the second factor again is asked for it by a form that sends everything else once more, and counts for
   nothing else.
5. An error has a page too, and says nothing but its request id.
"""

import ipaddress
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import msgspec
from structlog.typing import FilteringBoundLogger

from payrelay.api.console_exchange import ConsoleAnswer, ConsoleRequest
from payrelay.console.flows.sign_in import Visitor, visitor_of
from payrelay.console.pages.sign_in.again import MARK, AskedFor, ask_again, shown_again
from payrelay.console.routes import LIVE_PATH, matching
from payrelay.console.web.asked import START, Asked, Site, fields_of, sign_in_path
from payrelay.console.web.cookies import CookieName, is_form_token, new_visit
from payrelay.console.web.rendering import redirect
from payrelay.console.web.route import ConsoleRoute, Entry
from payrelay.core.operators.operator import NotRecent, Stage
from payrelay.core.operators.roles import may
from payrelay.errors import MEANINGS, Refusal, StoreError

UNMATCHED: Final = "/console/unmatched"
_FORM: Final = b"application/x-www-form-urlencoded"
_READING: Final = frozenset({"GET", "HEAD"})


class Console:
    """The console: a callable that answers each request, whatever happens."""

    def __init__(self, site: Site, log: FilteringBoundLogger) -> None:
        self._site = site
        self._log = log

    async def __call__(self, request: ConsoleRequest) -> ConsoleAnswer:
        """Answers one request; raises nothing but a cancellation."""
        sent = self._site.cookies.read(request.headers.get(b"cookie"))
        asked = Asked(site=self._site, request=request, names=(), form={}, sent=sent, cookie=new_visit(), visitor=None)
        try:
            return await self._answered(asked)
        except StoreError:
            return _message(asked, 503, "The console can't read its database now", "Try again in a moment.")
        except Exception as error:  # noqa: BLE001 - the outermost place
            kind = type(error).__name__
            self._log.error("console_failed", request_id=request.request_id, error=kind, path=_where(error))
            return _message(asked, 500, "Something went wrong", f"The log has the cause under {request.request_id}.")

    async def _answered(self, asked: Asked) -> ConsoleAnswer:
        request = asked.request
        if not _is_own_host(self._site.origin, request.headers.get(b"host", b"")):
            return _message(asked, 421, "This is not the console's address", "Use the address that you were given.")
        if request.path == b"/console":
            return redirect("/console/")
        token = asked.sent.session
        is_use = request.path != LIVE_PATH.encode()
        visitor = None if token is None else await visitor_of(self._site.parts, token, is_use=is_use)
        cookie = token if visitor is not None else asked.sent.visit
        asked = msgspec.structs.replace(asked, visitor=visitor, cookie=cookie or asked.cookie)
        method = "GET" if request.method == "HEAD" else request.method
        found = matching(request.path)
        if not found:
            return _message(asked, 404, "There is no such page", "Begin again at the start.")
        chosen = next((each for each in found if each[0].method == method), None)
        if chosen is None:
            return _message(asked, 405, "This address takes no such request", "Begin again at the start.")
        route, names = chosen
        asked = msgspec.structs.replace(asked, names=names)
        answer = await self._let_in(route, asked, has_cookie=cookie is not None)
        if cookie is None and answer.status != HTTPStatus.SEE_OTHER:  # the page may have a form
            kept = self._site.cookies.set(CookieName.VISIT, asked.cookie)
            answer = msgspec.structs.replace(answer, headers=(*answer.headers, kept))
        if request.method == "HEAD":
            answer = msgspec.structs.replace(answer, body=b"", stream=None)
        return msgspec.structs.replace(answer, route=route.path)

    async def _let_in(self, route: ConsoleRoute, asked: Asked, *, has_cookie: bool) -> ConsoleAnswer:
        request, visitor = asked.request, asked.visitor
        is_reading = request.method in _READING
        form = fields_of(request.query if is_reading else request.body)
        if not is_reading and not _is_from_here(self._site.origin, request):
            return _message(asked, 403, "This form is not from here", "Open the page again, and send it from there.")
        if form is None or (not is_reading and request.headers.get(b"content-type", b"").lower() != _FORM):
            return _message(asked, 400, "This can't be read", "Open the page again, and send it from there.")
        asked = msgspec.structs.replace(asked, form=form)
        if not _has_come(route.entry, visitor):
            if visitor is not None:
                return redirect("/console/code")
            return redirect(sign_in_path(request) if is_reading else "/console/sign-in")
        if route.act is not None and visitor is not None and not may(visitor.operator.role, route.act):
            role = visitor.operator.role
            return _message(asked, 403, "Your role may not do this", f"You have the role {role}.")
        if not is_reading and not (has_cookie and is_form_token(asked.cookie, form.get("token", ""))):
            return _message(asked, 403, "This form is too old", "Open the page again, and send it from there.")
        if is_reading or MARK not in form or not asked.is_open:
            return await _handled(route, asked)
        again = await shown_again(asked, _asked_for(route, asked))
        if isinstance(again, ConsoleAnswer):
            return again
        return again.with_session(await _handled(route, again), again.cookie)


async def _handled(route: ConsoleRoute, asked: Asked) -> ConsoleAnswer:
    try:
        return await route.handler(asked)
    except NotRecent as error:
        return await ask_again(asked, _asked_for(route, asked), error.act)
    except Refusal as refusal:
        status = MEANINGS[refusal.code].http_status
        return _message(asked, status, "That was not done", f"{refusal.msg[:1].upper()}{refusal.msg[1:]}.")


def _asked_for(route: ConsoleRoute, asked: Asked) -> AskedFor:
    return AskedFor(_page_of(asked.request.path), route.about)


def _page_of(path: bytes) -> str:
    """Gives the address of the page that has the form which was sent to a path: the longest part of it that is one."""
    while path and not any(route.method == "GET" for route, _ in matching(path)):
        path = path.rpartition(b"/")[0]
    return path.decode("latin-1") or START


def _has_come(entry: Entry, visitor: Visitor | None) -> bool:
    if entry is Entry.ANYBODY:
        return True
    return visitor is not None and (entry is Entry.HALF or visitor.session.stage is Stage.OPEN)


def _message(asked: Asked, status: int, title: str, text: str) -> ConsoleAnswer:
    return msgspec.structs.replace(asked.page("message.html", status=status, title=title, text=text), route=UNMATCHED)


def _is_own_host(origin: str | None, host: bytes) -> bool:
    """True for the console's own address; where it has none, for an address or a name of this machine."""
    text = host.decode("latin-1").lower()
    if origin is not None:
        return text == urlsplit(origin).netloc.lower()
    try:
        name = urlsplit(f"//{text}").hostname or ""
    except ValueError:  # a bracket that nothing closes, for one
        return False
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


def _is_from_here(origin: str | None, request: ConsoleRequest) -> bool:
    """True where the browser says that a page of this host sent the form, or doesn't say it at all."""
    own = origin or f"http://{request.headers.get(b'host', b'').decode('latin-1')}"
    said = request.headers.get(b"origin")
    site = request.headers.get(b"sec-fetch-site", b"same-origin")
    return (said is None or said.decode("latin-1").lower() == own.lower()) and site == b"same-origin"


def _where(error: BaseException) -> str:
    """Names the place of an error without its text, which may quote somebody's data."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"
