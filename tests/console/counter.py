"""A console over a relay with one scripted account: operators at the desk, and money behind it."""

import dataclasses
import re
from pathlib import Path

import msgspec
from tests.console.browsing import Window, console_on, signed_in
from tests.flows.console.desk import Desk, StandingClock
from tests.flows.world import CHARGE, HandClock, World, asked, opened, outcome_of

from payrelay.core.operators.confirmations import Confirmation
from payrelay.core.operators.roles import Act, Role
from payrelay.core.outcomes import Evidence, OutcomeKind
from payrelay.core.payments.changes import Report
from payrelay.core.payments.operation import Event, Kind, Operation
from payrelay.core.payments.proof import MatchResult
from payrelay.flows.apply_change import apply
from payrelay.flows.operations.intent import Intent
from payrelay.flows.payments.charge import charge
from payrelay.recovery.flows.hold import hold


class SharedClock(StandingClock):
    """Shows the operators the time of the gateway's world."""

    def __init__(self, clock: HandClock) -> None:
        self._clock = clock

    def now_ms(self) -> int:
        """Gives the time of the world."""
        return self._clock.now_ms()

    @property
    def at_ms(self) -> int:
        """The time."""
        return self._clock.now_ms()

    @at_ms.setter
    def at_ms(self, at_ms: int) -> None:
        self._clock.passed_ms += at_ms - self._clock.now_ms()

    def boot_s(self) -> float:
        """Gives the seconds of the world."""
        return self._clock.boot_s()


class Counter:
    """A world with a desk in front of it, and short words for what tests do over and over."""

    def __init__(self, world: World, second_person: frozenset[Act] = frozenset()) -> None:
        self.world = world
        self.desk = Desk(world.database)
        self.desk.clock = SharedClock(world.clock)
        self.desk.parts = dataclasses.replace(self.desk.parts, clock=self.desk.clock, second_person=second_person)
        self.console = console_on(self.desk, world.relay)

    @classmethod
    async def opened(cls, folder: Path, second_person: frozenset[Act] = frozenset()) -> "Counter":
        """Opens one on an empty database."""
        return cls(World(await opened(folder / "payrelay.db"), folder / "payrelay.db"), second_person)

    async def close(self) -> None:
        """Closes it; whatever was done, the history must be whole."""
        await self.world.relay.background.finish(1)
        await self.world.relay.dispatch.close()
        assert await self.desk.is_whole()
        await self.world.database.close()

    async def window(self, name: str, role: Role = Role.OPERATOR) -> Window:
        """Opens a window in which a new operator is signed in."""
        return await signed_in(self.desk, self.console, f"{name}@shop.example", role)

    async def charged(self, kind: OutcomeKind = OutcomeKind.SUCCEEDED, payment_id: str | None = "320") -> Operation:
        """Charges an order for the principal shop; gives the operation with its payment."""
        facts = {} if payment_id is None else {"payment_id": payment_id}
        self.world.account.script.append(outcome_of(kind, **facts))
        await charge(self.world.relay, asked(f"k{len(await self.world.operations())}"), CHARGE)
        return await self.world.operation()

    async def doubtful(self) -> Operation:
        """Charges an order whose outcome nothing proves: it needs a person."""
        operation = await self.charged(OutcomeKind.UNKNOWN, None)
        unclear = Report(event=Event.UNCLEAR, evidence=Evidence(seen=MatchResult.SEVERAL_FIT))
        return (await apply(self.world.relay, operation, unclear)).operation

    async def charged_for(self, order_id: str) -> Operation:
        """Charges another order, which succeeds; gives the operation with its payment."""
        self.world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, payment_id="321"))
        await charge(self.world.relay, asked(order_id), msgspec.structs.replace(CHARGE, order_id=order_id))
        return await self.world.operation()

    async def held(self) -> Operation:
        """Holds a charge, as a recovery does."""
        intent = Intent(
            kind=Kind.CHARGE,
            call=CHARGE,
            subject="order/A-1",
            order_id="A-1",
            amount_minor=CHARGE.amount_minor,
            currency=CHARGE.currency,
        )
        await hold(self.world.relay, asked("held"), intent, "f" * 64, "key/held")
        return await self.world.operation()

    async def acts(self) -> list[tuple[str, str]]:
        """Gives what was written down but for signing in: the act and the reason, oldest first."""
        lines = await self.desk.parts.acts.before(None, 500)
        quiet = {"sign_in", "sign_out", "add_operator", "accept_invitation", "enrol_second_factor"}
        return [(line.act, line.reason) for line in reversed(lines) if line.act not in quiet]

    async def confirmation(self, window: Window) -> Confirmation:
        """Gives what the last page of a window is about."""
        found = await self.desk.parts.confirmations.get(confirmation_in(window))
        assert found is not None
        return found


def confirmation_in(window: Window) -> str:
    """Gives the id of the confirmation that a page is of."""
    found = re.search(r"/console/confirmations/(cnf_\w+)", window.text)
    assert found is not None, window.text
    return found[1]


def seen_in(window: Window) -> str:
    """Gives what the forms of a page name as what it shows."""
    found = re.search(r'name="seen" value="([^"]*)"', window.text)
    assert found is not None, window.text
    return found[1]


async def sent(window: Window, address: str, act: str, **fields: str) -> None:
    """Opens the page of a thing, and sends the form of an act about it."""
    await window.get(address)
    await window.post(f"{address}/{act}", seen=seen_in(window), **fields)
