"""What a bound credential may see: every read and every action asks the functions here, and nothing else decides it.

Rules:

1. Where a credential is bound to a customer and to an order, both must fit.
2. The service answers for anything else as for an id that doesn't exist.
3. Each customer's app has its own space of Idempotency-Keys. The store keeps them under the principal as
   ``cus_…/<key>``, so that no app finds a request of another app, or of the backend, under an equal key. Requests
   without a key need no such prefix: their fingerprints cover the customer's token and the order.
4. A person whom an identity provider names has the prefix ``person/<digest>`` (``core.access.person_names``).
"""

from payrelay.core.access.credential import Bound, Credential
from payrelay.core.customers.customer import Customer
from payrelay.core.payments.operation import Operation


def is_personal(bound: Bound) -> bool:
    """True where the credential is bound to a customer, by id or reference; what has no customer isn't theirs."""
    return bound.customer_id is not None or bound.reference is not None


def has_order(bound: Bound, order_id: str | None) -> bool:
    """True where the credential is bound to this order, or to no order."""
    return bound.order_id is None or bound.order_id == order_id


def has_customer(bound: Bound, customer_id: str | None) -> bool:
    """True where the credential is bound to this customer, or to an order alone."""
    if not is_personal(bound):
        return True
    return bound.customer_id is not None and bound.customer_id == customer_id


def has_operation(bound: Bound | None, operation: Operation) -> bool:
    """True where a credential may see an operation of its principal; an unbound credential (None) may see all."""
    if bound is None:
        return True
    return has_order(bound, operation.order_id) and has_customer(bound, operation.customer_id)


def owns_customer(credential: Credential, merchant: str, customer: Customer) -> bool:
    """True where a customer on a merchant account is the caller's; a bound credential owns its own customer alone."""
    return (
        customer.principal == credential.principal
        and customer.merchant == merchant
        and (credential.bound is None or credential.bound.customer_id == customer.id)
    )


def key_of_bound(bound: Bound, idempotency_key: str) -> str:
    """Gives the key under which the store keeps an app's Idempotency-Key."""
    return f"{keys_of(bound)}/{idempotency_key}"


def key_as_sent(bound: Bound | None, idempotency_key: str | None) -> str | None:
    """Gives a stored Idempotency-Key as the app of this credential sent it."""
    if bound is None or idempotency_key is None:
        return idempotency_key
    return idempotency_key.removeprefix(f"{keys_of(bound)}/")


def keys_of(bound: Bound) -> str:
    """Gives the prefix of a credential's Idempotency-Keys; keys of different customers or orders can't be equal."""
    return bound.subject
