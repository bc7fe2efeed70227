"""Roles, what each may do, and what each sees: two tables, which the pages and the commands ask.

To be changed together: ``MAY``, ``SEES`` and the tables in ``docs/console.md``; tests compare them.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from payrelay.errors import Code, Refusal


class Role(StrEnum):
    """What an operator is there for; each role may do what the one before may."""

    VIEWER = "viewer"
    SUPPORT = "support"
    OPERATOR = "operator"
    ADMIN = "admin"


class Act(StrEnum):
    """What a person can do in the console. Those that change something have these words in the history too."""

    SIGN_IN = "sign_in"
    SIGN_OUT = "sign_out"
    ACCEPT_INVITATION = "accept_invitation"
    LINK_PROVIDER = "link_provider"
    """Signs in by the company's account for the first time, which the operator is known by from then on."""
    ENROL_SECOND_FACTOR = "enrol_second_factor"
    """Sets up the codes of an authenticator app, or adds a passkey."""
    REMOVE_SECOND_FACTOR = "remove_second_factor"
    """Removes one of the own passkeys, or the own authenticator app."""
    LOCK_PASSKEY = "lock_passkey"
    """Shows a passkey of which there are two, and which opens nothing from then on."""
    END_OWN_SESSION = "end_own_session"
    LOOK = "look"
    """Finds orders and payments by their ids, and opens them."""
    ASK_GATEWAY = "ask_gateway"
    """Asks the gateway what it has of an order now, which takes a call of the account's budget."""
    ASSIGN_CASE = "assign_case"
    """Says who sees to something that needs a person."""
    ADD_NOTE = "add_note"
    CONFIRM = "confirm"
    """Confirms what a page has shown; the role must allow what was shown, too."""
    PROPOSE = "propose"
    """Wants what a second person has to confirm."""
    WITHDRAW = "withdraw"
    """Takes back what somebody proposed."""
    DECIDE = "decide"
    """Decides what became of an operation, or what becomes of a held one."""
    REFUND = "refund"
    CAPTURE = "capture"
    VOID = "void"
    CANCEL_SUBSCRIPTION = "cancel_subscription"
    RETRY_SUBSCRIPTION = "retry_subscription"
    CLOSE_CHECKOUT = "close_checkout"
    """Closes the page of a checkout, which leads nobody to the gateway any more."""
    PAUSE_ACCOUNT = "pause_account"
    RESUME_ACCOUNT = "resume_account"
    REPLAY_NOTIFICATION = "replay_notification"
    REPLAY_EVENT = "replay_event"
    SEND_TEST_EVENT = "send_test_event"
    ERASE_CUSTOMER = "erase_customer"
    REVOKE_KEY = "revoke_key"
    READ_ACTS = "read_acts"
    LIST_OPERATORS = "list_operators"
    ADD_OPERATOR = "add_operator"
    CHANGE_ROLE = "change_role"
    DISABLE_OPERATOR = "disable_operator"
    RESET_PASSWORD = "reset_password"  # noqa: S105  the name of an act
    END_SESSIONS = "end_sessions"
    LOOK_AT_BOOKS = "look_at_books"
    """Sees what each day came to, and its differences."""
    IMPORT_EXISTING = "import_existing"
    """Takes over what a shop had before Payrelay; by a command alone."""
    IMPORT_STATEMENT = "import_statement"
    COMPARE_BOOKS = "compare_books"
    CLOSE_DIFFERENCE = "close_difference"
    CLOSE_DAY = "close_day"


TO_CONFIRM: Final = (
    *(Act.DECIDE, Act.REFUND, Act.CAPTURE, Act.VOID, Act.CANCEL_SUBSCRIPTION, Act.RETRY_SUBSCRIPTION),
    *(Act.CLOSE_CHECKOUT, Act.PAUSE_ACCOUNT, Act.RESUME_ACCOUNT, Act.REPLAY_NOTIFICATION),
    *(Act.REPLAY_EVENT, Act.SEND_TEST_EVENT),
    *(Act.ERASE_CUSTOMER, Act.REVOKE_KEY, Act.CLOSE_DIFFERENCE, Act.CLOSE_DAY),
)
"""What is done only after a page has shown what it does, and to what."""

SHOWN_AGAIN: Final = frozenset(
    {
        *(Act.REFUND, Act.ERASE_CUSTOMER, Act.REVOKE_KEY, Act.REPLAY_EVENT, Act.SEND_TEST_EVENT),
        *(Act.ADD_OPERATOR, Act.CHANGE_ROLE, Act.DISABLE_OPERATOR, Act.RESET_PASSWORD),
    }
)
"""What is done only shortly after the operator has shown the second factor; small refunds may be left out."""

HAVE_OWN_LINE: Final = frozenset({Act.CLOSE_DIFFERENCE, Act.CLOSE_DAY})
"""Of these, those whose line is stored with the change itself; that they were confirmed is a line before it."""

_EVERYBODY: Final = frozenset(
    {
        *(Act.SIGN_IN, Act.SIGN_OUT, Act.ACCEPT_INVITATION, Act.LINK_PROVIDER, Act.ENROL_SECOND_FACTOR),
        *(Act.REMOVE_SECOND_FACTOR, Act.LOCK_PASSKEY),
        *(Act.END_OWN_SESSION, Act.LOOK, Act.ASK_GATEWAY),
    }
)
_SUPPORT: Final = _EVERYBODY | {
    *(Act.ASSIGN_CASE, Act.ADD_NOTE),
    *(Act.CONFIRM, Act.PROPOSE, Act.WITHDRAW, Act.REPLAY_NOTIFICATION),
}
_OPERATOR: Final = _SUPPORT | {
    *(Act.READ_ACTS, Act.DECIDE, Act.REFUND, Act.CAPTURE, Act.VOID),
    *(Act.CANCEL_SUBSCRIPTION, Act.RETRY_SUBSCRIPTION, Act.CLOSE_CHECKOUT),
    *(Act.PAUSE_ACCOUNT, Act.RESUME_ACCOUNT),
    *(Act.REPLAY_EVENT, Act.SEND_TEST_EVENT),
    *(Act.LOOK_AT_BOOKS, Act.IMPORT_STATEMENT, Act.COMPARE_BOOKS, Act.CLOSE_DIFFERENCE),
}

MAY: Final[Mapping[Role, frozenset[Act]]] = MappingProxyType(
    {
        Role.VIEWER: _EVERYBODY,
        Role.SUPPORT: _SUPPORT,
        Role.OPERATOR: _OPERATOR,
        Role.ADMIN: frozenset(Act),
    }
)
"""What each role may do."""


class Field(StrEnum):
    """What is stored, may be shown, and isn't shown to every role. Whoever sees one may find by it, too."""

    IDEMPOTENCY_KEY = "idempotency_key"
    """A client chooses it, and may put a customer's name into it."""
    CUSTOMER = "customer"
    """The label of a stored customer, and the client's reference for the customer; the handle names nobody."""
    CARD = "card"
    """The kind, the last four digits and the expiry."""
    WORDS = "words"
    """What operators wrote: notes and reasons, and what else they filled in. They may name a customer."""
    ENDPOINT_ADDRESS = "endpoint_address"
    """Behind the host: whoever knows path and query may send events there."""


_SEEN_BY_SUPPORT: Final = frozenset({Field.IDEMPOTENCY_KEY, Field.CUSTOMER, Field.CARD, Field.WORDS})
SEES: Final[Mapping[Role, frozenset[Field]]] = MappingProxyType(
    {
        Role.VIEWER: frozenset(),
        Role.SUPPORT: _SEEN_BY_SUPPORT,
        Role.OPERATOR: _SEEN_BY_SUPPORT | {Field.ENDPOINT_ADDRESS},
        Role.ADMIN: frozenset(Field),
    }
)
"""What each role sees on every page, in every table that is saved and on every live page."""


def may(role: Role, act: Act) -> bool:
    """Tells whether a role may do something."""
    return act in MAY[role]


def require_may(role: Role, *acts: Act) -> None:
    """Raises Refusal (forbidden) that names the first of some acts that a role may not do."""
    lacking = next((act for act in acts if not may(role, act)), None)
    if lacking is not None:
        raise Refusal(Code.FORBIDDEN, f"the role {role} may not do this: {lacking}")


def sees(role: Role, field: Field) -> bool:
    """Tells whether a role is shown something, and finds by it."""
    return field in SEES[role]
