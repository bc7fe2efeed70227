"""The imitated gateway without a wire: a call comes in, an answer and its ledger entries come out.

Given the same seed, clock and calls it does the same; nothing in it waits, opens a socket or looks at the machine.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec

from payrelay_simulator import holds, payments, refunds, subscriptions
from payrelay_simulator.budget import Budget
from payrelay_simulator.calls import PATH_LENGTH_MAX, CallLog, CallRecord
from payrelay_simulator.clock import Clock
from payrelay_simulator.distortion import answer_instead, budget_reply, distort
from payrelay_simulator.errors import RefusalError
from payrelay_simulator.faults import Arguments, Fault, Faults, How
from payrelay_simulator.fields import Fields, identifier_of, parse_json
from payrelay_simulator.installments import Course, elapse
from payrelay_simulator.ledger import Ledger, LedgerEntry
from payrelay_simulator.notifications import Notifications
from payrelay_simulator.pages.visits import Visits
from payrelay_simulator.records import Merchant
from payrelay_simulator.reply import Reply
from payrelay_simulator.routes import EndpointName, Route, find
from payrelay_simulator.state import State
from payrelay_simulator.switches import Switches
from payrelay_simulator.tokens import Tokens, TokenTurn
from payrelay_simulator.turn import Turn


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it arrived: the raw path without its query, and the two headers that the gateway reads."""

    method: str
    path: str
    query: str = ""
    authorization: str | None = None
    content_type: str = ""
    body: bytes = b""
    arrived_monotonic_s: float = 0.0


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a call. `how` and `args` tell the wire what to do with `reply`; None: nothing is to be said."""

    arrival: int
    reply: Reply | None
    how: How
    args: Arguments
    entries: tuple[LedgerEntry, ...]

    @property
    def document(self) -> dict[str, Any]:
        """The answer's JSON object; empty where there is no answer or it is something else."""
        document = None if self.reply is None else self.reply.document
        return document if isinstance(document, dict) else {}


WRITES: Final[Mapping[EndpointName, Callable[[Turn, Fields], Reply]]] = {
    "charge": payments.charge,
    "capture": holds.capture,
    "refund": refunds.refund,
    "retry": subscriptions.retry,
    "cancel": subscriptions.cancel,
}


CALLS_IN_FILE_MAX = 1_000  # each change writes all of the file


class World:
    """All state of the gateway and the one way to call it."""

    def __init__(self, merchants: tuple[Merchant, ...], clock: Clock, switches: Switches, *, seed: int = 0) -> None:
        self.merchants = merchants
        self.clock = clock
        self.switches = switches
        self.state = State(seed, merchants)
        self.visits = Visits()
        self.ledger = Ledger()
        self.calls = CallLog()
        self.faults = Faults()
        self._budget = Budget()
        self._tokens = Tokens(merchants, self.state.draws)

    PARTS = frozenset({"merchants", "switches", "state", "visits", "ledger", "calls", "faults", "tokens"})
    """What a kept world consists of, beside its clock. The budget is not kept: it is empty after ten seconds."""

    def parts(self) -> dict[str, object]:
        """Return everything that a later start goes on with; of the calls the newest."""
        return {
            "merchants": self.merchants,
            "switches": self.switches,
            "state": self.state,
            "visits": self.visits,
            "ledger": self.ledger,
            "calls": self.calls.newest(CALLS_IN_FILE_MAX),
            "faults": self.faults,
            "tokens": self._tokens,
        }

    @classmethod
    def of_parts(cls, clock: Clock, parts: Mapping[str, Any]) -> "World":
        """Return the world that had these parts, at the time of a clock."""
        world = cls(parts["merchants"], clock, parts["switches"])
        world.state, world.visits, world.ledger = parts["state"], parts["visits"], parts["ledger"]
        world.calls, world.faults, world._tokens = parts["calls"], parts["faults"], parts["tokens"]
        world.notifications.send_again()
        return world

    @property
    def notifications(self) -> Notifications:
        """What was and will be told to notify_urls."""
        return self.state.notifications

    def elapse(self) -> None:
        """Bring about what the clock has made due; every call does so first."""
        course = Course(state=self.state, ledger=self.ledger, switches=self.switches, faults=self.faults)
        elapse(course, self.clock.now())

    def handle(self, call: Call) -> Outcome:
        """Deal with one call from arrival to answer, atomically: what it effects has happened when this returns."""
        arrival = self.calls.next_number()
        # What time brought about comes first, so that a hold that has ended is not captured by the call that is late,
        # and so that the entries after this point are the call's own.
        self.elapse()
        entries_before = len(self.ledger)
        route = find(call.method, call.path)
        order_id = self._subject(call, route)
        # A gateway's limit stands before everything else: a blocked call meets no fault and uses none up.
        is_blocked = not self._is_within_budget(call)
        fault = None
        if isinstance(route, Route) and not is_blocked:
            fault = self.faults.draw(route.endpoint, order_id)
        reply = self._answer(call, route, arrival, fault=fault, is_blocked=is_blocked)
        if reply is not None and reply.is_business_error:
            reply = msgspec.structs.replace(reply, http_status=self.switches.business_error_http)
        if reply is not None and fault is not None and fault.kind.step == "after":
            reply = distort(reply, fault)
        how = "whole" if fault is None else fault.kind.how
        # A limit that drops has nothing to say and no fault that would carry it.
        if reply is None and how == "whole":
            how = "cut"
        outcome = Outcome(
            arrival=arrival,
            reply=reply,
            how=how,
            args=Arguments() if fault is None else fault.args,
            entries=self.ledger.entries(after=entries_before),
        )
        self._log(call, route, order_id, outcome, fault=fault, is_blocked=is_blocked)
        return outcome

    def _is_within_budget(self, call: Call) -> bool:
        if self.switches.rate_limit_calls == 0:
            return True
        return self._budget.has_taken(
            self._tokens.key_of(call.authorization),
            self.clock.now(),
            calls=self.switches.rate_limit_calls,
            window_s=self.switches.rate_limit_window_s,
        )

    def _answer(
        self, call: Call, route: Route | Reply, arrival: int, *, fault: Fault | None, is_blocked: bool
    ) -> Reply | None:
        if is_blocked:
            return budget_reply(self.switches.rate_limit_answer)
        if isinstance(route, Reply):
            return route
        if fault is not None and fault.kind.step == "instead":
            return answer_instead(fault, self.switches)
        token_turn = TokenTurn(now=self.clock.now(), switches=self.switches)
        if route.endpoint == "token":
            return self._tokens.issue(call.authorization, call.content_type, call.body, token_turn)
        if fault is not None and fault.name == "token_expired":
            self._tokens.expire(call.authorization, token_turn.now)
        # A path or method that does not exist is told to anybody; from here on one must be known.
        try:
            merchant = self._tokens.authenticate(call.authorization, token_turn)
            return self._operate(call, route, self.turn_of(merchant, arrival, fault))
        except RefusalError as refusal:
            return refusal.reply

    def turn_of(self, merchant: Merchant, arrival: int | None, fault: Fault | None = None) -> Turn:
        """Return a turn at this moment: of a call, of a payer at a page, or of nobody where `arrival` is None."""
        return Turn(
            merchant=merchant,
            now=self.clock.now(),
            arrival=arrival,
            state=self.state,
            ledger=self.ledger,
            switches=self.switches,
            fault=fault,
        )

    def _operate(self, call: Call, route: Route, turn: Turn) -> Reply:
        if route.endpoint in WRITES:
            return WRITES[route.endpoint](turn, parse_json(call.content_type, call.body))
        if route.endpoint == "search":
            return payments.search(turn, _queried_order(call))
        if route.endpoint == "subscriptions":
            return subscriptions.list_subscriptions(turn)
        if route.endpoint == "subscription":
            return subscriptions.read(turn, route.subscription_id)
        return subscriptions.list_payments(turn, route.subscription_id)

    def _subject(self, call: Call, route: Route | Reply) -> str | None:
        """Return the order that a call is about, as far as it can be told before it is dealt with."""
        if not isinstance(route, Route) or route.endpoint == "token":
            return None
        if route.endpoint == "search":
            return _queried_order(call)
        if route.endpoint not in WRITES:
            return self._order_of_subscription(route.subscription_id)
        try:
            fields = parse_json(call.content_type, call.body)
        except RefusalError:
            return None
        order_id = fields.raw("order_id")
        if isinstance(order_id, str):
            return order_id
        token = fields.raw("authorization_token")
        hold = self.state.holds.get(token) if isinstance(token, str) else None
        record = hold or self.state.payments.get(_digits(fields.raw("payment_id")))
        return self._order_of_subscription(fields.raw("subscription_id")) if record is None else record.order_id

    def _order_of_subscription(self, subscription_id: object) -> str | None:
        subscription = self.state.subscriptions.get(_digits(subscription_id))
        return None if subscription is None else subscription.order_id

    def _log(
        self,
        call: Call,
        route: Route | Reply,
        order_id: str | None,
        outcome: Outcome,
        *,
        fault: Fault | None,
        is_blocked: bool,
    ) -> None:
        self.calls.record(
            CallRecord(
                number=outcome.arrival,
                at=self.clock.now(),
                arrived_monotonic_s=call.arrived_monotonic_s,
                method=call.method[:PATH_LENGTH_MAX],
                path=call.path[:PATH_LENGTH_MAX],
                endpoint=route.endpoint if isinstance(route, Route) else None,
                order_id=order_id,
                is_budget_blocked=is_blocked,
                fault=None if fault is None else fault.name,
                http_status=None if outcome.reply is None else outcome.reply.http_status,
                ledger_entries=len(outcome.entries),
            )
        )


def _queried_order(call: Call) -> str | None:
    return parse_qs(call.query).get("order_id", [None])[0]


def _digits(value: object) -> int:
    """Return the number that an id is, 0 (which no record has) where it is none."""
    try:
        return identifier_of(value, "id")
    except RefusalError:
        return 0
