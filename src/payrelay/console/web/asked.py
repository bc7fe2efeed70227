"""What a page is asked: the request, its form, who visits, and what the page may use to answer."""

import re
from typing import Final
from urllib.parse import parse_qsl, quote, unquote

import msgspec

from payrelay.api.console_exchange import ConsoleAnswer, ConsoleRequest
from payrelay.console.flows.cases.parts import CaseParts
from payrelay.console.flows.parts import Browser, ConsoleParts
from payrelay.console.flows.sign_in import Visitor
from payrelay.console.rules.sign_in.passkeys import RelyingParty, relying_party_of
from payrelay.console.web.cookies import BrowserCookies, CookieName, Cookies, form_token
from payrelay.console.web.live_streams import LiveStreams
from payrelay.console.web.rendering import LIVE_SCRIPT_PATH, html
from payrelay.core.operators.operator import BROWSER_LENGTH_MAX
from payrelay.core.operators.roles import Act, may
from payrelay.flows.operators.parts import Actor, acting
from payrelay.flows.relay import Relay

FIELDS_MAX: Final = 20
START: Final = "/console/"
SIGN_IN: Final = "/console/sign-in"
_next_match: Final = re.compile(r"/console/[A-Za-z0-9/_.~%?=&+:@-]{0,500}").fullmatch
_DOTS: Final = frozenset({".", ".."})
"""Parts of a path by which a browser goes up, however they are written."""


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """What the console is made of.

    Attributes:
        parts: what its flows about operators work with.
        cases: what its flows about orders and payments work with.
        relay: what the flows of payments work with.
        cookies: reads and writes cookies.
        origin: the address that browsers reach it at; None where only this machine reaches it.
        navigation: what leads from every page to others: address, name, and what a role must allow to see it.
        live: the pages that are live.
    """

    parts: ConsoleParts
    cases: CaseParts
    relay: Relay
    cookies: Cookies
    origin: str | None
    navigation: tuple[tuple[str, str, Act], ...]
    live: LiveStreams = msgspec.field(default_factory=LiveStreams)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a page.

    Attributes:
        site: the console.
        request: as it came.
        names: what stands in the path in place of the braces.
        form: the fields of the query, or of the posted form, by name.
        sent: the console's cookies that came with it.
        cookie: of the session, or of the visit; a new visit's where none came.
        visitor: whose session it is; None where nobody is signed in.
    """

    site: Site
    request: ConsoleRequest
    names: tuple[str, ...]
    form: dict[str, str]
    sent: BrowserCookies
    cookie: str
    visitor: Visitor | None

    @property
    def parts(self) -> ConsoleParts:
        """What the flows work with."""
        return self.site.parts

    @property
    def cases(self) -> CaseParts:
        """What the flows about orders and payments work with."""
        return self.site.cases

    @property
    def browser(self) -> Browser:
        """Where the request comes from."""
        agent = self.request.headers.get(b"user-agent", b"").decode("latin-1")
        name = "".join(character for character in agent if character.isprintable())
        return Browser(self.request.client, name[:BROWSER_LENGTH_MAX])

    @property
    def visited(self) -> Visitor:
        """Who is signed in; the dispatch has made sure of it for this page."""
        if self.visitor is None:
            raise TypeError("a page for operators was asked by nobody")
        return self.visitor

    @property
    def actor(self) -> Actor:
        """Who acts."""
        return acting(*self.visited)

    @property
    def next(self) -> str:
        """Where to go once somebody is signed in: an address of the console, and of nowhere else."""
        return next_of_text(self.form.get("next", ""))

    @property
    def party(self) -> RelyingParty | None:
        """This console as browsers know it, at the address that was asked for; None where they make no passkeys."""
        host = self.request.headers.get(b"host", b"").decode("latin-1").lower()
        return relying_party_of(self.site.origin or f"http://{host}")

    def page(
        self,
        template: str,
        *,
        status: int = 200,
        live: str | None = None,
        script: str | None = None,
        **values: object,
    ) -> ConsoleAnswer:
        """Gives a page in the console's frame, with the visitor's own parts of it.

        ``live`` is the address whose stream keeps it up to date; None where none does. ``script`` is the path of
        another script that it loads.
        """
        operator = None if self.visitor is None else self.visitor.operator
        return html(
            template,
            status,
            token=form_token(self.cookie),
            operator=operator,
            navigation=self._navigation if self.is_open else (),
            zone=self.sent.zone,
            here=self.request.path.decode("latin-1"),
            live=live,
            script=LIVE_SCRIPT_PATH if live is not None else script,
            **values,
        )

    @property
    def _navigation(self) -> list[tuple[str, str]]:
        """The addresses and names of the pages that the visitor's role may open."""
        role = self.visited.operator.role
        return [(path, name) for path, name, act in self.site.navigation if may(role, act)]

    @property
    def is_open(self) -> bool:
        """True where the visitor has come through every stage of the sign-in."""
        return self.visitor is not None and self.visitor.session.stage == "open"

    def with_session(self, answer: ConsoleAnswer, token: str) -> ConsoleAnswer:
        """Gives the browser the cookie of a session in place of what it had."""
        cookies = self.site.cookies
        changed = (cookies.set(CookieName.SESSION, token), cookies.remove(CookieName.VISIT))
        return msgspec.structs.replace(answer, headers=(*answer.headers, *changed))

    def with_cookie(self, answer: ConsoleAnswer, name: CookieName, value: str) -> ConsoleAnswer:
        """Gives the browser a cookie beside those that it has."""
        return msgspec.structs.replace(answer, headers=(*answer.headers, self.site.cookies.set(name, value)))

    def without_session(self, answer: ConsoleAnswer) -> ConsoleAnswer:
        """Takes the session's cookie from the browser."""
        return msgspec.structs.replace(answer, headers=(*answer.headers, self.site.cookies.remove(CookieName.SESSION)))


def next_of_text(text: str) -> str:
    """Gives an address of the console; its start for whatever else somebody puts there, or what leads out of it."""
    is_ours = _next_match(text) and not text.startswith((SIGN_IN, "/console/invitations"))
    return text if is_ours and _DOTS.isdisjoint(unquote(text.partition("?")[0]).split("/")) else START


def sign_in_path(request: ConsoleRequest) -> str:
    """Gives the address of the sign-in page, from which the way leads back to what was asked for."""
    path = request.path.decode("latin-1") + ("?" + request.query.decode("latin-1") if request.query else "")
    return SIGN_IN if next_of_text(path) == START else f"{SIGN_IN}?next={quote(path, safe='')}"


def fields_of(data: bytes) -> dict[str, str] | None:
    """Reads a query or a form; None where it can't be one. Of doubled fields the last counts."""
    if data.count(b"%") * len("%41") > len(data):  # not all are escapes; each that is none takes longer than one
        return None
    try:
        pairs = parse_qsl(
            data.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS_MAX, separator="&"
        )
    except ValueError:
        return None
    return {name: value.replace("\0", "") for name, value in pairs}
