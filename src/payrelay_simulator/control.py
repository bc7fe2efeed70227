"""The control API under /_sim/: moves the clock, sets switches and faults, plants records, shows what happened."""

import re
from typing import Annotated, TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from payrelay_simulator.clock import gateway_date
from payrelay_simulator.errors import ControlError
from payrelay_simulator.faults import WAIT_S_MAX, Rule, Schedule
from payrelay_simulator.seeding import Seed, plant
from payrelay_simulator.stage import Stage
from payrelay_simulator.switches import Switches

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
    """Append rules to the script, or begin a seeded schedule, or both."""

    script: list[Rule] = []
    schedule: Schedule | None = None


class ListenerOrder(Strict, frozen=True, kw_only=True):
    """Refuse connections for some seconds of the real clock, or reset the next few."""

    close_for_s: Annotated[float, msgspec.Meta(gt=0, le=WAIT_S_MAX)] | None = None
    reset_connections: Annotated[int, msgspec.Meta(ge=0, le=RESETS_MAX)] | None = None


class PageQuery(Strict, frozen=True, kw_only=True):
    """Which part of a long list is asked for."""

    after: Annotated[int, msgspec.Meta(ge=0)] = 0
    count: Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)] = PAGE_MAX


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
            web.get("/_sim/faults", self.show_faults),
            web.post("/_sim/faults", self.set_faults),
            web.delete("/_sim/faults", self.clear_faults),
            web.post("/_sim/listener", self.disturb_listener),
            web.post("/_sim/seed_data", self.seed_data),
            web.get("/_sim/ledger", self.show_ledger),
            web.get("/_sim/calls", self.show_calls),
            web.post("/_sim/reset", self.reset),
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

    async def show_faults(self, _request: web.Request) -> web.Response:
        """Tell the rules that can still strike, and the schedule."""
        faults = self._stage.world.faults
        script = [{"rule": rule, "left": left} for rule, left in faults.pending]
        return _json({"script": script, "schedule": faults.schedule})

    async def set_faults(self, request: web.Request) -> web.Response:
        """Append to the script, set the schedule."""
        order = _read(await request.read(), FaultsOrder)
        faults = self._stage.world.faults
        if order.schedule is not None:
            faults.set_schedule(order.schedule)
        faults.add_rules(*order.script)
        return await self.show_faults(request)

    async def clear_faults(self, request: web.Request) -> web.Response:
        """Forget script and schedule, let hanging calls go, listen again."""
        self._stage.world.faults.clear()
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
