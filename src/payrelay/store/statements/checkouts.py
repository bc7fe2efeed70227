"""Checkouts."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.checkouts.checkout import Checkout, CheckoutFilter, CheckoutState
from payrelay.store.engine.database import Database, Row, Value
from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import TIMING, Binding, StructTable, columns_for
from payrelay.store.statements.data_keys import key_of, put_key_after, put_keys
from payrelay.store.statements.inbox import ACCEPTED_TOKENS
from payrelay.store.statements.pagination import Among, ListIndex, Listing, columns_of, read_page
from payrelay.store.statements.payment_owners import IS_OPEN_OR_FAILED, owners_of_payment
from payrelay.store.statements.payment_owners import LEARN as LEARN_PAID


def context_of(checkout_id: str) -> bytes:
    """Gives the seal context of a checkout's details."""
    return f"checkout/{checkout_id}".encode()


def reference_context(checkout_id: str) -> bytes:
    """Gives the seal context of a checkout's reference."""
    return f"checkout/{checkout_id}/reference".encode()


def reference_owner(checkout_id: str) -> str:
    """Names the owner of the data key of a checkout's reference."""
    return f"{checkout_id}/reference"


CHECKOUTS: Final = StructTable(
    name="checkouts",
    kind=Checkout,
    columns=columns_for(Checkout, inquire_at_ms="look_at_ms"),
    uncovered={
        "guard": "it is the order, or nothing where another checkout holds the order; the audit compares it",
        "key_hash": "it is forgotten without a change of the checkout",
        "opened_at_ms": "it says when the page was first shown",
        "closed_at_ms": "it says why the checkout is cancelled; the state itself is covered",
        "ends_at_ms": TIMING,
        "look_at_ms": TIMING,
    },
    sealed={"sealed": Binding(context_of, str), "sealed_reference": Binding(reference_context, reference_owner)},
)

_ADD_ROW: Final = f"{CHECKOUTS.insert(*CHECKOUTS.sealed)} ON CONFLICT DO NOTHING"
_KEY: Final = _ADD_ROW.count("$") + 1
_ADD_BOTH, _ADD_KEY = put_key_after(_ADD_ROW, owner="$1", sealed_key=f"${_KEY}")
_OTHER_KEY: Final = f"SELECT ${_KEY + 1}::text, ${_KEY + 2}::bytea"
_ADD_ALL, _ = put_key_after(
    _ADD_ROW, owner="$1", sealed_key=f"${_KEY}", beside=(put_keys(f"{_OTHER_KEY} FROM changed WHERE true"),)
)

ADD: Final = query(_ADD_BOTH, sqlite=(_ADD_ROW, _ADD_KEY))
"""Stores a new checkout without a reference, and the data key of its details. Gives no row where its order is held or
its idempotency key exists."""

ADD_NAMED: Final = query(_ADD_ALL, sqlite=(_ADD_ROW, _ADD_KEY, put_keys(f"{_OTHER_KEY} WHERE true")))
"""Stores a new checkout as ADD does, with a reference, and the owner and the data key of that."""

GET: Final = query(f"{CHECKOUTS.select} WHERE id = $1")
"""Reads one checkout."""

SEALED: Final = query(f"SELECT sealed, {key_of('checkouts.id')} FROM checkouts WHERE id = $1")
"""Reads the sealed details of a checkout, null once they were forgotten, and their key."""

SEALED_REFERENCE: Final = query(
    f"SELECT sealed_reference, {key_of('$2')} FROM checkouts WHERE id = $1 AND reference_hash IS NOT NULL"
)
"""Reads the sealed reference of a checkout, and the key of the owner $2; gives no row once the reference was erased."""

OF_KEY: Final = query(f"{CHECKOUTS.select} WHERE key_hash = $2 AND principal = $1")
"""Finds the checkout that a principal opened under the Idempotency-Key with the hash $2."""

HOLDER: Final = query(f"{CHECKOUTS.select} WHERE merchant = $1 AND guard = $2")
"""Finds the checkout that holds an order."""

OF_ORDER: Final = query(
    f"""
    {CHECKOUTS.select} WHERE merchant = $1 AND order_id = $2
    ORDER BY (guard IS NULL), id DESC LIMIT $3""",
)
"""Finds the checkouts of an order: the one that holds it first, then the newest."""

LEARN: Final = LEARN_PAID
"""Stores when a checkout was learnt to be paid."""

LOCK_ORDER: Final = query("SELECT id FROM checkouts WHERE merchant = $1 AND order_id = $2 ORDER BY id FOR UPDATE")
"""Locks the checkouts of an order until the transaction ends."""

CHANGE: Final = query(
    """
    UPDATE checkouts SET state = $3, version = $2::bigint + 1, payment_id = $5, subscription_id = $6, customer_id = $7,
      updated_at_ms = $8, row_digest = $9, closed_at_ms = $11,
      guard = CASE
        WHEN $4::text IS NULL THEN NULL
        WHEN EXISTS (
          SELECT 1 FROM checkouts AS other
          WHERE other.merchant = checkouts.merchant AND other.guard = $4::text AND other.id <> checkouts.id
        ) THEN NULL
        ELSE $4::text
      END
    WHERE id = $1 AND version = $2::bigint AND COALESCE(reference_hash, '') = COALESCE($10::text, '')
    RETURNING id""",
)
"""Changes a checkout that still has version $2; gives no row where it has another version, or where its customer was
forgotten since it was read, which its digest would not fit. A checkout that is completed
after another checkout took its order does not hold the order again. Operators then see that the order is paid twice; no
unique index may prevent that."""


LOCK_ONE: Final = query("SELECT id FROM checkouts WHERE id = $1 FOR UPDATE")
"""Locks a checkout until the transaction ends: no form of it leaves beside it."""

FORM_OF: Final = query("SELECT subject FROM signed_texts WHERE subject = $1 LIMIT 1")
"""Tells whether a form of a checkout may have left."""

FREE_KEY: Final = query("UPDATE checkouts SET key_hash = NULL WHERE id = $1")
"""Forgets the Idempotency-Key of a checkout."""


def change_parameters(checkout: Checkout, digest: str) -> tuple[Value, ...]:
    """Gives the parameters of CHANGE for a changed checkout, and the digest of its row."""
    return (
        checkout.id,
        checkout.version - 1,
        checkout.state,
        checkout.guard,
        checkout.payment_id,
        checkout.subscription_id,
        checkout.customer_id,
        checkout.updated_at_ms,
        digest,
        checkout.reference_hash,
        checkout.closed_at_ms,
    )


OF_AUTHORIZATION: Final = query(
    f"""
    SELECT {CHECKOUTS.read}, (
        SELECT {ACCEPTED_TOKENS.packed} FROM accepted_tokens
        WHERE merchant = $1 AND order_id = $2 AND kind = 'authorization' AND token_hash = $3
      )
    FROM checkouts
    WHERE merchant = $1 AND order_id = $2 AND kind = 'authorization' AND state IN ('notified', 'completed')
      AND EXISTS (
        SELECT 1 FROM accepted_tokens
        WHERE accepted_tokens.merchant = $1 AND accepted_tokens.order_id = $2
          AND accepted_tokens.kind = 'authorization' AND accepted_tokens.token_hash = $3
      )
    ORDER BY id""",
)
"""Finds the checkouts of an order whose authorization has the token with the hash $3, each with the accepted token."""

_OPEN: Final = Among("state", (CheckoutState.OPEN,))
_RARE: Final = Among.all_but("state", (CheckoutState.COMPLETED, CheckoutState.OPEN), CheckoutState)

LIST_CHECKOUTS: Final = Listing(
    "checkouts",
    CHECKOUTS.read,
    (
        ListIndex(("order_id",), is_narrow=True),
        ListIndex((), _OPEN, is_sorted=False),
        ListIndex(("account", "state"), _RARE),
        ListIndex(("state",), _RARE),
        ListIndex(("account",)),
    ),
)
"""The listed columns of checkouts, and the indexes of the list."""


async def list_page(database: Database, filters: CheckoutFilter, *, before: str | None, limit: int) -> list[Row]:
    """Reads the rows of one page of checkouts, newest first, with ids below ``before``. Raises StoreUnavailable."""
    return await read_page(database, LIST_CHECKOUTS, columns_of(filters), before=before, limit=limit)


MARK_OPENED: Final = query(
    """
    UPDATE checkouts SET opened_at_ms = $2, ends_at_ms = expires_at_ms + $3::bigint
    WHERE id = $1 AND opened_at_ms IS NULL AND state = 'open'
    RETURNING id""",
)
"""Stores that the page of a checkout was shown, the first time."""

LEASE_INQUIRY: Final = query(
    "UPDATE checkouts SET look_at_ms = $3 WHERE id = $1 AND look_at_ms <= $2 RETURNING id",
)
"""Lets one of several callers make the status inquiry; gives the others no row."""

LEASE_ENDING: Final = query(
    f"""
    UPDATE checkouts SET ends_at_ms = $2
    WHERE id IN (
      SELECT id FROM checkouts WHERE state = 'open' AND ends_at_ms <= $1 ORDER BY ends_at_ms LIMIT $3
      FOR UPDATE SKIP LOCKED
    )
    RETURNING {CHECKOUTS.read}""",
)
"""Leases checkouts whose time has ended, until $2."""

LEASE_OVERDUE: Final = query(
    "UPDATE checkouts SET ends_at_ms = $3 WHERE id = $1 AND state = 'open' AND ends_at_ms <= $2 RETURNING id",
)
"""Leases one checkout whose time has ended; gives no row where it is no such one, or another process has leased it."""

ANY_ENDING: Final = query("SELECT id FROM checkouts WHERE state = 'open' AND ends_at_ms <= $1 LIMIT 1")
"""Tells whether there is a checkout whose time has ended."""

FORGET: Final = query(
    """
    UPDATE checkouts SET sealed = NULL, key_hash = NULL
    WHERE id IN (
      SELECT id FROM checkouts WHERE sealed IS NOT NULL AND state <> 'open' AND updated_at_ms < $1
      ORDER BY updated_at_ms LIMIT $2
    )
    RETURNING id""",
)
"""Forgets the sealed details and the keys of checkouts that have had their outcome for a long time."""

FINISHED_OF_ORDER: Final = query(
    f"""
    {CHECKOUTS.select}
    WHERE merchant = $1 AND principal = $2 AND order_id = $3 AND state <> 'open' ORDER BY id FOR UPDATE""",
)
"""Reads a principal's finished checkouts of an order, and locks them until the transaction ends."""

FORGET_CUSTOMER: Final = query(
    """
    UPDATE checkouts
    SET sealed = NULL, sealed_reference = NULL, reference_hash = NULL, key_hash = NULL, row_digest = $2
    WHERE id = $1
    RETURNING id""",
)
"""Forgets the customer in a checkout, and its key, which may contain a name; the row gets the digest that it has then.
"""

OF_CUSTOMER: Final = query(
    f"""
    {CHECKOUTS.select}
    WHERE id IN (
      SELECT id FROM checkouts WHERE customer_id = $1
      UNION
      SELECT id FROM checkouts WHERE bound_customer_id = $1
      UNION
      SELECT id FROM checkouts WHERE reference_hash = $4::text AND merchant = $2 AND principal = $3
    ) AND id > $5
    ORDER BY id LIMIT $6""",
)
"""Reads one page of a customer's checkouts, by their ids. They are those that made the customer, those that the
customer's app opened, and those with the hash of the customer's reference, where there
is one."""

PAYMENT_IS_OWNED: Final = query(owners_of_payment(asking="checkouts"))
"""Tells whether a payment belongs to an operation or to another checkout."""

ORDER_HAS_COMPETING: Final = query(
    f"""
    SELECT id FROM operations
    WHERE order_id = $1 AND merchant = $2 AND kind IN ('charge', 'authorization') AND {IS_OPEN_OR_FAILED}
    UNION ALL
    SELECT id FROM checkouts
    WHERE order_id = $1 AND merchant = $2 AND id <> $3
      AND (state = 'open' OR kind = 'recurring'
           OR (kind <> 'payment' AND state <> 'completed' AND amount_minor IS NOT NULL))
    LIMIT 1""",
)
"""Tells whether a payment of an order may turn out to belong to a charge that is open or failed, or to another
checkout. Such a checkout is open, or asked for something else and may have been paid late. A plan may always have one
more payment."""
