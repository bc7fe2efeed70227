"""What belongs to a bound credential: the one place that says it, for everybody who shows or does something.

Rules:

1. Where a credential is bound to a customer and to an order, both must fit.
2. What doesn't belong to it is to it as if it weren't there: the same answer as for an id that nobody has.
3. A phone's Idempotency-Keys are a space of their own for each customer. Under the principal's name they are kept as
   ``cus_…/<key>``, so that no phone finds what another one, or its server, did under the same key. Requests without a
   key need no such thing: their fingerprint has the customer's own token and the order in it.
"""

from urllib.parse import quote

from payrelay.core.access.credential import Bound, Credential
from payrelay.core.customers.customer import Customer
from payrelay.core.payments.operation import Operation


def is_personal(bound: Bound) -> bool:
    """True where it is for a person, known to us or not yet: then what is nobody's isn't that person's."""
    return bound.customer_id is not None or bound.reference is not None


def has_order(bound: Bound, order_id: str | None) -> bool:
    """True where the order is the one that it is bound to, or it is bound to none."""
    return bound.order_id is None or bound.order_id == order_id


def has_customer(bound: Bound, customer_id: str | None) -> bool:
    """True where the customer is the one that it is bound to, or it is bound to an order alone."""
    if not is_personal(bound):
        return True
    return bound.customer_id is not None and bound.customer_id == customer_id


def has_operation(bound: Bound | None, operation: Operation) -> bool:
    """True where an operation of its principal's belongs to it; everything does to who isn't bound."""
    if bound is None:
        return True
    return has_order(bound, operation.order_id) and has_customer(bound, operation.customer_id)


def owns_customer(credential: Credential, merchant: str, customer: Customer) -> bool:
    """True for a customer of the caller's own on a merchant account; for a bound credential, its own customer alone."""
    return (
        customer.principal == credential.principal
        and customer.merchant == merchant
        and (credential.bound is None or credential.bound.customer_id == customer.id)
    )


def key_of_bound(bound: Bound, idempotency_key: str) -> str:
    """Gives the key under which an Idempotency-Key of a phone's is kept."""
    return _prefix(bound) + idempotency_key


def key_as_sent(bound: Bound | None, idempotency_key: str | None) -> str | None:
    """Gives an Idempotency-Key as the phone sent it that now asks."""
    return idempotency_key if bound is None or idempotency_key is None else idempotency_key.removeprefix(_prefix(bound))


def keys_of(bound: Bound) -> str:
    """Gives what the Idempotency-Keys of a credential are kept under; no two credentials' keys can look alike."""
    if bound.keys_of is not None:
        return bound.keys_of
    if bound.customer_id is not None:
        return bound.customer_id
    # A slash in a name would let it pass for a shorter name with a longer key.
    noun, name = ("order", bound.order_id) if bound.reference is None else ("reference", bound.reference)
    return f"{noun}/{quote(str(name), safe='')}"


def _prefix(bound: Bound) -> str:
    return f"{keys_of(bound)}/"
