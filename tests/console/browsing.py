"""A browser without a window: keeps cookies, sends forms with the tokens that pages have, follows redirects."""

import html
import re
from typing import Final
from urllib.parse import urlencode

import structlog
from tests.flows.console.desk import MINUTE_MS, PASSWORD, Desk

from payrelay.api.console_exchange import ConsoleAnswer, ConsoleRequest
from payrelay.console.dispatch import Console
from payrelay.console.routes import NAVIGATION
from payrelay.console.web.asked import Site
from payrelay.console.web.cookies import Cookies
from payrelay.core.operators.roles import Role
from payrelay.core.secret import Secret
from payrelay.flows.relay import Relay

HOST: Final = "console.example"
ORIGIN: Final = f"https://{HOST}"
LOG: Final = structlog.wrap_logger(None, processors=[], wrapper_class=structlog.make_filtering_bound_logger("critical"))


def site_of(desk: Desk, relay: Relay | None = None) -> Site:
    """Gives what the console of a desk is made of; browsers reach it over https."""
    relay = relay or desk.relay
    return Site(
        parts=desk.parts,
        cases=desk.cases,
        relay=relay,
        cookies=Cookies(is_secure=True),
        origin=ORIGIN,
        navigation=NAVIGATION,
    )


def console_on(desk: Desk, relay: Relay | None = None) -> Console:
    """Gives the console of a desk."""
    return Console(site_of(desk, relay), LOG)


class Window:
    """One browser at a console; ``answer`` is the last answer."""

    def __init__(self, console: Console, client: str = "192.0.2.1") -> None:
        self.console = console
        self.client = client
        self.cookies: dict[str, str] = {}
        self.answer: ConsoleAnswer | None = None

    async def send(
        self, method: str, address: str, form: dict[str, str] | None = None, **headers: str | None
    ) -> ConsoleAnswer:
        """Sends a request with the browser's own headers, but for those that are named, and keeps the cookies."""
        path, _, query = address.partition("?")
        own: dict[str, str | None] = {"host": HOST, "user-agent": "Firefox", "sec-fetch-site": "same-origin"}
        if self.cookies:
            own["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if form is not None:
            own |= {"content-type": "application/x-www-form-urlencoded", "origin": ORIGIN}
        own |= {name.replace("_", "-"): value for name, value in headers.items()}
        request = ConsoleRequest(
            method=method,
            path=path.encode(),
            query=query.encode(),
            headers={name.encode(): value.encode() for name, value in own.items() if value is not None},
            body=b"" if form is None else urlencode(form).encode(),
            client=self.client,
            request_id="req_1",
        )
        self.answer = await self.console(request)
        self._keep(self.answer)
        return self.answer

    async def get(self, address: str) -> ConsoleAnswer:
        """Opens an address, and goes where it leads."""
        return await self._followed(await self.send("GET", address))

    async def post(self, address: str, **fields: str) -> ConsoleAnswer:
        """Sends a form with the token of the last page, and goes where it leads."""
        return await self._followed(await self.send("POST", address, {"token": self.token, **fields}))

    @property
    def token(self) -> str:
        """The token of the forms on the last page."""
        found = re.search(r'name="token" value="([0-9a-f]+)"', self.text)
        return "" if found is None else found[1]

    @property
    def text(self) -> str:
        """The last page."""
        return "" if self.answer is None else self.answer.body.decode()

    @property
    def title(self) -> str:
        """Its heading."""
        found = re.search(r"<h1>(.*?)</h1>", self.text, re.DOTALL)
        return "" if found is None else html.unescape(found[1]).strip()

    async def _followed(self, answer: ConsoleAnswer) -> ConsoleAnswer:
        for _ in range(5):
            if answer.status != 303:
                return answer
            answer = await self.send("GET", dict(answer.headers)[b"location"].decode())
        raise AssertionError("the console leads in a circle")

    def _keep(self, answer: ConsoleAnswer) -> None:
        for name, value in answer.headers:
            if name == b"set-cookie":
                cookie, _, attributes = value.decode().partition(";")
                key, _, content = cookie.partition("=")
                self.cookies.pop(key, None)
                if "Max-Age=0" not in attributes:
                    self.cookies[key] = content


async def signed_in(desk: Desk, console: Console, email: str, role: Role = Role.ADMIN) -> Window:
    """Opens a window in which a new operator is signed in, by the pages alone."""
    token = (await desk.invited(email, role)).reveal()
    window = Window(console)
    await window.get(f"/console/invitations/{token}")
    await window.post(f"/console/invitations/{token}", password=PASSWORD, again=PASSWORD)
    assert window.title == "Set up a second factor", window.text
    await window.post("/console/code", code=first_code(desk, window))
    assert window.title == "Start", window.text
    desk.clock.at_ms += MINUTE_MS
    return window


def first_code(desk: Desk, window: Window) -> str:
    """Gives what a phone shows now that was given the letters on the page."""
    found = re.search(r"<code>([A-Z2-7 ]+)</code>", window.text)
    assert found is not None, window.text
    return desk.code_by(Secret(found[1].replace(" ", "")))


async def code_of(desk: Desk, email: str) -> str:
    """Gives what the operator's phone shows now."""
    operator = await desk.parts.operators.by_email(email)
    assert operator is not None
    return await desk.code(operator)
