"""What people let happen by one press: a lost reply, a decline, a late notification, a month that passes."""

from collections.abc import Callable, Mapping

import msgspec

from payrelay_simulator.faults import Match, Rule
from payrelay_simulator.notification_faults import NotificationArguments, NotificationRule
from payrelay_simulator.world import World

LATE_S = 60.0

MONTH_S = 31 * 24 * 3600.0


class Press(msgspec.Struct, frozen=True, kw_only=True):
    """A button: what stands on it, and what is said once it was pressed."""

    label: str
    said: str
    act: Callable[[World], None]


def _lose_reply(world: World) -> None:
    world.faults.add_rules(Rule(fault="cut_after", match=Match(endpoint="charge")))


def _decline(world: World) -> None:
    world.faults.add_rules(Rule(fault="decline"))


def _delay_notification(world: World) -> None:
    world.notifications.faults.add_rules(
        NotificationRule(fault="late", args=NotificationArguments(wait_s=LATE_S)),
    )


def _pass_month(world: World) -> None:
    switches = world.switches
    is_fast = switches.installments == "accelerated"
    world.clock.advance(switches.accelerated_interval_s if is_fast else MONTH_S)
    world.elapse()


def _forget(world: World) -> None:
    world.faults.clear()
    world.notifications.faults.clear()


PRESSES: Mapping[str, Press] = {
    "lose-reply": Press(
        label="Lose the next reply",
        said="The next charge will be carried out, and its reply will be lost.",
        act=_lose_reply,
    ),
    "decline": Press(label="Decline", said="The next payment will be declined.", act=_decline),
    "late-notification": Press(
        label="Notification late",
        said=f"The next notification will come {LATE_S:.0f} s late.",
        act=_delay_notification,
    ),
    "month": Press(
        label="A month passes",
        said="A month of each subscription has passed, and its next installment was due.",
        act=_pass_month,
    ),
    "forget": Press(label="Nothing goes wrong", said="Nothing that was to go wrong will.", act=_forget),
}
