"""What the flows about operators work with, in the service and in commands; and who acts."""

import secrets
from dataclasses import dataclass

import msgspec

from payrelay.clock import Clock
from payrelay.core.console.operator import (
    INVITATION_MS,
    SESSION_MS,
    TOKEN_BYTES,
    UNFINISHED_MS,
    ConsoleSession,
    Invitation,
    NewAct,
    Operator,
    Stage,
    token_hash,
)
from payrelay.core.console.roles import Act, may
from payrelay.core.secret import Secret
from payrelay.errors import Code, Refusal
from payrelay.runtime.console.passwords import Passwords
from payrelay.runtime.console.provider_calls import SignInProvider
from payrelay.runtime.ids import new_id
from payrelay.store.console.acts import OperatorActs
from payrelay.store.console.confirmations import Confirmations
from payrelay.store.console.operators import Operators
from payrelay.store.console.tries import Challenges, SignInTries


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsoleParts:
    """What the flows about operators work with; made once at start, or by a command.

    Attributes:
        operators: operators, invitations and sessions.
        acts: the history of what operators did.
        tries: counts tries to sign in.
        challenges: what a browser has to bring back once.
        passwords: hashes passwords.
        clock: tells the time.
        confirmations: what operators are asked to confirm.
        needs_second_factor: whether a password alone opens nothing.
        provider: the OpenID Connect provider that operators sign in by; None where there is none.
        takes_passwords: whether a password lets anybody in.
        second_person: the acts that a second person has to confirm.
    """

    operators: Operators
    acts: OperatorActs
    confirmations: Confirmations
    tries: SignInTries
    challenges: Challenges
    passwords: Passwords
    clock: Clock
    needs_second_factor: bool = True
    provider: SignInProvider | None = None
    takes_passwords: bool = True
    second_person: frozenset[Act] = frozenset()


class Actor(msgspec.Struct, frozen=True):
    """Who acts: an operator, or the user who runs a command on the machine, who has no operator's id."""

    name: str
    operator: Operator | None = None

    def require(self, act: Act) -> None:
        """Raises Refusal (forbidden) unless the actor's role may do this; a command may do everything."""
        if self.operator is not None and not may(self.operator.role, act):
            raise Refusal(Code.FORBIDDEN, f"the role {self.operator.role} may not do this: {act}")

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
        )


def acting(operator: Operator) -> Actor:
    """Gives an operator as the one who acts."""
    return Actor(name=f"{operator.name} <{operator.email}>", operator=operator)


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


class Browser(msgspec.Struct, frozen=True):
    """Where a request comes from: its address, and what the browser calls itself."""

    client: str
    name: str


def new_session(operator_id: str, stage: Stage, browser: Browser, now_ms: int) -> tuple[ConsoleSession, Secret]:
    """Makes a session, and the token that its cookie has. Each stage has a session and a token of its own."""
    token = new_token()
    session = ConsoleSession(
        id=new_id("ses", now_ms),
        operator_id=operator_id,
        token_hash=token_hash(token.reveal()),
        stage=stage,
        began_at_ms=now_ms,
        seen_at_ms=now_ms,
        ends_at_ms=now_ms + (SESSION_MS if stage is Stage.OPEN else UNFINISHED_MS),
        client=browser.client,
        browser=browser.name,
        act=0,
        ended_at_ms=None,
    )
    return session, token
