"""Makes what the flows about operators work with, on an opened database with its keys."""

from typing import Protocol

from payrelay.clock import Clock
from payrelay.console.flows.parts import ConsoleParts
from payrelay.console.runtime.passwords import Passwords
from payrelay.console.store.tries import Challenges, SignInTries
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.meta import ChainStart
from payrelay.store.operators.acts import OperatorActs
from payrelay.store.operators.confirmations import Confirmations
from payrelay.store.operators.operators import Operators


class OpenedStore(Protocol):
    """An opened database, with its seal, the digests of its rows and the key of the audit chain."""

    @property
    def database(self) -> Database:
        """The database."""
        ...

    @property
    def seal(self) -> Seal:
        """Its seal."""
        ...

    @property
    def rows(self) -> RowDigests:
        """Makes and checks the digests of its rows."""
        ...

    @property
    def chain(self) -> ChainStart:
        """The key of the audit chain."""
        ...


def console_parts(store: OpenedStore, clock: Clock) -> ConsoleParts:
    """Makes what the flows work with, with the safe ways in; a served console has those of its settings."""
    acts = OperatorActs(store.database, store.chain.secret)
    return ConsoleParts(
        operators=Operators(store.database, store.seal, store.rows, acts),
        acts=acts,
        confirmations=Confirmations(store.database, store.rows, acts),
        tries=SignInTries(store.database),
        challenges=Challenges(store.database),
        passwords=Passwords(),
        clock=clock,
    )
