"""Stored customers."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.customers.customer import CustomerState
from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import Binding, Table
from payrelay.store.statements.data_keys import key_of
from payrelay.store.statements.pagination import Among, ListIndex, Listing

COLUMNS: Final = "id, account, merchant, principal, state, version, order_id, payment_id, created_at_ms, updated_at_ms"


def token_context(customer_id: str) -> bytes:
    """Gives the seal context of a customer's token."""
    return f"{customer_id}/token".encode()


def holder_context(customer_id: str) -> bytes:
    """Gives the seal context of the name on the card."""
    return f"{customer_id}/holder".encode()


def names_context(customer_id: str) -> bytes:
    """Gives the seal context of the reference and label."""
    return f"{customer_id}/names".encode()


CUSTOMERS: Final = Table(
    name="customers",
    columns=(*COLUMNS.split(", "), "reference_hash"),
    uncovered={"token_hash": "a repeated approval is found by it, within one principal; charges take the sealed token"},
    sealed={
        "sealed_token": Binding(token_context, str),
        "sealed_holder": Binding(holder_context, str),
        "sealed_names": Binding(names_context, str),
    },
)
_KEY: Final = key_of("customers.id")
CUSTOMER_COLUMNS: Final = (
    f"{COLUMNS}, sealed_names, {_KEY}, CASE WHEN sealed_holder IS NULL THEN 0 ELSE 1 END, reference_hash, row_digest"
)
"""The columns that are read of a customer, with its data key: never the token, never the name on the card."""

ADD_CUSTOMER: Final = query(
    f"""
    INSERT INTO customers ({COLUMNS}, token_hash, reference_hash, sealed_names, sealed_holder, sealed_token,
      row_digest)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
    ON CONFLICT DO NOTHING
    RETURNING id""",
)
"""Stores a customer; gives no row where the principal has an active one with an equal token."""

CHANGE_CUSTOMER: Final = query(
    """
    UPDATE customers
    SET state = $3::text, version = $2::bigint, order_id = $4, payment_id = $5, updated_at_ms = $6,
        reference_hash = $7, sealed_names = $8, row_digest = $10,
        sealed_holder = CASE WHEN $3::text = 'active' THEN COALESCE($9::bytea, sealed_holder) END,
        sealed_token = CASE WHEN $3::text = 'active' THEN sealed_token END
    WHERE id = $1 AND version = $2::bigint - 1
    RETURNING id""",
)
"""Changes a customer that still has the version before; an inactive one loses its token and holder."""

GET_CUSTOMER: Final = query(f"SELECT {CUSTOMER_COLUMNS} FROM customers WHERE id = $1")
"""Reads one customer."""

CUSTOMER_OF_TOKEN: Final = query(
    f"""
    SELECT {CUSTOMER_COLUMNS} FROM customers
    WHERE merchant = $1 AND principal = $2 AND token_hash = $3 ORDER BY id DESC LIMIT 1""",
)
"""Finds a principal's newest customer that has, or had, the token with this hash."""

TOKEN_OF_CUSTOMER: Final = query(f"SELECT sealed_token, {_KEY} FROM customers WHERE id = $1")
"""Reads the sealed token of a customer, null where it was destroyed, and the customer's data key."""

_RARE: Final = Among.all_but("state", (CustomerState.ACTIVE,), CustomerState)

LIST_CUSTOMERS: Final = Listing(
    "customers",
    CUSTOMER_COLUMNS,
    (
        ListIndex(("id",), is_narrow=True),
        ListIndex(("reference_hash",), is_narrow=True),
        ListIndex(("principal", "account", "state"), _RARE),
        ListIndex(("state",), _RARE),
        ListIndex(("principal", "account")),
        ListIndex(("merchant", "principal")),
        ListIndex(("principal",)),
        ListIndex(("account",)),
    ),
)
"""The listed columns of customers, and the indexes of the list."""

STATE_OF_CUSTOMER: Final = query("SELECT state FROM customers WHERE id = $1")
"""Reads the state of a customer."""
