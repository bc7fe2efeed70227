"""Operators of the console, their invitations and their sessions: what is stored, and what is still valid.

Rules:

1. A secret that somebody carries, such as the token of a session, is random and 256 bits long. The store has its hash.
2. A session ends by itself: after a time without a request, after a whole working day, or with its operator.
3. A session that lacks the second factor opens no page but the one that asks for it.
"""

import hashlib
import re
from enum import StrEnum
from string import ascii_lowercase, ascii_uppercase
from typing import Final

import msgspec

from payrelay.core.operators.roles import Act, Role, may

TOKEN_BYTES: Final = 32
EMAIL_LENGTH_MAX: Final = 254
NAME_LENGTH_MAX: Final = 100
PASSWORD_LENGTH_MIN: Final = 12
PASSWORD_LENGTH_MAX: Final = 256
"""Longer than any that somebody types; a limit, because each is worked on."""
BROWSER_LENGTH_MAX: Final = 200

INVITATION_MS: Final = 72 * 3_600_000
"""How long an invitation can be accepted: over a weekend."""
IDLE_MS: Final = 30 * 60_000
"""How long a session lasts without a request."""
SESSION_MS: Final = 12 * 3_600_000
"""How long a session lasts at most: a working day."""
UNFINISHED_MS: Final = 10 * 60_000
"""How long a sign-in may take between the password and the second factor."""
FRESH_MS: Final = 10 * 60_000
"""How long after a sign-in its operator may change what signs them in; whoever finds an open browser can't."""
SEEN_EVERY_MS: Final = 60_000
"""How exactly the store knows when a session was last used; so most requests write nothing."""

_SMALL: Final = str.maketrans(ascii_uppercase, ascii_lowercase)
_email_match: Final = re.compile(r"[^@\s\x00-\x1f\x7f<>\"'`]{1,64}@[A-Za-z0-9.-]{1,189}").fullmatch
PASSKEYS_MAX: Final = 10
"""Of one operator: a phone, a laptop and a few keys on a ring."""


class NotRecent(Exception):
    """The operator has to show the second factor again, and ``act`` is done then."""

    def __init__(self, act: Act) -> None:
        super().__init__(act)
        self.act = act


class OperatorState(StrEnum):
    """What has become of an operator."""

    INVITED = "invited"
    """Has no password yet, or none any more, and an invitation to choose one."""
    ACTIVE = "active"
    DISABLED = "disabled"


class SecondFactor(StrEnum):
    """What an operator shows beside the password.

    The operator's row says it, so that nobody loses a second factor, or needs none, by a passkey's row that went away.
    """

    TOTP = "totp"
    PASSKEY = "passkey"
    EITHER = "totp_or_passkey"


class Stage(StrEnum):
    """How far somebody has come with signing in."""

    CODE = "code"
    """The password was right; a code of the second factor is asked for."""
    ENROL = "enrol"
    """The password was right, and a second factor has to be set up first."""
    OPEN = "open"


class Operator(msgspec.Struct, frozen=True, kw_only=True):
    """A person who may use the console.

    Attributes:
        id: ``opr_`` and an id.
        email: without A to Z; two operators never have one.
        name: as the history shows it.
        role: what they may do.
        state: see OperatorState.
        password_hash: as argon2 writes it; None where there is none.
        second_factor: None where none is set up.
        totp_step: the 30 seconds of the last code that was accepted, so that no code is accepted twice.
        provider_subject: the hash of issuer and subject at the identity provider; None where they never came from it.
        version: counts the changes.
        act: the number of the act that last changed this.
        created_at_ms, changed_at_ms: milliseconds since 1970, UTC.
    """

    id: str
    email: str
    name: str
    role: Role
    state: OperatorState
    password_hash: str | None
    second_factor: SecondFactor | None
    totp_step: int
    provider_subject: str | None
    version: int
    act: int
    created_at_ms: int
    changed_at_ms: int

    def __repr__(self) -> str:
        return f"Operator({self.id!r}, {self.role!r}, {self.state!r})"

    @property
    def lets_in(self) -> tuple[str | None, ...]:
        """What decides whether somebody gets in as this operator, and what they have to show."""
        return (self.state, self.password_hash, self.second_factor, self.provider_subject)

    @property
    def has_totp(self) -> bool:
        """True where the codes of an authenticator app count."""
        return self.second_factor in {SecondFactor.TOTP, SecondFactor.EITHER}

    @property
    def has_passkeys(self) -> bool:
        """True where a passkey is asked for, whether or not there is still one."""
        return self.second_factor in {SecondFactor.PASSKEY, SecondFactor.EITHER}


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """A way to choose a password, once; ``token_hash`` is of what the address has."""

    id: str
    operator_id: str
    token_hash: str
    made_at_ms: int
    expires_at_ms: int
    ended_at_ms: int | None


class ConsoleSession(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's session in one browser.

    Attributes:
        id: ``ses_`` and an id, which may be shown.
        operator_id: whose it is.
        token_hash: of what the cookie has.
        stage: how far the sign-in has come.
        began_at_ms, seen_at_ms: when it began, and when it was last used, to a minute.
        ends_at_ms: when it ends whatever is done.
        client: the address that it began from.
        browser: what the browser called itself, cut.
        act: the number of the act by which somebody signed in; 0 before that.
        ended_at_ms: when it was ended; None while nobody has.
    """

    id: str
    operator_id: str
    token_hash: str
    stage: Stage
    began_at_ms: int
    seen_at_ms: int
    ends_at_ms: int
    client: str
    browser: str
    act: int
    ended_at_ms: int | None


class NewAct(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody did, before the history gives it a number.

    Attributes:
        at_ms: milliseconds since 1970, UTC.
        operator_id: who did it; empty for a command on the machine.
        name: the operator's name, or the name of the user who ran the command.
        act: what.
        subject: what it was done to, such as an operator's id.
        reason: why, in the operator's words; empty where nobody is asked.
        details: what else must be known, as a text such as ``role viewer, was admin``.
        session_id: the session in which it is done, which has to go on then; empty for a command, and while somebody
            gets in. The history doesn't keep it.
    """

    at_ms: int
    operator_id: str
    name: str
    act: Act
    subject: str
    reason: str = ""
    details: str = ""
    session_id: str = ""


class OperatorAct(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the history of what operators did; ``hash`` covers it and all lines before it."""

    number: int
    at_ms: int
    operator_id: str
    name: str
    act: str
    subject: str
    reason: str
    details: str
    hash: str


class OperatorTextError(ValueError):
    """A text of a form, or an option, is wrong; the message says what it must be, and begins with a verb."""


def token_hash(token: str) -> str:
    """Gives what the store keeps in place of a token that somebody carries; 64 hex digits."""
    return hashlib.sha256(b"payrelay console\0" + token.encode(errors="replace")).hexdigest()


def email_of(text: str) -> str:
    """Reads an e-mail address, and gives it in small letters; raises OperatorTextError.

    Only A to Z have small letters here, and only blanks of ASCII are cut off. Of other signs some have a small letter
    that another address has: the Kelvin sign is no k.
    """
    email = text.strip(" \t\r\n").translate(_SMALL)
    if len(email) > EMAIL_LENGTH_MAX or _email_match(email) is None or not email.isprintable():
        raise OperatorTextError("must be an e-mail address such as ada@shop.example")
    return email


def operator_name_of(text: str) -> str:
    """Reads an operator's name; raises OperatorTextError."""
    name = " ".join(text.split())
    if not 1 <= len(name) <= NAME_LENGTH_MAX or not name.isprintable():
        raise OperatorTextError(f"must have 1 to {NAME_LENGTH_MAX} printable characters")
    return name


def second_factor_of(*, totp: bool, passkeys: bool) -> SecondFactor | None:
    """Gives what an operator shows who has an authenticator app, passkeys, either or neither."""
    if totp and passkeys:
        return SecondFactor.EITHER
    if passkeys:
        return SecondFactor.PASSKEY
    return SecondFactor.TOTP if totp else None


def require_password(password: str, operator: Operator) -> None:
    """Raises OperatorTextError for a password that is quickly guessed."""
    if not PASSWORD_LENGTH_MIN <= len(password) <= PASSWORD_LENGTH_MAX:
        raise OperatorTextError(f"must have {PASSWORD_LENGTH_MIN} to {PASSWORD_LENGTH_MAX} characters")
    plain = password.casefold()
    own = (operator.email, operator.email.partition("@")[0], operator.name.casefold())
    if any(word and plain.replace(word, "", 1).strip("0123456789!?.-_ ") == "" for word in own) or len(set(plain)) < 5:  # noqa: PLR2004
        raise OperatorTextError("must be more than your name, or a few characters that repeat")


def is_open(invitation: Invitation, now_ms: int) -> bool:
    """True while an invitation can be accepted."""
    return invitation.ended_at_ms is None and now_ms < invitation.expires_at_ms


def is_fresh(session: ConsoleSession, now_ms: int) -> bool:
    """True shortly after the sign-in, and while it waits for its second factor."""
    return now_ms - session.began_at_ms < FRESH_MS


def is_live(session: ConsoleSession, operator: Operator, now_ms: int) -> bool:
    """True while a session goes on; its operator is as the store has it now."""
    return (
        session.ended_at_ms is None
        and session.operator_id == operator.id
        and operator.state is OperatorState.ACTIVE
        and now_ms < session.ends_at_ms
        and now_ms - session.seen_at_ms < IDLE_MS
    )


def may_still(operator: Operator | None, act: Act) -> bool:
    """True where an operator, as the store has them now, can sign in and has a role that allows this."""
    return operator is not None and operator.state is OperatorState.ACTIVE and may(operator.role, act)


def is_active_admin(operator: Operator) -> bool:
    """True for an administrator who can sign in, and let others in."""
    return operator.role is Role.ADMIN and operator.state is OperatorState.ACTIVE


class Passkey(msgspec.Struct, frozen=True, kw_only=True):
    """A passkey of an operator.

    Attributes:
        id: ``psk_`` and an id, which may be shown.
        operator_id: whose it is.
        credential_id: what devices call it, in base64url; no two operators have one.
        credential: its id and public key as the device wrote them, in base64url.
        host: for which it was made; it answers at no other.
        name: what the operator calls it.
        sign_count: how many signatures the device has counted; 0 of one that doesn't count.
        made_at_ms: when it was added.
        used_at_ms: when it last opened a session; None while it never has.
        copied_at_ms: when it was shown with a number that was seen before; it opens nothing from then on.
        version: counts the changes.
        act: the number of the act that last changed this.
    """

    id: str
    operator_id: str
    credential_id: str
    credential: str
    host: str
    name: str
    sign_count: int
    made_at_ms: int
    used_at_ms: int | None
    copied_at_ms: int | None
    version: int
    act: int


class PasskeyChange(msgspec.Struct, frozen=True, kw_only=True):
    """What changes of an operator's passkeys: one is added, one gets its next version, or one is removed."""

    added: Passkey | None = None
    changed: Passkey | None = None
    removed: Passkey | None = None

    @property
    def name(self) -> str:
        """What the operator calls it; empty where nothing changes."""
        passkey = self.added or self.changed or self.removed
        return "" if passkey is None else passkey.name
