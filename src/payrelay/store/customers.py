"""Stored customers in the store: their public members in clear, everything else sealed.

Rules:

1. The gateway's token, the name on the card and the merchant's names for the customer are sealed, each bound to its
   row. Only a charge gets the token; nothing gets the name on the card.
2. Values to search by are stored as keyed hashes. A token has 128 random bits, and wouldn't need the key. A reference
   may be an e-mail address, which a plain hash would reveal to a guess.
3. A change names the version on which it was decided, and is written with its event or not at all.
4. A row whose digest is wrong counts as not existing: nobody who lacks the key gives a customer to another principal.
5. The hash of a token stays when the token is destroyed, so that a repeated notification of its approval restores no
   customer. Alone it reveals nothing, to Payrelay as little as to others.
"""

import hmac
from typing import Final, TypeAlias

import msgspec

from payrelay.core.customers.customer import Approval, Customer, CustomerEvent, CustomerFilter, event_of_customer
from payrelay.core.secret import Secret
from payrelay.errors import Outdated
from payrelay.store.digests.rows import CUSTOMERS, RowDigests
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows, first_row
from payrelay.store.engine.sealing import Seal
from payrelay.store.events import outbox
from payrelay.store.statements import customers as statements
from payrelay.store.statements.pagination import columns_of, page_of

_LOOKUP_KEY_OF: Final = b"payrelay customers lookup"
_MEMBERS: Final = (
    *("id", "account", "merchant", "principal", "state", "version", "method", "card_no_masked", "card_expiry"),
    *("order_id", "payment_id", "created_at_ms", "updated_at_ms"),
)
"""The members that have columns of their own, in the order of the columns."""


class _Names(msgspec.Struct, frozen=True, array_like=True):
    reference: str | None
    label: str | None


_encode_names: Final = msgspec.msgpack.Encoder().encode
_decode_names: Final = msgspec.msgpack.Decoder(_Names).decode


_Customers: TypeAlias = list[Customer]


class Customers:
    """Stores customers in a database. The key of the hashes is derived from the store's ``chain_key``."""

    def __init__(self, database: Database, seal: Seal, rows: RowDigests, *, chain_key: bytes) -> None:
        self._database = database
        self._rows = rows
        self._seal = seal
        self._lookup_key = hmac.digest(chain_key, _LOOKUP_KEY_OF, "sha256")

    async def add(self, customer: Customer, approval: Approval) -> bool:
        """Stores the new customer of an approval, and its event; False where its principal has one with that token.

        Raises StoreUnavailable.
        """
        token = approval.token.reveal()
        parameters: tuple[Value, ...] = (
            *(getattr(customer, name) for name in _MEMBERS),
            self._hash("token", token),
            self._reference_hash(customer),
            self._sealed_names(customer),
            self._sealed_holder(customer, approval.card_holder),
            self._seal.seal(token.encode(), token_context(customer.id)),
            self._digest(customer),
        )
        return await self._database.write(_add(customer, parameters))

    async def change(self, customer: Customer, event: CustomerEvent, *, card_holder: str | None = None) -> None:
        """Stores a changed customer, and its event. A ``card_holder`` replaces the one before.

        Raises Outdated, and writes nothing, unless the row has the version before; StoreUnavailable.
        """
        parameters: tuple[Value, ...] = (
            customer.id,
            customer.version,
            customer.state,
            customer.method,
            customer.card_no_masked,
            customer.card_expiry,
            customer.order_id,
            customer.payment_id,
            customer.updated_at_ms,
            self._reference_hash(customer),
            self._sealed_names(customer),
            self._sealed_holder(customer, card_holder),
            self._digest(customer),
        )
        await self._database.write(_change(customer, parameters, event))

    async def get(self, customer_id: str) -> Customer | None:
        """Reads one customer of any principal. Raises StoreUnavailable; StoreUnusable where it can't be opened."""
        return await self._one(Statement(statements.GET_CUSTOMER, (customer_id,)))

    async def of_token(self, merchant: str, principal: str, token: Secret) -> Customer | None:
        """Finds a principal's newest customer that has, or had, this token."""
        token_hash = self._hash("token", token.reveal())
        return await self._one(Statement(statements.CUSTOMER_OF_TOKEN, (merchant, principal, token_hash)))

    async def token_of(self, customer_id: str) -> Secret | None:
        """Reads the gateway's token of a customer, for a charge; None where it was destroyed."""
        row = await self._database.read(first_row(Statement(statements.TOKEN_OF_CUSTOMER, (customer_id,))))
        sealed = None if row is None else row[0]
        return (
            Secret(self._seal.open(sealed, token_context(customer_id)).decode()) if isinstance(sealed, bytes) else None
        )

    async def list(self, filters: CustomerFilter, *, before: str | None, limit: int) -> _Customers:
        """Reads one page, newest first: at most ``limit`` customers with ids below ``before``."""
        equal = columns_of(filters)
        if filters.reference is not None:
            del equal["reference"]
            equal["reference_hash"] = self._hash("reference", filters.reference)
        page = page_of(statements.LIST_CUSTOMERS, equal, before=before, limit=limit)
        return await self._many(page)

    async def _one(self, statement: Statement) -> Customer | None:
        found = await self._many(statement)
        return found[0] if found else None

    async def _many(self, statement: Statement) -> _Customers:
        rows = await self._database.read(all_rows(statement))
        return [self._of(row) for row in rows if await self._is_right(row)]

    async def _is_right(self, row: Row) -> bool:
        return await self._rows.is_right(CUSTOMERS, (*row[: len(_MEMBERS)], *row[-2:]))

    def _of(self, row: Row) -> Customer:
        *columns, sealed, has_holder, _reference_hash, _digest = row
        members: dict[str, object] = dict(zip(_MEMBERS, columns, strict=True))
        names = _Names(None, None)
        if isinstance(sealed, bytes):
            names = _decode_names(self._seal.open(sealed, names_context(str(members["id"]))))
        members |= {"reference": names.reference, "label": names.label, "has_holder": has_holder == 1}
        return msgspec.convert(members, Customer)

    def _sealed_names(self, customer: Customer) -> bytes | None:
        if customer.reference is None and customer.label is None:
            return None
        return self._seal.seal(_encode_names(_Names(customer.reference, customer.label)), names_context(customer.id))

    def _sealed_holder(self, customer: Customer, card_holder: str | None) -> bytes | None:
        return None if not card_holder else self._seal.seal(card_holder.encode(), holder_context(customer.id))

    def _reference_hash(self, customer: Customer) -> str | None:
        return None if customer.reference is None else self._hash("reference", customer.reference)

    def _digest(self, customer: Customer) -> str:
        members = (getattr(customer, name) for name in _MEMBERS)
        return self._rows.of(CUSTOMERS, (*members, self._reference_hash(customer)))

    def _hash(self, kind: str, text: str) -> str:
        return hmac.digest(self._lookup_key, f"{kind}\0{text}".encode(), "sha256").hex()


def token_context(customer_id: str) -> bytes:
    """Gives the seal context of a customer's token."""
    return f"{customer_id}/token".encode()


def holder_context(customer_id: str) -> bytes:
    """Gives the seal context of the name on the card."""
    return f"{customer_id}/holder".encode()


def names_context(customer_id: str) -> bytes:
    """Gives the seal context of the reference and label."""
    return f"{customer_id}/names".encode()


def _add(customer: Customer, parameters: tuple[Value, ...]) -> Unit[bool]:
    if not (yield Statement(statements.ADD_CUSTOMER, parameters)):
        return False
    yield from outbox.put(event_of_customer(customer, None))
    return True


def _change(customer: Customer, parameters: tuple[Value, ...], event: CustomerEvent) -> Unit[None]:
    if not (yield Statement(statements.CHANGE_CUSTOMER, parameters)):
        raise Outdated(f"the customer {customer.id!r} was changed since it was read")
    yield from outbox.put(event_of_customer(customer, event))
