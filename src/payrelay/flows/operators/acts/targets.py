"""What an operator can act on: an operation, a payment, a checkout, and what else has an id; as the store has it now.

Whose it is decides for whom the act is done: an operator acts for the owner, whose clients see what came of it. Of what
began at the gateway alone nobody here is the owner, and the operator chooses.
"""

from typing import Final

from payrelay.core.calls import subscription_number
from payrelay.core.checkouts.checkout import CheckoutKind, CheckoutState
from payrelay.core.notifications.notification import NotificationState
from payrelay.core.operators.roles import Act, Field
from payrelay.core.payments.operation import PAYMENT_KINDS, Kind, Operation, State
from payrelay.core.payments.payment import plain_number
from payrelay.core.payments.sentences import STATE_SENTENCES
from payrelay.flows.operators.acting import ActTarget
from payrelay.flows.operators.acts.act_registry import ActRegistry, ReadTarget
from payrelay.flows.operators.decidable import decisions_on
from payrelay.flows.relay import Relay
from payrelay.store.access.owners import NOT_TOLD

LOOKED_UP: Final = 20
"""Of one order: each takes a few readings, and hardly an order has more payments."""
_ON_PLAN: Final = (Act.CANCEL_SUBSCRIPTION, Act.RETRY_SUBSCRIPTION)
_ON_AUTHORIZATION: Final = (Act.CAPTURE, Act.VOID)


async def target_of(relay: Relay, noun: str, id_: str) -> ActTarget | None:
    """Reads something that can be acted on; None where there is no such thing. Raises StoreError."""
    reader = relay.find(ActRegistry).readers.get(noun)
    return None if reader is None else await reader(relay, id_)


async def that_can_be_acted_on(relay: Relay, things: list[tuple[str, str]]) -> list[bool]:
    """Tells of each thing, a noun and an id, whether it has a page of its own.

    An authorization is no payment yet, and what only a message claimed may not exist. Only the first LOOKED_UP are
    looked up, and the others are taken to have a page. Raises StoreError.
    """
    looked_up = [await target_of(relay, noun, id_) is not None for noun, id_ in things[:LOOKED_UP]]
    return looked_up + [True] * (len(things) - len(looked_up))


async def _operation(relay: Relay, id_: str) -> ActTarget | None:
    operation = await relay.journal.get(id_)
    if operation is None:
        return None
    return ActTarget(
        noun="operation",
        id=operation.id,
        title=f"{operation.kind.value.replace('release', 'void').capitalize()} {operation.id}",
        account=operation.account,
        principal=operation.principal,
        state=f"{operation.state.replace('_', ' ')}: {STATE_SENTENCES[operation.state]}",
        seen=str(operation.version),
        acts=acts_on(operation),
        order_id=operation.order_id,
        payment_id=operation.payment_id,
        subscription_id=operation.subscription_id,
        amount_minor=operation.amount_minor,
        currency=operation.currency,
        operation=operation,
        facts=_given(
            ("Payment", operation.payment_id),
            ("Subscription", operation.subscription_id),
            ("Request", operation.request_id),
        ),
        restricted=((Field.IDEMPOTENCY_KEY, "Idempotency-Key", operation.idempotency_key),),
    )


def acts_on(operation: Operation) -> tuple[Act, ...]:
    """Gives what an operator can do about an operation in its present state."""
    acts: list[Act] = []
    if operation.state is State.HELD or decisions_on(operation.state):
        acts.append(Act.DECIDE)
    if operation.state is not State.SUCCEEDED:
        return tuple(acts)
    if operation.kind is Kind.AUTHORIZATION:
        acts += _ON_AUTHORIZATION
    elif operation.kind in PAYMENT_KINDS and operation.payment_id is not None:
        acts.append(Act.REFUND)
    return tuple(acts)


async def _payment(relay: Relay, id_: str) -> ActTarget | None:
    """Reads a payment by its account and its number, with a tilde between them."""
    account, _, number = id_.partition("~")
    if account not in relay.accounts or subscription_number(number) is None:
        return None
    merchant, payment_id = relay.account(account).merchant, plain_number(number)
    known = await relay.money.known_payments.get(merchant, payment_id)
    owners = await relay.access.owners.of_payment(merchant, payment_id)
    if known is None or NOT_TOLD in owners:
        return None
    return ActTarget(
        noun="payment",
        id=f"{account}~{payment_id}",
        title=f"Payment {payment_id}",
        account=account,
        principal=min(owners, default=""),
        clients=() if owners else tuple(await relay.access.principals.known()),
        state="as last seen at the gateway" if known.status is None else known.status.value.lower(),
        seen=str(known.status),
        acts=(Act.REFUND,),
        order_id=known.order_id,
        payment_id=payment_id,
        currency=known.currency,
    )


async def _checkout(relay: Relay, id_: str) -> ActTarget | None:
    checkout = await relay.checkouts.get(id_)
    if checkout is None:
        return None
    acts: tuple[Act, ...] = ()
    if checkout.kind is CheckoutKind.AUTHORIZATION:
        acts = _ON_AUTHORIZATION if checkout.state is CheckoutState.NOTIFIED else ()
    elif checkout.payment_id is not None:
        acts = (Act.REFUND,)
    if checkout.subscription_id is not None:
        acts = (*acts, *_ON_PLAN)
    if checkout.is_open:
        acts = (*acts, Act.CLOSE_CHECKOUT)
    return ActTarget(
        noun="checkout",
        id=checkout.id,
        title=f"Checkout {checkout.id}",
        account=checkout.account,
        principal=checkout.principal,
        state=f"{checkout.state}: {checkout.sentence}",
        seen=str(checkout.version),
        acts=acts,
        order_id=checkout.order_id,
        payment_id=checkout.payment_id,
        subscription_id=checkout.subscription_id,
        amount_minor=checkout.amount_minor,
        currency=checkout.currency,
        facts=_given(("Payment", checkout.payment_id), ("Subscription", checkout.subscription_id)),
    )


async def _subscription(relay: Relay, id_: str) -> ActTarget | None:
    """Reads a subscription by its account and its number, with a tilde between them."""
    account, _, digits = id_.partition("~")
    number = subscription_number(digits)
    if account not in relay.accounts or number is None:
        return None
    merchant = relay.account(account).merchant
    owners = await relay.access.owners.of_plan(merchant, str(number))
    summary = await relay.subscriptions.summary(merchant, str(number))
    if NOT_TOLD in owners or (not owners and summary is None):
        return None
    known = None if summary is None else summary.subscription
    return ActTarget(
        noun="subscription",
        id=f"{account}~{number}",
        title=f"Subscription {number}",
        account=account,
        principal=min(owners, default=""),
        clients=() if owners else tuple(await relay.access.principals.known()),
        state="as the gateway has it" if known is None else f"{known.state.value}, as last reported",
        seen="1" if known is None else known.state.value,
        acts=_ON_PLAN,
        subscription_id=str(number),
        order_id=None if known is None else known.order_id,
        amount_minor=None if known is None else known.amount_minor,
        currency=None if known is None else known.currency,
    )


async def _customer(relay: Relay, id_: str) -> ActTarget | None:
    customer = await relay.customers.get(id_) or await relay.customers.left_of(id_)
    if customer is None:
        return None
    return ActTarget(
        noun="customer",
        id=customer.id,
        title=f"Customer {customer.id}",
        account=customer.account,
        principal=customer.principal,
        state=customer.state,
        seen=str(customer.version),
        acts=(Act.ERASE_CUSTOMER,),
    )


async def _account(relay: Relay, id_: str) -> ActTarget | None:
    if id_ not in relay.accounts:
        return None
    pause = next((each for each in await relay.pauses.list() if each.account == id_), None)
    return ActTarget(
        noun="account",
        id=id_,
        title=f"Account {id_}",
        account=id_,
        principal="",
        state="open" if pause is None else f"paused by {pause.operator}",
        seen="open" if pause is None else str(pause.since_ms),
        acts=(Act.PAUSE_ACCOUNT if pause is None else Act.RESUME_ACCOUNT,),
        restricted=((Field.WORDS, "Because", None if pause is None else pause.reason),),
    )


async def _notification(relay: Relay, id_: str) -> ActTarget | None:
    notification = await relay.inbox.get(id_)
    if notification is None:
        return None
    is_replayable = notification.state not in {NotificationState.RECEIVED, NotificationState.APPLIED}
    return ActTarget(
        noun="notification",
        id=notification.id,
        title=f"Notification {notification.id}",
        account=notification.account,
        principal="",
        state=f"{notification.state.replace('_', ' ')}: {notification.reason.phrase}",
        seen=str(notification.version),
        acts=(Act.REPLAY_NOTIFICATION,) if is_replayable else (),
        order_id=notification.order_id,
        payment_id=notification.payment_id,
        facts=_given(("Payment", notification.payment_id)),
    )


async def _endpoint(relay: Relay, id_: str) -> ActTarget | None:
    endpoint = await relay.dispatch.endpoints.get(id_)
    if endpoint is None:
        return None
    return ActTarget(
        noun="endpoint",
        id=endpoint.id,
        title=f"Endpoint {endpoint.id}",
        account=endpoint.account,
        principal=endpoint.principal,
        state=endpoint.state,
        seen=str(endpoint.updated_at_ms),
        acts=(Act.SEND_TEST_EVENT, Act.REPLAY_EVENT),
        facts=(("Host", endpoint.host),),
        restricted=((Field.ENDPOINT_ADDRESS, "Address", endpoint.url),),
    )


async def _key(relay: Relay, id_: str) -> ActTarget | None:
    credential = await relay.access.credentials.get(id_)
    if credential is None:
        return None
    is_revoked = credential.revoked_at_ms is not None
    return ActTarget(
        noun="key",
        id=credential.id,
        title=f"Key {credential.id}",
        account="",
        principal=credential.principal,
        state="revoked" if is_revoked else "not revoked",
        seen=str(is_revoked),
        acts=() if is_revoked else (Act.REVOKE_KEY,),
    )


def _given(*facts: tuple[str, str | None]) -> tuple[tuple[str, str], ...]:
    return tuple((title, text) for title, text in facts if text is not None)


READERS: Final[dict[str, ReadTarget]] = {
    "operation": _operation,
    "payment": _payment,
    "checkout": _checkout,
    "subscription": _subscription,
    "customer": _customer,
    "account": _account,
    "notification": _notification,
    "endpoint": _endpoint,
    "key": _key,
}
"""By the noun in an address."""
