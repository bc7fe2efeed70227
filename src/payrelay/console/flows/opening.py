"""Makes what the flows work with by which operators sign in."""

from payrelay.clock import Clock
from payrelay.console.flows.parts import ConsoleParts
from payrelay.console.runtime.passwords import Passwords
from payrelay.console.store.tries import Challenges, SignInTries
from payrelay.flows.operators.parts import operator_parts
from payrelay.store.opened_store import OpenedStore


def console_parts(store: OpenedStore, clock: Clock) -> ConsoleParts:
    """Makes what the flows work with, with the safe ways in; a served console has those of its settings."""
    operators = operator_parts(store, clock)
    return ConsoleParts(
        operators=operators.operators,
        acts=operators.acts,
        confirmations=operators.confirmations,
        clock=clock,
        tries=SignInTries(store.database),
        challenges=Challenges(store.database),
        passwords=Passwords(),
    )
