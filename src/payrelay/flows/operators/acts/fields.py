"""What an operator fills in for an act: read once, when the confirmation is made; wrong fields are named."""

from collections.abc import Awaitable, Callable
from typing import Final

from payrelay.core.calls import subscription_number
from payrelay.core.money import AmountError, typed_minor
from payrelay.core.operators.confirmations import Confirmation
from payrelay.core.operators.roles import Act
from payrelay.core.payments.payment import plain_number
from payrelay.core.text.operator_text import WordsError, description_of, named
from payrelay.errors import Code, Refusal
from payrelay.flows.events.manage_endpoints import REPLAYED_IDS_MAX
from payrelay.flows.operators.acting import ActTarget
from payrelay.flows.operators.acts.decisions import possible_decisions
from payrelay.flows.operators.refunds.shown import INSISTS, amount_in_words
from payrelay.flows.relay import Relay

EVENT_ID_LENGTH_MAX: Final = 64
"""More than an event's id has; all that are named go into a line of the history."""

_Given = dict[str, str]


async def fields_of(relay: Relay, act: Act, target: ActTarget, given: _Given) -> _Given:
    """Reads the fields of an act. Raises Refusal (invalid_request) that names what is wrong; StoreError."""
    reader = _READERS.get(act)
    return {} if reader is None else await reader(relay, target, given)


def client_of(target: ActTarget, given: _Given) -> str:
    """Reads for which client something is done that nobody here owns; empty where it is done for none.

    Raises Refusal (invalid_request) unless it is one of the target's clients.
    """
    client = given.get("client", "")
    if target.clients and client not in target.clients:
        raise _wrong("choose the client for whom it is done: nobody here owns it")
    return client if target.clients else ""


async def _refund(_relay: Relay, _target: ActTarget, given: _Given) -> _Given:
    return {**_amount(given, None, is_required=False), **_description(given)}


async def _capture(_relay: Relay, target: ActTarget, given: _Given) -> _Given:
    return {**_amount(given, target, is_required=True), **_description(given)}


async def _void(_relay: Relay, _target: ActTarget, given: _Given) -> _Given:
    return _description(given)


async def _decide(relay: Relay, target: ActTarget, given: _Given) -> _Given:
    possible = [] if target.operation is None else await possible_decisions(relay, target.operation)
    chosen = next((each for each in possible if each.value == given.get("decision")), None)
    if chosen is None:
        raise _wrong("choose what you decide")
    number = given.get("payment_id", "").strip()
    if not number:
        return {"decision": chosen.value}
    if not chosen.takes_payment:
        raise _wrong("a payment's number belongs only to the decision that it was done")
    if subscription_number(number) is None:
        raise _wrong("the payment's number must be digits, as the gateway shows it")
    return {"decision": chosen.value, "payment_id": plain_number(number)}


async def _replay_event(_relay: Relay, _target: ActTarget, given: _Given) -> _Given:
    ids = given.get("event_ids", "").split()
    if not 1 <= len(ids) <= REPLAYED_IDS_MAX:
        raise _wrong(f"name 1 to {REPLAYED_IDS_MAX} events by their ids")
    if any(len(each) > EVENT_ID_LENGTH_MAX for each in ids):
        raise _wrong(f"no event's id is longer than {EVENT_ID_LENGTH_MAX} characters")
    return {"event_ids": " ".join(ids)}


async def _as_shown(_relay: Relay, target: ActTarget, _given: _Given) -> _Given:
    """Keeps what the page showed, which the confirmation repeats."""
    return dict(target.facts)


_READERS: Final[dict[Act, Callable[[Relay, ActTarget, _Given], Awaitable[_Given]]]] = {
    Act.REFUND: _refund,
    Act.CAPTURE: _capture,
    Act.VOID: _void,
    Act.DECIDE: _decide,
    Act.REPLAY_EVENT: _replay_event,
    Act.CLOSE_DIFFERENCE: _as_shown,
    Act.CLOSE_DAY: _as_shown,
}


def _amount(given: _Given, authorized: ActTarget | None, *, is_required: bool) -> _Given:
    """Reads the amount; that of a capture is at most what was authorized."""
    text = given.get("amount", "").strip()
    if not text:
        if is_required:
            raise _wrong("the amount is missing")
        return {}
    try:
        amount_minor = typed_minor(text)
    except AmountError as error:
        raise _wrong(f"the amount {error}") from None
    if authorized is not None and authorized.amount_minor is not None and amount_minor > authorized.amount_minor:
        raise _wrong(f"the amount must be at most {authorized.amount}")
    return {"amount_minor": str(amount_minor)}


def _description(given: _Given) -> _Given:
    try:
        return {"description": description_of(given.get("description", ""))}
    except WordsError as error:
        raise _wrong(f"what the gateway's record says {error}") from None


def _wrong(text: str) -> Refusal:
    return Refusal(Code.INVALID_REQUEST, text)


def details_of(confirmation: Confirmation) -> str:
    """Tells in a line what is confirmed: how much, of which order, and what else was filled in."""
    filled = confirmation.filled
    parts = [
        filled.get("decision", ""),
        amount_in_words(confirmation),
        "" if confirmation.order_id is None else f"order {named(confirmation.order_id)}",
        "" if "payment_id" not in filled else f"payment {filled['payment_id']}",
        " ".join(map(named, filled.get("event_ids", "").split())),
        f"against the figures: {filled[INSISTS]}" if INSISTS in filled else "",
        confirmation.id,
    ]
    return f"{confirmation.act_name.replace('_', ' ')}: {', '.join(filter(None, parts))}"
