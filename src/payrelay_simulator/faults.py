"""Faults: what can go wrong on purpose, and the script or seeded schedule that says when."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from payrelay_simulator.draws import Draws
from payrelay_simulator.errors import ControlError
from payrelay_simulator.records import Decline
from payrelay_simulator.routes import ENDPOINT_NAMES, EndpointName

Step = Literal["instead", "within", "after"]

How = Literal["whole", "hang", "cut", "half", "drip", "refuse"]

# A day: longer than any caller waits, short enough that a forgotten fault ends.
WAIT_S_MAX = 86_400.0

# Four times the largest body that a careful caller would take from a gateway, and still quick to send.
ENORMOUS_BYTES_DEFAULT = 8 * 1024 * 1024
ENORMOUS_BYTES_MAX = 64 * 1024 * 1024

RULES_MAX = 1_000  # a script is written by hand or by a test


class FaultKind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault.

    `step` says where it strikes: *instead* of the operation (no effect), *within* it, or *after* it (the effect
    stands). `how` says what happens to the answer on the wire; `endpoints` where it can strike, at every call of
    the merchant API if empty.
    """

    step: Step
    how: How = "whole"
    arguments: frozenset[str] = frozenset()
    endpoints: frozenset[str] = frozenset()


CHARGES = frozenset({"charge", "pay"})
DECLINABLE = CHARGES | {"retry", "installment"}
RECEIPTS = frozenset({"charge", "capture", "retry", "pay", "installment"})
MONEY_ANSWERS = frozenset({"charge", "capture", "search", "subscription", "subscriptions", "subscription_payments"})
# What happens to calls of the merchant API doesn't happen to a payer's page, and not to an installment.
UNCALLED = frozenset({"pay", "installment"})
WITH_TOKEN = ENDPOINT_NAMES - {"token"} - UNCALLED

WAIT = frozenset({"wait_s"})

KINDS: Mapping[str, FaultKind] = {
    "refuse": FaultKind(step="instead", how="refuse", arguments=WAIT),
    "hang_before": FaultKind(step="instead", how="hang", arguments=WAIT),
    "hang_after": FaultKind(step="after", how="hang", arguments=WAIT),
    "cut_before": FaultKind(step="instead", how="cut", arguments=frozenset({"is_reset"})),
    "cut_after": FaultKind(step="after", how="cut", arguments=frozenset({"is_reset"})),
    "half_body": FaultKind(step="after", how="half"),
    "drip": FaultKind(step="after", how="drip", arguments=frozenset({"pause_s"})),
    "html_502_before": FaultKind(step="instead"),
    "html_502_after": FaultKind(step="after"),
    "envelope_500_before": FaultKind(step="instead"),
    "envelope_500_after": FaultKind(step="after"),
    "truncated_json": FaultKind(step="after"),
    "wrong_shape": FaultKind(step="after", arguments=frozenset({"body"})),
    "enormous_body": FaultKind(step="after", arguments=frozenset({"bytes"})),
    "domain_denied": FaultKind(step="instead", arguments=frozenset({"http_status"}), endpoints=WITH_TOKEN),
    "authentication_error": FaultKind(step="instead", endpoints=WITH_TOKEN),
    "budget_block": FaultKind(step="instead", arguments=frozenset({"answer"})),
    "token_expired": FaultKind(step="within", endpoints=WITH_TOKEN),
    "late_visibility": FaultKind(step="within", arguments=WAIT, endpoints=RECEIPTS),
    "decline": FaultKind(step="within", arguments=frozenset({"reason", "shape"}), endpoints=DECLINABLE),
    "pending": FaultKind(step="within", arguments=frozenset({"wait_s", "settles"}), endpoints=CHARGES),
    "other_amount": FaultKind(step="after", arguments=frozenset({"amount"}), endpoints=MONEY_ANSWERS),
    "other_order": FaultKind(step="after", arguments=frozenset({"order_id"}), endpoints=MONEY_ANSWERS),
    "other_currency": FaultKind(step="after", arguments=frozenset({"currency"}), endpoints=MONEY_ANSWERS),
}


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A fault's particulars; each kind takes those that its row in `KINDS` names."""

    # Seconds: of the real clock for what happens on the wire, of the simulator's for what happens to a payment.
    wait_s: Annotated[float, msgspec.Meta(gt=0, le=WAIT_S_MAX)] | None = None
    pause_s: Annotated[float, msgspec.Meta(ge=0, le=60)] = 0.05
    is_reset: bool = False
    bytes: Annotated[int, msgspec.Meta(ge=1, le=ENORMOUS_BYTES_MAX)] = ENORMOUS_BYTES_DEFAULT
    body: object = msgspec.field(default_factory=list)
    http_status: Literal[401, 403] | None = None
    answer: Literal["429", "403", "drop"] | None = None
    reason: Decline = "insufficient_funds"
    shape: Literal["data", "envelope"] | None = None
    settles: bool = True
    amount: float = 1.0
    order_id: str = "another-order"
    currency: str = "USD"


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that strikes a call."""

    name: str
    args: Arguments = Arguments()

    @property
    def kind(self) -> FaultKind:
        """The row of `KINDS` that it belongs to."""
        return KINDS[self.name]

    @property
    def reason(self) -> Decline:
        """Why a scripted decline declines."""
        return self.args.reason

    @property
    def shape(self) -> Literal["data", "envelope"] | None:
        """In which of the two forms a scripted decline is told; None: as the switch says."""
        return self.args.shape

    @property
    def settles(self) -> bool:
        """Whether a pending charge is paid in the end."""
        return self.args.settles

    @property
    def wait_s(self) -> float:
        """How long a payment stays out of sight; a minute where nothing is said."""
        return 60.0 if self.args.wait_s is None else self.args.wait_s


class Match(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which calls a rule is for; what is left out matches every call, and no installment that time brings about."""

    endpoint: EndpointName | None = None
    order_id: str | None = None


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a script: the fault strikes the first `times` calls that match; None: every one."""

    fault: str
    match: Match = Match()
    times: Annotated[int, msgspec.Meta(ge=1)] | None = 1
    args: Arguments = Arguments()


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Chance with a seed: the probability of each fault, for each call that it can strike.

    Installments are struck only where `endpoints` names them.
    """

    seed: int
    probabilities: dict[str, Annotated[float, msgspec.Meta(ge=0, le=1)]]
    endpoints: list[EndpointName] | None = None


class Faults:
    """Decides which fault strikes a call: the first matching rule of the script, else a draw from the schedule."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._left: list[int | None] = []
        self._schedule: Schedule | None = None
        self._draws = Draws(0)

    def add_rules(self, *rules: Rule) -> None:
        """Append rules to the script; a ControlError names what is wrong with them, and then none is added."""
        if len(self._rules) + len(rules) > RULES_MAX:
            raise ControlError("script", f"must have at most {RULES_MAX} rules")
        for index, rule in enumerate(rules):
            _check(rule, f"script[{index}]")
        self._rules.extend(rules)
        self._left.extend(rule.times for rule in rules)

    def set_schedule(self, schedule: Schedule) -> None:
        """Replace the seeded schedule, which begins anew; a ControlError names what is wrong with it."""
        for name in schedule.probabilities:
            if name not in KINDS:
                raise ControlError(f"probabilities.{name}", "is not a fault")
        if sum(schedule.probabilities.values()) > 1:
            raise ControlError("probabilities", "must not sum to more than 1")
        self._schedule, self._draws = schedule, Draws(schedule.seed)

    def clear(self) -> None:
        """Forget the script and the schedule."""
        self._rules, self._left, self._schedule = [], [], None

    @property
    def pending(self) -> tuple[tuple[Rule, int | None], ...]:
        """The rules that can still strike, with how often."""
        return tuple((rule, left) for rule, left in zip(self._rules, self._left, strict=True) if left != 0)

    @property
    def schedule(self) -> Schedule | None:
        """The seeded schedule, if one is set."""
        return self._schedule

    def draw(self, endpoint: EndpointName, order_id: str | None) -> Fault | None:
        """Return the fault that strikes this call, or this installment.

        Each call draws once, so a schedule repeats with its arrivals, however many installments fall due between them.
        """
        for index, rule in enumerate(self._rules):
            left = self._left[index]
            if left == 0 or not _matches(rule, endpoint, order_id):
                continue
            self._left[index] = None if left is None else left - 1
            return Fault(name=rule.fault, args=rule.args)
        return self._drawn(endpoint)

    def _drawn(self, endpoint: EndpointName) -> Fault | None:
        schedule = self._schedule
        if schedule is None:
            return None
        # Drawn before the endpoint is looked at: which calls are struck then depends on their number alone.
        fraction = self._draws.fraction("installment fault" if endpoint == "installment" else "fault")
        if endpoint not in (ENDPOINT_NAMES - {"installment"} if schedule.endpoints is None else schedule.endpoints):
            return None
        reached = 0.0
        for name in sorted(schedule.probabilities):
            reached += schedule.probabilities[name]
            if fraction < reached:
                return Fault(name=name) if _can_strike(name, endpoint) else None
        return None


def _can_strike(name: str, endpoint: str) -> bool:
    return endpoint in KINDS[name].endpoints or (not KINDS[name].endpoints and endpoint not in UNCALLED)


def _matches(rule: Rule, endpoint: EndpointName, order_id: str | None) -> bool:
    if rule.match.endpoint not in {None, endpoint} or not _can_strike(rule.fault, endpoint):
        return False
    # Installments fall due at any time: a rule for the next call must not be used up by one of another customer's.
    if endpoint == "installment" and rule.match == Match():
        return False
    return rule.match.order_id in {None, order_id}


def _check(rule: Rule, place: str) -> None:
    kind = KINDS.get(rule.fault)
    if kind is None:
        raise ControlError(f"{place}.fault", f"must be one of {', '.join(KINDS)}")
    endpoint = rule.match.endpoint
    if endpoint is not None and not _can_strike(rule.fault, endpoint):
        raise ControlError(f"{place}.match.endpoint", f"{rule.fault} strikes only {', '.join(sorted(kind.endpoints))}")
    # An argument that the kind does not take, left at its default, cannot be told from one that was not given.
    default = Arguments()
    for name in Arguments.__struct_fields__:
        if name not in kind.arguments and getattr(rule.args, name) != getattr(default, name):
            raise ControlError(f"{place}.args.{name}", f"is not an argument of {rule.fault}")
