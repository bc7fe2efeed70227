"""Stored customers in the store: what names the person is sealed with a key of the customer's own.

Rules:

1. The gateway's token, the name on the card, and the card with the merchant's names for the customer are sealed, each
   bound to its row. Only a charge gets the token; nothing gets the name on the card.
2. Values to search by are stored as keyed hashes. A token has 128 random bits, and wouldn't need the key. A reference
   may be an e-mail address, which a plain hash would reveal to a guess.
3. A change names the version on which it was decided, and is written with its event or not at all.
4. A row whose digest is wrong counts as not existing: nobody who lacks the key gives a customer to another principal.
5. A customer whose names can't be opened, because its data key was lost, counts as not existing too, and is an alert.
   So it ends no list. It can be erased all the same (``left_of``).
6. The hash of a token stays when the token is destroyed, so that a repeated notification of its approval restores no
   customer. Alone it reveals nothing, to Payrelay as little as to others.
7. The sealed values of a customer have one data key (``store.data_keys.keys``). Erasure destroys it. Removal destroys
   it too, and seals what stays with a new one, so that the token can't be opened any more.
"""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

import hmac
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from payrelay.core.customers.customer import (
    Approval,
    Customer,
    CustomerEvent,
    CustomerFilter,
    CustomerState,
    event_of_customer,
)
from payrelay.core.secret import Secret
from payrelay.errors import Outdated, StoreUnusable
from payrelay.store.data_keys.keys import DataKeys, KeyResidues, OwnKey, destroyed_on_request, replaced, stored
from payrelay.store.digests.rows import RowDigests, RowKey
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows, first_row
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.engine.tables import Binding, Table
from payrelay.store.events import outbox
from payrelay.store.statements.data_keys import KEY_OF, key_of
from payrelay.store.statements.pagination import Among, ListIndex, Listing, columns_of, read_page

_LOOKUP_KEY_OF: Final = b"payrelay customers lookup"


class _Names(msgspec.Struct, frozen=True, array_like=True):
    """The sealed members."""

    reference: str | None
    label: str | None
    method: str | None
    card_no_masked: str | None
    card_expiry: str | None


_NAMELESS: Final = _Names(None, None, None, None, None)
_encode_names: Final = msgspec.msgpack.Encoder().encode
_decode_names: Final = msgspec.msgpack.Decoder(_Names).decode


_Customers: TypeAlias = list[Customer]


def state_of(customer_id: str) -> Unit[CustomerState | None]:
    """Reads the state of a customer within another unit of work; None where there is none."""
    row = yield from first_row(Statement(STATE_OF_CUSTOMER, (customer_id,)))
    return None if row is None else CustomerState(str(row[0]))


class Customers:
    """Stores customers in a database. The key of the hashes is derived from the store's ``chain_key``."""

    def __init__(self, database: Database, seal: Seal, rows: RowDigests, *, chain_key: bytes) -> None:
        self._database = database
        self._rows = rows
        self._data_keys = DataKeys(seal)
        self._lookup_key = hmac.digest(chain_key, _LOOKUP_KEY_OF, "sha256")

    async def add(self, customer: Customer, approval: Approval) -> bool:
        """Stores the new customer of an approval, and its event; False where its principal has one with that token.

        Raises StoreUnavailable.
        """
        token, own = approval.token.reveal(), self._data_keys.new(customer.id)
        parameters: tuple[Value, ...] = (
            *_columns(customer),
            self._hash("token", token),
            self._reference_hash(customer),
            _sealed_names(customer, own),
            _sealed_holder(approval.card_holder, own),
            own.key.seal(token.encode(), token_context(customer.id)),
            self._digest(customer),
        )
        return await self._database.write(_add(customer, parameters, own, self._rows.key))

    async def change(self, customer: Customer, event: CustomerEvent, *, card_holder: str | None = None) -> None:
        """Stores a changed customer, and its event. A ``card_holder`` replaces the one before.

        Raises Outdated, and writes nothing, unless the row has the version before; StoreUnavailable.
        """
        known = await self._known_key(customer) if customer.can_be_charged else None
        own = known or self._data_keys.new(customer.id)
        parameters: tuple[Value, ...] = (
            customer.id,
            customer.version,
            customer.state,
            customer.order_id,
            customer.payment_id,
            customer.updated_at_ms,
            self._reference_hash(customer),
            _sealed_names(customer, own),
            _sealed_holder(card_holder, own),
            self._digest(customer),
        )
        new_key = None if own is known else own
        await self._database.write(_change(customer, parameters, event, new_key, self._rows.key))

    async def get(self, customer_id: str) -> Customer | None:
        """Reads one customer of any principal. Raises StoreUnavailable."""
        return await self._one(Statement(GET_CUSTOMER, (customer_id,)))

    async def left_of(self, customer_id: str) -> Customer | None:
        """Reads what is not sealed of a customer of any principal, for an erasure. Raises StoreUnavailable."""
        row = await self._database.read(first_row(Statement(GET_CUSTOMER, (customer_id,))))
        return None if row is None or not await self._is_right(row) else _customer(row, _NAMELESS)

    async def of_token(self, merchant: str, principal: str, token: Secret) -> Customer | None:
        """Finds a principal's newest customer that has, or had, this token."""
        token_hash = self._hash("token", token.reveal())
        return await self._one(Statement(CUSTOMER_OF_TOKEN, (merchant, principal, token_hash)))

    async def token_of(self, customer_id: str) -> Secret | None:
        """Reads the gateway's token of a customer, for a charge; None where it was destroyed."""
        row = await self._database.read(first_row(Statement(TOKEN_OF_CUSTOMER, (customer_id,))))
        sealed, sealed_key = row or (None, None)
        token = self._data_keys.open(sealed, token_context(customer_id), customer_id, sealed_key)
        return None if token is None else Secret(token.decode())

    async def clear_files(self) -> bool:
        """Clears the database's files of data keys that were destroyed on request, of whatever noun.

        False where something is in the way, so that it must be tried again. May be repeated. Raises StoreUnavailable.
        """
        return await KeyResidues(self._database).clear()

    async def list(self, filters: CustomerFilter, *, before: str | None, limit: int) -> _Customers:
        """Reads one page, newest first: at most ``limit`` customers with ids below ``before``."""
        equal = columns_of(filters)
        if filters.reference is not None:
            del equal["reference"]
            equal["reference_hash"] = self._hash("reference", filters.reference)
        found: _Customers = []
        while (left := limit - len(found)) > 0:
            rows = await read_page(self._database, LIST_CUSTOMERS, equal, before=before, limit=left)
            found += await self._trusted(rows)
            if len(rows) < left:
                break
            before = str(rows[-1][0])  # rows that don't count must not end the list before the others
        return found

    async def _one(self, statement: Statement) -> Customer | None:
        found = await self._trusted(await self._database.read(all_rows(statement)))
        return found[0] if found else None

    async def _trusted(self, rows: Sequence[Row]) -> _Customers:
        found = [await self._opened(row) for row in rows if await self._is_right(row)]
        return [customer for customer in found if customer is not None]

    async def _opened(self, row: Row) -> Customer | None:
        try:
            return self._of(row)
        except StoreUnusable:
            await self._rows.report(f"{CUSTOMERS.name}/{row[0]!s}")
            return None

    async def _is_right(self, row: Row) -> bool:
        return await self._rows.is_right(CUSTOMERS, (*row[: len(_MEMBERS)], *row[-2:]))

    async def _known_key(self, customer: Customer) -> OwnKey | None:
        row = await self._database.read(first_row(Statement(KEY_OF, (customer.id,))))
        return None if row is None else self._data_keys.known(customer.id, row[0])

    def _of(self, row: Row) -> Customer:
        customer_id, sealed, sealed_key = str(row[0]), row[len(_MEMBERS)], row[len(_MEMBERS) + 1]
        plain = self._data_keys.open(sealed, names_context(customer_id), customer_id, sealed_key)
        return _customer(row, _NAMELESS if plain is None else _decode_names(plain))

    def _reference_hash(self, customer: Customer) -> str | None:
        return None if customer.reference is None else self._hash("reference", customer.reference)

    def _digest(self, customer: Customer) -> str:
        return self._rows.of(CUSTOMERS, (*_columns(customer), self._reference_hash(customer)))

    def _hash(self, kind: str, text: str) -> str:
        return hmac.digest(self._lookup_key, f"{kind}\0{text}".encode(), "sha256").hex()


def _columns(customer: Customer) -> tuple[Value, ...]:
    return tuple(getattr(customer, name) for name in _MEMBERS)


def _customer(row: Row, names: _Names) -> Customer:
    *columns, _sealed, _sealed_key, has_holder, _reference_hash, _digest = row
    members: dict[str, object] = dict(zip(_MEMBERS, columns, strict=True))
    return msgspec.convert(members | msgspec.structs.asdict(names) | {"has_holder": has_holder == 1}, Customer)


def _sealed_names(customer: Customer, own: OwnKey) -> bytes | None:
    names = _Names(*(getattr(customer, name) for name in _Names.__struct_fields__))
    return None if names == _NAMELESS else own.key.seal(_encode_names(names), names_context(customer.id))


def _sealed_holder(card_holder: str | None, own: OwnKey) -> bytes | None:
    return None if not card_holder else own.key.seal(card_holder.encode(), holder_context(own.owner))


def _add(customer: Customer, parameters: tuple[Value, ...], own: OwnKey, key: RowKey) -> Unit[bool]:
    if not (yield Statement(ADD_CUSTOMER, parameters)):
        return False
    yield stored(own)
    yield from outbox.put(event_of_customer(customer, None), key)
    return True


def _change(
    customer: Customer, parameters: tuple[Value, ...], event: CustomerEvent, new_key: OwnKey | None, key: RowKey
) -> Unit[None]:
    if not (yield Statement(CHANGE_CUSTOMER, parameters)):
        raise Outdated(f"the customer {customer.id!r} was changed since it was read")
    if customer.state is CustomerState.ERASED:
        yield from destroyed_on_request((customer.id,))
    elif new_key is not None:
        yield from replaced(new_key)
    yield from outbox.put(event_of_customer(customer, event), key)


def token_context(customer_id: str) -> bytes:
    """Gives the seal context of a customer's token."""
    return f"{customer_id}/token".encode()


def holder_context(customer_id: str) -> bytes:
    """Gives the seal context of the name on the card."""
    return f"{customer_id}/holder".encode()


def names_context(customer_id: str) -> bytes:
    """Gives the seal context of the reference and label."""
    return f"{customer_id}/names".encode()


_MEMBERS: Final = (
    *("id", "account", "merchant", "principal", "state", "version", "order_id", "payment_id"),
    *("created_at_ms", "updated_at_ms"),
)
"""The members that have columns of their own."""
_PLAIN: Final = ", ".join(_MEMBERS)
CUSTOMERS: Final = Table(
    name="customers",
    columns=(*_MEMBERS, "reference_hash"),
    uncovered={"token_hash": "a repeated approval is found by it, within one principal; charges take the sealed token"},
    sealed={
        "sealed_token": Binding(token_context, str),
        "sealed_holder": Binding(holder_context, str),
        "sealed_names": Binding(names_context, str),
    },
)
_KEY: Final = key_of("customers.id")
_READ: Final = (
    f"{_PLAIN}, sealed_names, {_KEY}, CASE WHEN sealed_holder IS NULL THEN 0 ELSE 1 END, reference_hash, row_digest"
)
"""The columns that are read of a customer, with its data key: never the token, never the name on the card."""

ADD_CUSTOMER: Final = query(
    f"""
    INSERT INTO customers ({_PLAIN}, token_hash, reference_hash, sealed_names, sealed_holder, sealed_token,
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

GET_CUSTOMER: Final = query(f"SELECT {_READ} FROM customers WHERE id = $1")
"""Reads one customer."""

CUSTOMER_OF_TOKEN: Final = query(
    f"""
    SELECT {_READ} FROM customers
    WHERE merchant = $1 AND principal = $2 AND token_hash = $3 ORDER BY id DESC LIMIT 1""",
)
"""Finds a principal's newest customer that has, or had, the token with this hash."""

TOKEN_OF_CUSTOMER: Final = query(f"SELECT sealed_token, {_KEY} FROM customers WHERE id = $1")
"""Reads the sealed token of a customer, null where it was destroyed, and the customer's data key."""

_RARE: Final = Among.all_but("state", (CustomerState.ACTIVE,), CustomerState)

LIST_CUSTOMERS: Final = Listing(
    "customers",
    _READ,
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
