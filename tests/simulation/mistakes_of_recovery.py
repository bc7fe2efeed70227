"""Mistakes that nobody made in what follows a loss of commits: each is one part in another's place."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from tests.simulation.process import Parts

from payrelay.clock import Clock
from payrelay.core.access.credential import Credential
from payrelay.core.access.ownership import OrderOwners
from payrelay.core.database.incarnations import Incarnation
from payrelay.core.payments.proof import Control
from payrelay.flows.relay import Relay
from payrelay.runtime.database.lost_commits import LostCommits
from payrelay.runtime.database.marks import Marks
from payrelay.runtime.health.control_queries import ControlQueries
from payrelay.store.access.credentials import Credentials
from payrelay.store.access.owners import Owners
from payrelay.store.engine.database import Database


class Heedless(LostCommits):
    """Sends each request as a new one, whatever is under way."""

    async def require_effects_allowed(self) -> Incarnation | None:
        """Knows of no recovery."""
        await super().require_effects_allowed()
        return None


class Trusting(LostCommits):
    """Takes a database for whole where it has all that the marks name, however old they are."""

    marks: Marks

    async def require_effects_allowed(self) -> Incarnation | None:
        """Knows of no recovery where no mark shows anything missing."""
        current = await super().require_effects_allowed()
        found = await self.marks._files.read()
        named = [file.content.mark for file in found if file.content is not None]
        is_whole = bool(named) and not any([await self.marks._rows.missing(mark) for mark in named])
        return None if is_whole else current


class Uncontrolled(ControlQueries):
    """Takes every search for one that works."""

    async def result(self, merchant: str, clock: Clock, make: Callable[[], Awaitable[Control]]) -> Control:  # noqa: ARG002
        """Asks nothing."""
        return Control.FOUND


class Solitary(Credentials):
    """Takes whoever asks for the only one who could make anything."""

    async def list(self) -> list[Credential]:
        """Knows of no keys."""
        return []


class Forgetful(Owners):
    """Takes for the owner of an order whoever has it by now, whatever was lost."""

    async def of_order(
        self,
        merchant: str,
        order_id: str,
        *,
        before_ms: int | None = None,  # noqa: ARG002, not asked
        but_for: str = "",
    ) -> OrderOwners:
        """Asks no time."""
        return await super().of_order(merchant, order_id, but_for=but_for)

    async def of_payment(self, merchant: str, payment_id: str, *, before_ms: int | None = None) -> frozenset[str]:  # noqa: ARG002, not asked
        """Asks no time."""
        return await super().of_payment(merchant, payment_id)


def _forgetful(relay: Relay, database: Database) -> Relay:
    return replace(relay, access=replace(relay.access, owners=Forgetful(database, relay.checkouts.rows)))


def _solitary(relay: Relay, database: Database) -> Relay:
    return replace(relay, access=replace(relay.access, credentials=Solitary(database, relay.access.credentials._rows)))


def _heedless(relay: Relay, _: Database) -> Relay:
    lost_commits = Heedless.__new__(Heedless)
    lost_commits.__dict__ = vars(relay.database.lost_commits)
    return replace(relay, database=replace(relay.database, lost_commits=lost_commits))


def _trusting(relay: Relay, _: Database) -> Relay:
    lost_commits = Trusting.__new__(Trusting)
    lost_commits.__dict__ = vars(relay.database.lost_commits)
    lost_commits.marks = relay.database.marks
    return replace(relay, database=replace(relay.database, lost_commits=lost_commits))


def _uncontrolled(relay: Relay, _: Database) -> Relay:
    return replace(relay, control_queries=Uncontrolled())


def _hasty(relay: Relay, _: Database) -> Relay:
    return replace(relay, settings=replace(relay.settings, recovery_lag_s=0))


MISTAKES_OF_RECOVERY: Final[dict[str, Callable[[], Parts]]] = {
    "nothing lost is looked for": lambda: Parts(change=_heedless),
    "a look needs no control": lambda: Parts(change=_uncontrolled),
    "a look comes too early": lambda: Parts(change=_hasty),
    "what has lost its owner is open to all": lambda: Parts(change=_solitary),
    "an older mark is trusted": lambda: Parts(change=_trusting),
    "an order is whose it is by now": lambda: Parts(change=_forgetful),
}
