"""The hosted pages over HTTP: forms in, pages and ways on out."""

import time
from typing import Final, get_args
from urllib.parse import parse_qsl

import msgspec
from aiohttp import web

from payrelay_simulator.calls import PATH_LENGTH_MAX, CallRecord
from payrelay_simulator.pages.cards import Typed, means_of
from payrelay_simulator.pages.drawing import STYLESHEET, error_page, over_page, payment_page, target_of
from payrelay_simulator.pages.forms import WRONG_ADDRESS, Page, PageError, read_form
from payrelay_simulator.pages.hosted import cancel, open_visit, pay
from payrelay_simulator.pages.visits import Visit
from payrelay_simulator.sender import wait_before_return
from payrelay_simulator.stage import Stage
from payrelay_simulator.world import World

PAGES: Final[dict[str, Page]] = {f"/pay/{page}": page for page in get_args(Page)}

# The pages post to themselves alone; where a payer goes afterwards is no form's target but a way on of its own.
POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "origin",
    "X-Content-Type-Options": "nosniff",
    # Going back shows what happened, never a page from before it.
    "Cache-Control": "no-store",
}

SEE_OTHER: Final = 303

# Inputs of the page in one posting; it has five.
INPUTS_MAX: Final = 100

# What is typed for the payer who taps a test card; any name, expiry and security code go with one.
TAPPED: Final = Typed(holder_name="Test Payer", expiry="12/29", security_code="123")

# The one error code of its page that was seen in the wild has this form; what it means nobody knows.
ERROR_CODE: Final = "421300000001"


class Pages:
    """The handlers of the hosted pages."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def routes(self) -> list[web.RouteDef]:
        """Return the paths with their handlers."""
        return [
            *(web.post(path, self.enter) for path in PAGES),
            web.get("/pay/page.css", self.show_stylesheet),
            web.get("/pay/visits/{visit_id}", self.show),
            web.post("/pay/visits/{visit_id}/pay", self.pay),
            web.post("/pay/visits/{visit_id}/cancel", self.cancel),
            web.get("/pay/visits/{visit_id}/return", self.send_on),
            web.route("*", "/pay/{rest:.*}", self.refuse),
        ]

    @property
    def _world(self) -> World:
        return self._stage.world

    async def enter(self, request: web.Request) -> web.Response:
        """Take a merchant's form and show its page, or say what is wrong with it."""
        world = self._world
        world.elapse()
        try:
            form = read_form(
                PAGES[request.path],
                await request.read(),
                content_type=request.headers.get("Content-Type", ""),
                referer=request.headers.get("Referer"),
                merchants=world.merchants,
                switches=world.switches,
                now=world.clock.now(),
            )
        except PageError as error:
            http_status = world.switches.page_error_http
            self._log(request, world, world.calls.next_number(), None, http_status=http_status)
            return _page(error_page(error, ERROR_CODE), http_status)
        visit = open_visit(world, form)
        self._log(request, world, world.calls.next_number(), form.order_id)
        return _see(f"/pay/visits/{visit.visit_id}")

    async def show(self, request: web.Request) -> web.Response:
        """Show where the visit stands: the form to pay, or what came of it."""
        visit = self._visit(request)
        return _page(payment_page(visit) if visit.state == "open" else over_page(visit))

    async def pay(self, request: web.Request) -> web.Response:
        """Pay, and go on to the merchant, or back to the page with the refusal."""
        world, visit = self._world, self._visit(request)
        try:
            typed = _typed(await request.read())
        except ValueError:
            typed = Typed()
        if visit.state != "open":
            await wait_before_return(world, visit.notifications)
            return _see(_address(visit, "/return"))
        means = means_of(typed, visit.form.methods)
        if isinstance(means, dict):
            return _page(payment_page(visit, typed=typed, errors=means), 422)
        world.elapse()
        entries, arrival = len(world.ledger), world.calls.next_number()
        visit = pay(world, visit, means, arrival=arrival)
        self._log(request, world, arrival, visit.form.order_id, ledger_entries=len(world.ledger) - entries)
        if visit.state == "open":
            return _see(_address(visit))
        await wait_before_return(world, visit.notifications)
        return _see(_address(visit, "/return"))

    async def cancel(self, request: web.Request) -> web.Response:
        """End the visit and go back to the merchant; one that was paid shows that it was."""
        visit = cancel(self._world, self._visit(request))
        return _see(_address(visit, "/return") if visit.state == "cancelled" else _address(visit))

    async def send_on(self, request: web.Request) -> web.Response:
        """Send the payer on to the merchant.

        The way on is a page that refreshes at once and no redirect: a browser that holds `form-action` holds it for
        every redirect that follows a form, the merchant's own included.
        """
        visit = self._visit(request)
        if visit.state == "open":
            return _see(_address(visit))
        self._world.notifications.payer_returned(visit.notifications, self._world.clock.now())
        response = _page(over_page(visit))
        response.headers["Refresh"] = f"0; url={target_of(visit)}"
        return response

    async def show_stylesheet(self, _request: web.Request) -> web.Response:
        """Return the pages' stylesheet."""
        return web.Response(body=STYLESHEET, content_type="text/css", headers={"Cache-Control": "max-age=3600"})

    async def refuse(self, request: web.Request) -> web.Response:
        """Answer an address that is no page, or a page that was opened without a form."""
        if request.path in PAGES:
            error = PageError(WRONG_ADDRESS, "this page is entered by posting a form to it")
            return _page(error_page(error, ERROR_CODE), 405)
        error = PageError(WRONG_ADDRESS, f"{request.path[:PATH_LENGTH_MAX]} is no page: {', '.join(PAGES)}")
        return _page(error_page(error, ERROR_CODE), 404)

    def _visit(self, request: web.Request) -> Visit:
        visit = self._world.visits.find(request.match_info["visit_id"])
        if visit is None:
            error = PageError(WRONG_ADDRESS, "there is no such visit; the simulator may have begun anew")
            raise web.HTTPNotFound(text=error_page(error, ERROR_CODE), content_type="text/html", headers=HEADERS)
        return visit

    def _log(
        self,
        request: web.Request,
        world: World,
        number: int,
        order_id: str | None,
        *,
        http_status: int = SEE_OTHER,
        ledger_entries: int = 0,
    ) -> None:
        world.calls.record(
            CallRecord(
                number=number,
                at=world.clock.now(),
                arrived_monotonic_s=time.monotonic(),
                method=request.method,
                path=request.path[:PATH_LENGTH_MAX],
                endpoint="pay" if request.path.endswith("/pay") else PAGES.get(request.path),
                order_id=order_id,
                is_budget_blocked=False,
                fault=None,
                http_status=http_status,
                ledger_entries=ledger_entries,
            )
        )


def _typed(body: bytes) -> Typed:
    inputs = dict(parse_qsl(body.decode(errors="replace"), max_num_fields=INPUTS_MAX))
    if "testCard" in inputs:
        return msgspec.structs.replace(TAPPED, number=inputs["testCard"])
    return Typed(
        method=inputs.get("method", ""),
        holder_name=inputs.get("cardHolderName", ""),
        number=inputs.get("cardNo", ""),
        expiry=inputs.get("cardExpiry", ""),
        security_code=inputs.get("cardSecureId", ""),
    )


def _address(visit: Visit, rest: str = "") -> str:
    return f"/pay/visits/{visit.visit_id}{rest}"


def _see(address: str) -> web.Response:
    return web.Response(status=SEE_OTHER, headers={**HEADERS, "Location": address})


def _page(text: str, http_status: int = 200) -> web.Response:
    return web.Response(status=http_status, text=text, content_type="text/html", headers=HEADERS)
