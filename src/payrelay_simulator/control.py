"""The control API under /_sim/: moves the clock, sets switches and faults, plants records, shows what happened."""

import re
from decimal import Decimal
from typing import Annotated, TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from payrelay_simulator.chargebacks import charge_back, fail_refund, win_chargeback
from payrelay_simulator.clock import gateway_date
from payrelay_simulator.errors import ControlError
from payrelay_simulator.faults import WAIT_S_MAX, Rule, Schedule
from payrelay_simulator.money import cents_of
from payrelay_simulator.notification_faults import COPIES_MAX, NotificationRule, NotificationSchedule
from payrelay_simulator.overview import Shown, overview_page
from payrelay_simulator.pages.wire import HEADERS as PAGE_HEADERS
from payrelay_simulator.pages.wire import SEE_OTHER
from payrelay_simulator.presses import PRESSES, Press
from payrelay_simulator.seeding import Seed, plant
from payrelay_simulator.stage import Stage
from payrelay_simulator.switches import PROFILES, Switches, in_profile

# Entries in one answer of the ledger and the log; the rest is asked for with `after`.
PAGE_MAX = 10_000

RESETS_MAX = 10_000  # connections

T = TypeVar("T")


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A body in which a mistyped member is refused."""


class ClockOrder(Strict, frozen=True, kw_only=True):
    """Move the clock forward."""

    advance_s: float


class FaultsOrder(Strict, frozen=True, kw_only=True):
    """Append rules to a script or begin a seeded schedule: of calls, of notifications, or of both."""

    script: list[Rule] = []
    schedule: Schedule | None = None
    notifications: list[NotificationRule] = []
    notification_schedule: NotificationSchedule | None = None


class ListenerOrder(Strict, frozen=True, kw_only=True):
    """Refuse connections for some seconds of the real clock, or reset the next few."""

    close_for_s: Annotated[float, msgspec.Meta(gt=0, le=WAIT_S_MAX)] | None = None
    reset_connections: Annotated[int, msgspec.Meta(ge=0, le=RESETS_MAX)] | None = None


class ResendOrder(Strict, frozen=True, kw_only=True):
    """Send a notification once more, with other values in some of its fields if wanted."""

    number: int
    fields: dict[str, str] = {}
    is_signed: bool = False
    times: Annotated[int, msgspec.Meta(ge=1, le=COPIES_MAX)] = 1


class ReleaseOrder(Strict, frozen=True, kw_only=True):
    """Let notifications go that are held or wait: the one of that number, or all."""

    number: int | None = None


class ChargebackOrder(Strict, frozen=True, kw_only=True):
    """Charge a payment back, or a part of it; `notify_url` where the payment has none of its own."""

    payment_id: int
    amount: Decimal | None = None
    notify_url: str = ""


class WonOrder(Strict, frozen=True, kw_only=True):
    """Return to the merchant what was charged back of a payment."""

    payment_id: int


class FailedRefundOrder(Strict, frozen=True, kw_only=True):
    """Let a refund fail that was accepted."""

    refund_id: int


class PageQuery(Strict, frozen=True, kw_only=True):
    """Which part of a long list is asked for."""

    after: Annotated[int, msgspec.Meta(ge=0)] = 0
    count: Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)] = PAGE_MAX


class NotificationQuery(PageQuery, frozen=True, kw_only=True):
    """Which part of the notifications is asked for."""

    order_id: str | None = None


class OverviewQuery(Strict, frozen=True, kw_only=True):
    """After how many seconds the page comes again, of which order it is, and which button was pressed; each if any."""

    refresh: Annotated[int, msgspec.Meta(ge=1, le=3_600)] | None = None
    order_id: str | None = None
    pressed: str | None = None


class Control:
    """The handlers of the control API."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def routes(self) -> list[web.RouteDef]:
        """Return the paths with their handlers."""
        return [
            web.get("/_sim/clock", self.show_clock),
            web.post("/_sim/clock", self.move_clock),
            web.get("/_sim/switches", self.show_switches),
            web.post("/_sim/switches", self.set_switches),
            web.post("/_sim/profiles/{profile}", self.set_profile),
            web.get("/_sim/faults", self.show_faults),
            web.post("/_sim/faults", self.set_faults),
            web.delete("/_sim/faults", self.clear_faults),
            web.post("/_sim/listener", self.disturb_listener),
            web.post("/_sim/seed_data", self.seed_data),
            web.get("/_sim/ledger", self.show_ledger),
            web.get("/_sim/calls", self.show_calls),
            web.get("/_sim/notifications", self.show_notifications),
            web.post("/_sim/notifications/resend", self.resend_notification),
            web.post("/_sim/notifications/release", self.release_notifications),
            web.post("/_sim/chargebacks", self.charge_back),
            web.post("/_sim/chargebacks/won", self.win_chargeback),
            web.post("/_sim/refunds/failed", self.fail_refund),
            web.post("/_sim/press/{press}", self.press),
            web.post("/_sim/reset", self.reset),
            web.get("/_sim", self.show_overview),
            web.get("/_sim/", self.show_overview),
        ]

    async def show_clock(self, _request: web.Request) -> web.Response:
        """Tell the simulator's time, in UTC and as the gateway prints it."""
        now = self._stage.world.clock.now()
        return _json({"now": now, "gateway_date": gateway_date(now)})

    async def move_clock(self, request: web.Request) -> web.Response:
        """Move the clock and bring about what that makes due."""
        order = _read(await request.read(), ClockOrder)
        try:
            self._stage.world.clock.advance(order.advance_s)
        except ControlError as error:
            raise ControlError("advance_s", error.message) from error
        self._stage.world.elapse()
        return await self.show_clock(request)

    async def show_switches(self, _request: web.Request) -> web.Response:
        """Tell all switches."""
        return _json(self._stage.world.switches)

    async def set_switches(self, request: web.Request) -> web.Response:
        """Change the switches that are named, and only those."""
        changes = _read(await request.read(), dict[str, object])
        present = msgspec.structs.asdict(self._stage.world.switches)
        self._stage.world.switches = _convert({**present, **changes}, Switches)
        return await self.show_switches(request)

    async def set_profile(self, request: web.Request) -> web.Response:
        """Set the switches of a profile, and only those."""
        name = request.match_info["profile"]
        if name not in PROFILES:
            raise ControlError("profile", f"is none of {', '.join(PROFILES)}")
        self._stage.world.switches = in_profile(self._stage.world.switches, name)
        return await self.show_switches(request)

    async def show_faults(self, _request: web.Request) -> web.Response:
        """Tell the rules that can still strike, and the schedule."""
        faults = self._stage.world.faults
        of_notifications = self._stage.world.notifications.faults
        return _json(
            {
                "script": [{"rule": rule, "left": left} for rule, left in faults.pending],
                "schedule": faults.schedule,
                "notifications": [{"rule": rule, "left": left} for rule, left in of_notifications.pending],
                "notification_schedule": of_notifications.schedule,
            }
        )

    async def set_faults(self, request: web.Request) -> web.Response:
        """Append to the scripts, set the schedules."""
        order = _read(await request.read(), FaultsOrder)
        faults, of_notifications = self._stage.world.faults, self._stage.world.notifications.faults
        if order.schedule is not None:
            faults.set_schedule(order.schedule)
        if order.notification_schedule is not None:
            of_notifications.set_schedule(order.notification_schedule)
        of_notifications.check(*order.notifications)
        faults.add_rules(*order.script)
        of_notifications.add_rules(*order.notifications)
        return await self.show_faults(request)

    async def clear_faults(self, request: web.Request) -> web.Response:
        """Forget scripts and schedules, let hanging calls go, listen again."""
        self._stage.world.faults.clear()
        self._stage.world.notifications.faults.clear()
        self._stage.hangs.release()
        self._stage.listener.reset_next(0)
        await self._stage.listener.open()
        return await self.show_faults(request)

    async def disturb_listener(self, request: web.Request) -> web.Response:
        """Close the listening socket for a while, or reset the next connections."""
        order = _read(await request.read(), ListenerOrder)
        if order.reset_connections is not None:
            self._stage.listener.reset_next(order.reset_connections)
        if order.close_for_s is not None:
            self._stage.listener.close_for(order.close_for_s, keep=request.transport)
        response = _json({"is_open": self._stage.listener.is_open, "reset_connections": order.reset_connections or 0})
        # The connection of this order was spared so that it could be answered; it must not outlive the answer.
        response.force_close()
        return response

    async def seed_data(self, request: web.Request) -> web.Response:
        """Plant records and tell the identifiers that they were given."""
        return _json(plant(self._stage.world, _read(await request.read(), Seed)))

    async def show_ledger(self, request: web.Request) -> web.Response:
        """Tell what really happened to the money, up to this moment of the clock."""
        page = _convert(dict(request.query), PageQuery, strict=False)
        self._stage.world.elapse()
        ledger = self._stage.world.ledger
        return _json({"total": len(ledger), "entries": ledger.entries(after=page.after, count=page.count)})

    async def show_calls(self, request: web.Request) -> web.Response:
        """Tell which calls arrived, rejected ones included."""
        page = _convert(dict(request.query), PageQuery, strict=False)
        calls = self._stage.world.calls
        return _json({"total": calls.arrived, "calls": calls.records(after=page.after, count=page.count)})

    async def show_notifications(self, request: web.Request) -> web.Response:
        """Tell what notify_urls were told and are still to be told, with what came of each attempt."""
        page = _convert(dict(request.query), NotificationQuery, strict=False)
        self._stage.world.elapse()
        notifications = self._stage.world.notifications
        found = notifications.records(after=page.after, count=page.count, order_id=page.order_id)
        return _json({"total": notifications.total, "notifications": found})

    async def resend_notification(self, request: web.Request) -> web.Response:
        """Send a notification once more, just as it was or changed."""
        order = _read(await request.read(), ResendOrder)
        world = self._stage.world
        numbers = world.notifications.resend(
            world.clock.now(), order.number, order.fields, is_signed=order.is_signed, times=order.times
        )
        return _json({"numbers": numbers})

    async def release_notifications(self, request: web.Request) -> web.Response:
        """Let notifications go that are held or wait for their time."""
        order = _read(await request.read(), ReleaseOrder)
        world = self._stage.world
        return _json({"released": world.notifications.release(world.clock.now(), order.number)})

    async def charge_back(self, request: web.Request) -> web.Response:
        """Give a payment back to its payer against the merchant's will, and notify of it."""
        order = _read(await request.read(), ChargebackOrder)
        amount_cents = None if order.amount is None else cents_of(order.amount)
        if order.amount is not None and amount_cents is None:
            raise ControlError("amount", "must be a positive amount of whole cents")
        numbers = charge_back(self._stage.world, order.payment_id, order.notify_url, amount_cents=amount_cents)
        return _json({"notifications": numbers})

    async def win_chargeback(self, request: web.Request) -> web.Response:
        """Return a payment that was charged back, so that its record shows it as received again."""
        win_chargeback(self._stage.world, _read(await request.read(), WonOrder).payment_id)
        return _json({})

    async def fail_refund(self, request: web.Request) -> web.Response:
        """Let a refund that was accepted fail, so that its payment's record shows it no more."""
        fail_refund(self._stage.world, _read(await request.read(), FailedRefundOrder).refund_id)
        return _json({})

    async def show_overview(self, request: web.Request) -> web.Response:
        """Show people what happened, with the newest first; `refresh` has the page come again by itself."""
        query = _convert(dict(request.query), OverviewQuery, strict=False)
        self._stage.world.elapse()
        said = "" if query.pressed is None else _press(query.pressed).said
        # An empty field of the filter means every order.
        shown = Shown(order_id=query.order_id or None, refresh_s=query.refresh, said=said)
        text = overview_page(self._stage.world, shown)
        return web.Response(text=text, content_type="text/html", headers=PAGE_HEADERS)

    async def press(self, request: web.Request) -> web.Response:
        """Let happen what stands on a button; a browser's form comes back to the page, and a script is told."""
        name = request.match_info["press"]
        press = _press(name)
        press.act(self._stage.world)
        if "text/html" in request.headers.get("Accept", ""):
            return web.Response(status=SEE_OTHER, headers={**PAGE_HEADERS, "Location": f"/_sim/?pressed={name}"})
        response = _json({"said": press.said})
        response.headers["Access-Control-Allow-Origin"] = "*"
        return response

    async def reset(self, _request: web.Request) -> web.Response:
        """Begin anew with an empty world."""
        self._stage.reset()
        await self._stage.listener.open()
        return _json({})


@web.middleware
async def control_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer a wrong order with 400 and the place that is wrong."""
    try:
        return await handler(request)
    except ControlError as error:
        return _json({"error": {"field": error.field, "message": error.message}}, http_status=400)


def _press(name: str) -> Press:
    if name not in PRESSES:
        raise ControlError("press", f"must be one of {', '.join(PRESSES)}")
    return PRESSES[name]


def _json(document: object, *, http_status: int = 200) -> web.Response:
    body = msgspec.json.encode(document)
    return web.Response(status=http_status, body=body, content_type="application/json")


def _read(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.ValidationError as error:
        raise control_error(error) from error
    except (ValueError, RecursionError) as error:
        raise ControlError("body", "must be JSON") from error


def _convert(document: object, kind: type[T], *, strict: bool = True) -> T:
    try:
        return msgspec.convert(document, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise control_error(error) from error


def control_error(error: msgspec.ValidationError) -> ControlError:
    """Return the error with the field that it is about, taken out of the library's sentence."""
    message, _, place = str(error).partition(" - at ")
    place = place.strip("`").removeprefix("$").removeprefix(".")
    member = re.search(r"field `([^`]+)`", message)
    if member is not None:
        place = f"{place}.{member[1]}" if place else member[1]
    return ControlError(place or "body", message)
