"""Draws those parts of the docs that repeat a table of the code, so that the two can't disagree.

A part stands between ``<!-- drawn: name -->`` and ``<!-- end of name -->``. Run this file to draw all of them anew;
a test compares what stands there with what would be drawn.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from payrelay.api.routes.table import ROUTES
from payrelay.core.access.client_token import CLIENT_SCOPES
from payrelay.core.access.credential import DEFAULT_SCOPES, Scope
from payrelay.core.checkouts.checkout import CheckoutState
from payrelay.core.checkouts.hosted_payment import CheckoutKind
from payrelay.core.customers.customer import STATE_SENTENCES as CUSTOMER_STATES
from payrelay.core.customers.customer import TRANSITIONS as CUSTOMER_STEPS
from payrelay.core.events.delivery import DeliveryState, EndpointState
from payrelay.core.events.event import TYPES
from payrelay.core.notifications.notification import NotificationState
from payrelay.core.payments.operation import FINAL, TRANSITIONS, Event, Kind, State
from payrelay.core.payments.sentences import EVENT_SENTENCES, STATE_SENTENCES
from payrelay.core.subscriptions.subscription import SubscriptionState
from payrelay.errors import MEANINGS, Code, Retry

DOCS: Final = Path(__file__).parent
REOPENED: Final = "unless it reappears"
"""The condition under which a final state is left after all."""


def states() -> str:
    """The life of an operation, as a diagram."""
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> accepted", "    [*] --> sending"]
    lines += [f"    {state} --> {target}: {event}" for (state, event), target in TRANSITIONS.items()]
    lines += [
        f"    {state} --> [*]{f': {REOPENED}' if _can_reopen(state) else ''}" for state in State if state in FINAL
    ]
    return "\n".join([*lines, "```"])


def state_table() -> str:
    """What each state means."""
    rows = ((f"`{state}`", _finality(state), STATE_SENTENCES[state]) for state in State)
    return table(("state", "final", "meaning"), rows)


def _finality(state: State) -> str:
    if state not in FINAL:
        return "no"
    return f"yes, {REOPENED}" if _can_reopen(state) else "yes"


def _can_reopen(state: State) -> bool:
    return (state, Event.REAPPEARED) in TRANSITIONS


def event_table() -> str:
    """What each event says in a history."""
    return table(("event", "what the history says"), ((f"`{event}`", text) for event, text in EVENT_SENTENCES.items()))


def error_table() -> str:
    """Every error code."""
    rows = (
        (f"`{code}`", str(meaning.http_status), f"`{meaning.retry}`", meaning.sentence)
        for code, meaning in sorted(MEANINGS.items(), key=lambda item: item[1].http_status)
    )
    return table(("code", "HTTP", "retry", "when"), rows)


def route_table() -> str:
    """Every route."""
    rows = ((f"`{route.method}`", f"`{route.path}`", route.sentence, f"`{route.scope}`") for route in ROUTES)
    return table(("method", "path", "what it does", "scope"), rows)


def scope_table() -> str:
    """Every scope of a key."""
    rows = ((f"`{scope}`", "yes" if scope in DEFAULT_SCOPES else "no") for scope in Scope)
    return table(("scope", "granted by default"), rows)


def customer_state_table() -> str:
    """What each state of a stored customer means."""
    return table(("state", "meaning"), ((f"`{state}`", text) for state, text in CUSTOMER_STATES.items()))


def customer_step_table() -> str:
    """Every event of a stored customer, and the state that follows it."""
    rows = ((f"`{state}`", f"`{event}`", f"`{after}`") for (state, event), after in CUSTOMER_STEPS.items())
    return table(("state", "event", "next state"), rows)


def public_words() -> str:
    """Every word that stands in requests, answers and events by a list of the code's, and the page that explains it."""
    lists: tuple[tuple[str, Iterable[str], str], ...] = (
        ("kinds of an operation", Kind, "operations.md"),
        ("states of an operation", State, "operations.md#states"),
        ("types of a checkout", CheckoutKind, "checkouts.md"),
        ("states of a checkout", CheckoutState, "checkouts.md"),
        ("states of a stored customer", CUSTOMER_STATES, "customers.md#states"),
        ("states of a subscription", SubscriptionState, "notifications.md#subscriptions"),
        ("states of a notification", NotificationState, "notifications.md"),
        ("types of an event", sorted(TYPES), "events.md"),
        ("states of an endpoint", EndpointState, "events.md"),
        ("states of a delivery", DeliveryState, "events.md"),
        ("scopes of a key", Scope, "api.md#credentials"),
        ("scopes of a client token", sorted(CLIENT_SCOPES), "client-tokens.md"),
        ("error codes", Code, "errors.md"),
        ("what an error says about retrying", Retry, "errors.md"),
    )
    rows = (
        (what, ", ".join(f"`{word}`" for word in words), f"[{page.split('#')[0]}]({page})")
        for what, words, page in lists
    )
    return table(("what", "words", "explained in"), rows)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Writes a table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


DRAWINGS: Final[dict[str, Callable[[], str]]] = {
    "states": states,
    "state table": state_table,
    "event table": event_table,
    "error table": error_table,
    "route table": route_table,
    "scope table": scope_table,
    "customer states": customer_state_table,
    "customer steps": customer_step_table,
    "public words": public_words,
}

_DRAWN: Final = re.compile(r"(<!-- drawn: ([a-z ]+) -->\n).*?(<!-- end of \2 -->)", re.DOTALL)


def redrawn(text: str) -> str:
    """Gives a page with its drawn parts as they should be."""
    return _DRAWN.sub(lambda part: f"{part[1]}\n{DRAWINGS[part[2]]()}\n\n{part[3]}", text)


if __name__ == "__main__":
    for page in DOCS.glob("*.md"):
        page.write_text(redrawn(page.read_text()))
