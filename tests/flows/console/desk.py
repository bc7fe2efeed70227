"""A console without pages: operators in a database, a clock that stands, and quick passwords."""

from collections import deque
from typing import Final

import pyotp
import structlog
from argon2 import PasswordHasher
from tests.digests import digests_of
from tests.gateways.still_gateway import StillGateway
from tests.relays import relay_over
from tests.store.console.samples import acts_of, confirmations_of, operators_of

from payrelay.clock import Clock
from payrelay.console.flows.cases.parts import CaseParts
from payrelay.console.flows.parts import Browser, ConsoleParts
from payrelay.console.flows.sign_in import (
    Failure,
    SignedIn,
    Visitor,
    accept_invitation,
    confirm_code,
    secret_to_enrol,
)
from payrelay.console.runtime.budget_samples import BudgetSamples
from payrelay.console.runtime.passwords import Passwords
from payrelay.console.store.searches import Searches
from payrelay.console.store.sent_events import SentEvents
from payrelay.console.store.trends import Trends
from payrelay.console.store.tries import Challenges, SignInTries
from payrelay.core.calls import Read
from payrelay.core.gateways.fair_shares import PAYRELAY, Requester
from payrelay.core.operators.operator import Operator, Stage
from payrelay.core.operators.roles import Role
from payrelay.core.outcomes import Reading
from payrelay.core.payments.operation import Retention
from payrelay.core.secret import Secret
from payrelay.flows.operators.manage_operators import NewOperator, add_operator
from payrelay.flows.operators.parts import Actor
from payrelay.gateways.pacing.rate_limiter import Priority
from payrelay.store.engine.database import Database

ROOT: Final = Actor("root")
"""Who runs a command on the machine."""
PASSWORD: Final = "correct horse battery"
FIREFOX: Final = Browser("192.0.2.1", "Firefox")
QUIET: Final = structlog.wrap_logger(
    None, processors=[], wrapper_class=structlog.make_filtering_bound_logger("critical")
)
START_MS: Final = 1_800_000_000_000
MINUTE_MS: Final = 60_000


class StandingClock(Clock):
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.at_ms = START_MS

    def now_ms(self) -> int:
        """Gives the time that the test has set."""
        return self.at_ms


class ReadGateway(StillGateway):
    """A gateway that answers reads as a test says; where that says nothing, nobody is there."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.readings: deque[Reading] = deque()
        self.asked: list[Read] = []

    async def read(
        self,
        call: Read,
        *,
        priority: Priority = Priority.READ,
        until_s: float | None = None,
        requester: Requester = PAYRELAY,
    ) -> Reading:
        """Gives the next of the readings."""
        self.asked.append(call)
        if self.readings:
            return self.readings.popleft()
        return await super().read(call, priority=priority, until_s=until_s, requester=requester)


class Desk:
    """The flows' parts, and short words for what tests do over and over."""

    def __init__(self, database: Database, *, needs_second_factor: bool = True) -> None:
        self.database = database
        self.clock = StandingClock()
        self.gateway = ReadGateway(self.clock)
        retention = Retention(keyed_ms=MINUTE_MS, unkeyed_ms=MINUTE_MS)
        self.relay = relay_over(database, {"gateway": self.gateway}, clock=self.clock, log=QUIET, retention=retention)
        rows = digests_of(database)
        self.cases = CaseParts(
            relay=self.relay,
            searches=Searches(database, rows),
            sent=SentEvents(rows),
            trends=Trends(database),
            budgets=BudgetSamples(lambda: {"gateway": self.gateway.rate_limiter.snapshot()}, self.clock),
        )
        self.parts = ConsoleParts(
            operators=operators_of(database),
            acts=acts_of(database),
            confirmations=confirmations_of(database),
            tries=SignInTries(database),
            challenges=Challenges(database),
            passwords=quick_passwords(),
            clock=self.clock,
            needs_second_factor=needs_second_factor,
        )

    async def invited(self, email: str, role: Role = Role.ADMIN) -> Secret:
        """Adds an operator, and gives the token of the invitation."""
        return (await add_operator(self.parts, ROOT, NewOperator(email=email, name="Ada", role=role), "test")).token

    async def hired(self, email: str, role: Role = Role.ADMIN) -> SignedIn:
        """Adds an operator who accepts, sets the second factor up where one is needed, and is signed in."""
        token = await self.invited(email, role)
        begun = await accept_invitation(self.parts, token.reveal(), PASSWORD, FIREFOX)
        assert isinstance(begun, SignedIn)
        if begun.session.stage is Stage.OPEN:
            return begun
        return await self.enrolled(begun)

    async def enrolled(self, signed_in: SignedIn) -> SignedIn:
        """Sets an authenticator app up in a session; gives the session that it opens."""
        opened = await self.confirm(signed_in, await self.first_code(signed_in))
        assert isinstance(opened, SignedIn)
        return opened

    async def first_code(self, signed_in: SignedIn) -> str:
        """Gives what the app shows that was given the secret of this session's page."""
        return self.code_by(await self.to_enrol(signed_in))

    async def to_enrol(self, signed_in: SignedIn) -> Secret:
        """Gives the secret on the page of this session."""
        return await secret_to_enrol(self.parts, await self.visitor(signed_in), signed_in.token.reveal())

    async def confirm(self, signed_in: SignedIn, code: str) -> SignedIn | Failure:
        """Sends a code in a session."""
        token = signed_in.token.reveal()
        return await confirm_code(self.parts, await self.visitor(signed_in), code, FIREFOX, token=token)

    async def code(self, operator: Operator) -> str:
        """Gives what the operator's phone shows now."""
        secret = await self.parts.operators.totp_secret(operator.id)
        assert secret is not None
        return self.code_by(secret)

    def code_by(self, secret: Secret) -> str:
        """Gives what a phone with this secret shows now."""
        return pyotp.TOTP(secret.reveal()).at(self.clock.at_ms // 1000)

    async def visitor(self, signed_in: SignedIn) -> Visitor:
        """Gives the operator and the session as the store has them now."""
        operator = await self.parts.operators.get(signed_in.operator.id)
        session = await self.parts.operators.session(signed_in.session.token_hash)
        assert operator is not None
        assert session is not None
        return Visitor(operator, session)

    async def done(self) -> list[tuple[str, str]]:
        """Gives who did what, oldest first."""
        return [(act.name.partition(" ")[0], act.act) for act in reversed(await self.parts.acts.before(None, 100))]

    async def is_whole(self) -> bool:
        """Tells whether the history is as it was written."""
        return not [wrong async for _, wrong in self.parts.acts.check() if wrong]


def quick_passwords() -> Passwords:
    """Hashes passwords at a hundredth of the cost."""
    return Passwords(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
