"""What the flows work with by which operators sign in; and where they sign in."""

from dataclasses import dataclass

import msgspec

from payrelay.console.runtime.passwords import Passwords
from payrelay.console.runtime.provider_calls import SignInProvider
from payrelay.console.store.tries import Challenges, SignInTries
from payrelay.core.operators.operator import (
    SESSION_MS,
    UNFINISHED_MS,
    ConsoleSession,
    Stage,
    token_hash,
)
from payrelay.core.secret import Secret
from payrelay.flows.operators.parts import OperatorParts, new_token
from payrelay.runtime.ids import new_id


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsoleParts(OperatorParts):
    """What the flows work with by which operators sign in; made once at start.

    Attributes:
        tries: counts tries to sign in.
        challenges: what a browser has to bring back once.
        passwords: hashes passwords.
        needs_second_factor: whether a password alone opens nothing.
        provider: the OpenID Connect provider that operators sign in by; None where there is none.
        takes_passwords: whether a password lets anybody in.
    """

    tries: SignInTries
    challenges: Challenges
    passwords: Passwords
    needs_second_factor: bool = True
    provider: SignInProvider | None = None
    takes_passwords: bool = True


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
