"""What the flows about operators work with, in the service and in commands; and who acts."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from payrelay.clock import Clock
from payrelay.core.operators.operator import (
    FRESH_MS,
    INVITATION_MS,
    TOKEN_BYTES,
    ConsoleSession,
    Invitation,
    NewAct,
    NotRecent,
    Operator,
    token_hash,
)
from payrelay.core.operators.roles import SHOWN_AGAIN, Act, Field, require_may, sees
from payrelay.core.secret import Secret
from payrelay.runtime.ids import new_id
from payrelay.store.opened_store import OpenedStore
from payrelay.store.operators.acts import OperatorActs
from payrelay.store.operators.confirmations import Confirmations
from payrelay.store.operators.operators import Operators

CHANGED_MEANWHILE = "the operator was changed meanwhile; look again, and decide anew"
StructT = TypeVar("StructT", bound=msgspec.Struct)


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorParts:
    """What the flows about operators work with; made once at start, or by a command.

    Attributes:
        operators: operators, invitations and sessions.
        acts: the history of what operators did.
        confirmations: what operators are asked to confirm.
        clock: tells the time.
        second_person: the acts that a second person has to confirm.
        small_refunds: how much may be refunded in all long after a second factor was shown, in hundredths by currency.
    """

    operators: Operators
    acts: OperatorActs
    confirmations: Confirmations
    clock: Clock
    second_person: frozenset[Act] = frozenset()
    small_refunds: Mapping[str, int] = field(default_factory=dict)


def operator_parts(store: OpenedStore, clock: Clock) -> OperatorParts:
    """Makes what the flows work with, on an opened database with its keys."""
    acts = OperatorActs(store.database, store.chain.secret)
    return OperatorParts(
        operators=Operators(store.database, store.seal, store.rows, acts),
        acts=acts,
        confirmations=Confirmations(store.database, store.rows, acts),
        clock=clock,
    )


class Actor(msgspec.Struct, frozen=True):
    """Who acts: an operator, or the user who runs a command on the machine, who has no operator's id.

    ``session_id`` is the session in which an operator acts; empty while they get in, and for a command. It was opened
    at ``shown_at_ms``, when the second factor was shown.
    """

    name: str
    operator: Operator | None = None
    session_id: str = ""
    shown_at_ms: int = 0

    @property
    def recent_until_ms(self) -> int:
        """Until when the second factor was shown shortly before."""
        return self.shown_at_ms + FRESH_MS

    def require(self, act: Act) -> None:
        """Raises Refusal (forbidden) unless the role that was read may do this; a command may do everything.

        It keeps pages from showing what nobody may do. What an act changes is decided in its unit of work, where the
        store reads session and role again.
        """
        if self.operator is not None:
            require_may(self.operator.role, act)

    def sees(self, field: Field) -> bool:
        """Tells whether the actor is shown something; a command shows everything."""
        return self.operator is None or sees(self.operator.role, field)

    def without_words(self, stored: StructT, **blanks: str | None) -> StructT:
        """Gives a stored value, with blanks in place of the words of operators where the actor isn't shown these."""
        return stored if self.sees(Field.WORDS) else msgspec.structs.replace(stored, **blanks)

    def require_recent(self, act: Act, now_ms: int) -> None:
        """Raises Refusal (forbidden) as ``require`` does, and NotRecent for what needs a second factor again."""
        self.require(act)
        if act in SHOWN_AGAIN and not self.is_recent(now_ms):
            raise NotRecent(act)

    def is_recent(self, now_ms: int) -> bool:
        """Tells whether the actor has shown the second factor shortly before; a command needs none."""
        return self.operator is None or now_ms < self.recent_until_ms

    def did(self, act: Act, subject: str, *, at_ms: int, reason: str = "", details: str = "") -> NewAct:
        """Makes the line of the history about what the actor does."""
        operator_id = "" if self.operator is None else self.operator.id
        return NewAct(
            at_ms=at_ms,
            operator_id=operator_id,
            name=self.name,
            act=act,
            subject=subject,
            reason=reason,
            details=details,
            session_id=self.session_id,
        )


def acting(operator: Operator, session: ConsoleSession | None = None) -> Actor:
    """Gives an operator as the one who acts, in a session; None while they get in."""
    name = f"{operator.name} <{operator.email}>"
    if session is None:
        return Actor(name=name, operator=operator)
    return Actor(name=name, operator=operator, session_id=session.id, shown_at_ms=session.began_at_ms)


def next_of(operator: Operator, at_ms: int, **members: object) -> Operator:
    """Gives the next version of an operator, with these members."""
    return msgspec.structs.replace(operator, version=operator.version + 1, changed_at_ms=at_ms, **members)


def new_token() -> Secret:
    """Draws a token that somebody carries."""
    return Secret(secrets.token_urlsafe(TOKEN_BYTES))


def new_invitation(operator_id: str, now_ms: int) -> tuple[Invitation, Secret]:
    """Makes an invitation, and the token that its address has."""
    token = new_token()
    invitation = Invitation(
        id=new_id("inv", now_ms),
        operator_id=operator_id,
        token_hash=token_hash(token.reveal()),
        made_at_ms=now_ms,
        expires_at_ms=now_ms + INVITATION_MS,
        ended_at_ms=None,
    )
    return invitation, token
