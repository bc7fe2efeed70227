"""The desk of a sandbox trial: pages from which a person brings forms to the gateway, and the addresses it answers at.

Everything is below one secret segment: whoever doesn't know it can neither read a form nor send a notification.
"""

import asyncio
import html
import secrets
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from aiohttp import web

from payrelay_tools.sandbox_trial.trial import TrialForm, TrialNotification, TrialVisit

ANSWERS: Final = {"": "done", "r": "refused", "s": "skipped"}
"""What a person types, and what it means."""
NOTIFICATION_BYTES_MAX: Final = 65_536
NOTIFICATIONS_MAX: Final = 50
"""Of one form."""

_PAGE: Final = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>Payrelay trial</title><h1>{name}</h1><p>{task}</p>
<form method="post" action="{action}">{fields}<button>To the gateway's page</button></form></html>"""
_BACK: Final = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Payrelay trial</title>
<p>You are back. The trial goes on in the terminal.</p></html>"""


class Desk:
    """Waits for a person, the browser and the gateway. ``say`` writes a line for the person.

    Args:
        public_url: the address at which the gateway and the browser reach this desk.
        wait_s: the longest wait for one form.
        say: writes a line for the person.
        lines: what the person types, line by line; None where nobody can.
        pace: multiplies the time for which notifications are waited for; a test takes less.
    """

    def __init__(
        self,
        public_url: str,
        wait_s: float,
        say: Callable[[str], None],
        lines: "asyncio.Queue[str] | None",
        *,
        pace: float = 1.0,
    ) -> None:
        self._base = f"{public_url.rstrip('/')}/{secrets.token_urlsafe(16)}"
        self._wait_s = wait_s
        self._say = say
        self._lines = lines
        self._pace = pace
        self._forms: dict[str, TrialForm] = {}
        self._heard: dict[str, list[TrialNotification]] = {}
        self._backs: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._shown_s: dict[str, float] = {}
        self._news = asyncio.Event()

    def address_of(self, form: str, what: str) -> str:
        """Gives the address of a form for ``form``, ``return``, ``cancel`` or ``notify``."""
        return f"{self._base}/{form.replace(' ', '-')}/{what}"

    async def bring(self, form: TrialForm, *, notifications: int) -> TrialVisit:
        """Asks the person to bring a form to the gateway's page, and waits for what comes of it; see ``TrialDesk``."""
        name = form.name.replace(" ", "-")
        self._forms[name] = form
        self._shown_s[name] = asyncio.get_running_loop().time()
        self._say(f"\n{form.name}: open {self.address_of(form.name, 'form')}")
        self._say(f"  {form.task}")
        if self._lines is not None:
            self._say("  Then press Enter here; r and Enter if the gateway refuses the form, s and Enter to skip it.")
        answer = await self._answer(name, form, notifications)
        heard = tuple(self._heard.get(name, ()))
        back = self._backs.get(name)
        return TrialVisit(
            answer=answer,
            notifications=heard,
            came_back=None if back is None else back[0],
            parameters=() if back is None else back[1],
        )

    async def hear(self, form: str, *, for_s: float) -> tuple[TrialNotification, ...]:
        """Waits for a notification of a form that nobody brings, such as of a charge."""
        name = form.replace(" ", "-")
        await self._until(lambda: bool(self._heard.get(name)), for_s * self._pace)
        return tuple(self._heard.get(name, ()))

    async def _answer(self, name: str, form: TrialForm, notifications: int) -> str:
        """Waits until all came, or the person says something, or the browser is back, or the time is over.

        After the last three, notifications are waited for a little longer.
        """

        def is_enough() -> bool:
            return 0 < notifications <= len(self._heard.get(name, ()))

        typed: list[str] = []
        reading = None if self._lines is None else asyncio.ensure_future(self._lines.get())
        if reading is not None:
            reading.add_done_callback(lambda each: None if each.cancelled() else self._typed(typed, each.result()))
        try:
            await self._until(lambda: bool(typed) or name in self._backs or is_enough(), self._wait_s)
            answer = ANSWERS.get(typed[0].strip().lower(), "done") if typed else "done"
            if not typed and name not in self._backs and not is_enough():
                return "waited"
            if answer == "done" and not is_enough():
                self._say(f"  Waiting for notifications, for {form.heard_within_s * self._pace:g} s at most.")
                await self._until(is_enough, form.heard_within_s * self._pace)
            return answer
        finally:
            if reading is not None:
                reading.cancel()

    def _typed(self, typed: list[str], line: str) -> None:
        typed.append(line)
        self._news.set()

    async def _until(self, is_over: Callable[[], bool], for_s: float) -> None:
        """Waits until something is so, looking again at each piece of news; at most so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(for_s):
                while not is_over():
                    self._news.clear()
                    await self._news.wait()

    def routes(self) -> list[web.RouteDef]:
        """Gives the paths with their handlers."""
        return [
            web.get("/{secret}/{form}/form", self._show),
            web.get("/{secret}/{form}/{what:return|cancel}", self._come_back),
            web.post("/{secret}/{form}/notify", self._notify),
        ]

    async def _show(self, request: web.Request) -> web.Response:
        form = self._forms.get(self._name_in(request))
        if form is None:
            raise web.HTTPNotFound
        fields = "".join(
            f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">'
            for name, value in form.fields.items()
        )
        page = _PAGE.format(
            name=html.escape(form.name), task=html.escape(form.task), action=html.escape(form.action), fields=fields
        )
        # The gateway wants to see which page the form was on.
        headers = {"Referrer-Policy": "origin", "Cache-Control": "no-store"}
        return web.Response(text=page, content_type="text/html", headers=headers)

    async def _come_back(self, request: web.Request) -> web.Response:
        self._backs[self._name_in(request)] = (request.match_info["what"], tuple(sorted(request.query)))
        self._news.set()
        return web.Response(text=_BACK, content_type="text/html", headers={"Referrer-Policy": "no-referrer"})

    async def _notify(self, request: web.Request) -> web.Response:
        name = self._name_in(request)
        heard = self._heard.setdefault(name, [])
        body = await request.content.read(NOTIFICATION_BYTES_MAX)
        if len(heard) < NOTIFICATIONS_MAX:
            after_s = asyncio.get_running_loop().time() - self._shown_s.get(name, asyncio.get_running_loop().time())
            content_type = request.headers.get("Content-Type", "")
            heard.append(TrialNotification(content_type=content_type, body=body, after_s=after_s))
        self._news.set()
        form = self._forms.get(name)
        is_refused = form is not None and form.refuses_first and len(heard) == 1
        return web.Response(status=503 if is_refused else 200)

    def _name_in(self, request: web.Request) -> str:
        if not secrets.compare_digest(request.match_info["secret"], self._base.rpartition("/")[2]):
            raise web.HTTPNotFound
        return request.match_info["form"]


@asynccontextmanager
async def served(desk: Desk, host: str, port: int) -> AsyncIterator[None]:
    """Serves a desk. Raises OSError where the address can't be had."""
    application = web.Application(client_max_size=NOTIFICATION_BYTES_MAX)
    application.add_routes(desk.routes())
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield
    finally:
        await runner.cleanup()


@asynccontextmanager
async def typed_lines() -> "AsyncIterator[asyncio.Queue[str] | None]":
    """Gives what is typed on standard input, line by line; None where it is no terminal."""
    if not sys.stdin.isatty():
        yield None
        return
    lines: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin.fileno(), lambda: lines.put_nowait(sys.stdin.readline()))
    try:
        yield lines
    finally:
        loop.remove_reader(sys.stdin.fileno())
