"""What can go wrong with a notification on purpose, and the script or seeded schedule that says when."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from payrelay_simulator.draws import Draws
from payrelay_simulator.errors import ControlError
from payrelay_simulator.faults import RULES_MAX, WAIT_S_MAX

Flow = Literal["payment", "recurring", "preapproval", "authorization", "charge"]

COPIES_MAX = 100

# What each misbehaviour takes.
KINDS: Mapping[str, frozenset[str]] = {
    "duplicate": frozenset({"copies", "wait_s"}),
    "late": frozenset({"wait_s"}),
    "held": frozenset(),
    "reordered": frozenset({"behind", "wait_s"}),
    "forged": frozenset({"fields", "is_signed", "is_extra"}),
    "lost": frozenset(),
    "before_return": frozenset(),
    "after_return": frozenset({"wait_s"}),
}

WAIT_S_DEFAULT = 60.0
AFTER_RETURN_S_DEFAULT = 1.0

Wait = Annotated[float, msgspec.Meta(ge=0, le=WAIT_S_MAX)]


class NotificationArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A misbehaviour's particulars; seconds are those of the simulator's clock."""

    wait_s: Wait | None = None
    copies: Annotated[int, msgspec.Meta(ge=1, le=COPIES_MAX)] = 1
    behind: Annotated[int, msgspec.Meta(ge=1, le=COPIES_MAX)] = 1
    fields: dict[str, str] = {}
    # Signed anew over what stands in `fields`, as only one who knows the secret could.
    is_signed: bool = False
    # The genuine notification goes out as well, after the forged one.
    is_extra: bool = False


class NotificationMatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which notifications a rule is for; what is left out matches everything."""

    order_id: str | None = None
    flow: Flow | None = None
    status_code: int | None = None
    message_type: str | None = None


class NotificationFault(msgspec.Struct, frozen=True, kw_only=True):
    """A misbehaviour that strikes a notification."""

    name: str
    args: NotificationArguments = NotificationArguments()


class NotificationRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a script: it strikes the first `times` notifications that match; None: every one."""

    fault: str
    match: NotificationMatch = NotificationMatch()
    times: Annotated[int, msgspec.Meta(ge=1)] | None = 1
    args: NotificationArguments = NotificationArguments()


class NotificationSchedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Chance with a seed: the probability of each misbehaviour, for each notification."""

    seed: int
    probabilities: dict[str, Annotated[float, msgspec.Meta(ge=0, le=1)]]


class NotificationFaults:
    """Decides how a notification misbehaves: the first matching rule of the script, else a draw from the schedule."""

    def __init__(self) -> None:
        self._rules: list[NotificationRule] = []
        self._left: list[int | None] = []
        self._schedule: NotificationSchedule | None = None
        self._draws = Draws(0)

    def add_rules(self, *rules: NotificationRule) -> None:
        """Append rules to the script; a ControlError names what is wrong with them, and then none is added."""
        self.check(*rules)
        self._rules.extend(rules)
        self._left.extend(rule.times for rule in rules)

    def check(self, *rules: NotificationRule) -> None:
        """Raise the ControlError that adding the rules would raise."""
        if len(self._rules) + len(rules) > RULES_MAX:
            raise ControlError("notifications", f"must have at most {RULES_MAX} rules")
        for index, rule in enumerate(rules):
            _check(rule, f"notifications[{index}]")

    def set_schedule(self, schedule: NotificationSchedule) -> None:
        """Replace the seeded schedule, which begins anew; a ControlError names what is wrong with it."""
        for name in schedule.probabilities:
            if name not in KINDS:
                raise ControlError(f"notification_schedule.probabilities.{name}", "is not a misbehaviour")
        if sum(schedule.probabilities.values()) > 1:
            raise ControlError("notification_schedule.probabilities", "must not sum to more than 1")
        self._schedule, self._draws = schedule, Draws(schedule.seed)

    def clear(self) -> None:
        """Forget the script and the schedule."""
        self._rules, self._left, self._schedule = [], [], None

    @property
    def pending(self) -> tuple[tuple[NotificationRule, int | None], ...]:
        """The rules that can still strike, with how often."""
        return tuple((rule, left) for rule, left in zip(self._rules, self._left, strict=True) if left != 0)

    @property
    def schedule(self) -> NotificationSchedule | None:
        """The seeded schedule, if one is set."""
        return self._schedule

    def draw(self, flow: Flow, fields: Mapping[str, str]) -> NotificationFault | None:
        """Return how this notification misbehaves; each draws once, so a schedule repeats with their number."""
        for index, rule in enumerate(self._rules):
            left = self._left[index]
            if left == 0 or not _matches(rule.match, flow, fields):
                continue
            self._left[index] = None if left is None else left - 1
            return NotificationFault(name=rule.fault, args=rule.args)
        if self._schedule is None:
            return None
        fraction, reached = self._draws.fraction("notification fault"), 0.0
        for name in sorted(self._schedule.probabilities):
            reached += self._schedule.probabilities[name]
            if fraction < reached:
                return NotificationFault(name=name)
        return None


def _matches(match: NotificationMatch, flow: Flow, fields: Mapping[str, str]) -> bool:
    if match.order_id not in {None, fields["order_id"]} or match.flow not in {None, flow}:
        return False
    if match.status_code is not None and str(match.status_code) != fields["status_code"]:
        return False
    return match.message_type in {None, fields.get("message_type")}


def _check(rule: NotificationRule, place: str) -> None:
    arguments = KINDS.get(rule.fault)
    if arguments is None:
        raise ControlError(f"{place}.fault", f"must be one of {', '.join(KINDS)}")
    default = NotificationArguments()
    for name in NotificationArguments.__struct_fields__:
        if name not in arguments and getattr(rule.args, name) != getattr(default, name):
            raise ControlError(f"{place}.args.{name}", f"is not an argument of {rule.fault}")
