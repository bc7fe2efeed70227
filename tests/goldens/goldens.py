"""Values that are stored or hashed, made of inputs that never change: what ``test_goldens.py`` pins.

The values themselves stand in ``goldens.json``.
"""

from typing import Final

import msgspec
from tests.samples import OPERATION
from tests.store.test_seals import fill

from payrelay.core.access.bounds import key_of_bound
from payrelay.core.access.credential import Bound, compose_key, hash_of
from payrelay.core.access.person_names import PersonNames
from payrelay.core.answers import Answer
from payrelay.core.calls import (
    CancelSubscription,
    Capture,
    Charge,
    Effect,
    Item,
    Refund,
    RetrySubscription,
    Void,
)
from payrelay.core.events.event import event_id
from payrelay.core.payments.audit_chain import AnchoredSpan, ChainKey, Link, row_digest
from payrelay.core.payments.idempotency import claim_of
from payrelay.core.payments.operation import captured_guard
from payrelay.core.secret import Secret, secret_hash
from payrelay.errors import Code
from payrelay.flows.checkouts.way_to_gateway import secret_hash_of
from payrelay.gateways.payhere.account import Account, app_of, merchant_of, token_name_of
from payrelay.store.data_keys.keys import DataKeys
from payrelay.store.engine.database import Database, Row, Statement, Value, all_rows
from payrelay.store.engine.queries import Query, query
from payrelay.store.engine.rows import blob_of
from payrelay.store.engine.sealing import Seal
from payrelay.store.tables.seals import SEALED, SealedColumn

MINIMAL: Final = Charge(
    authorize=False, order_id="A-1", items="Tea", currency="LKR", amount_minor=34_567, customer_token="59AFEE022CC69CA3"
)
CALLS: Final[dict[str, Effect]] = {
    "charge": MINIMAL,
    "charge by handle": msgspec.structs.replace(MINIMAL, customer_token="cus_019c8b2f5a7e4d10b6f3a92c7e08d154"),
    "hold": msgspec.structs.replace(MINIMAL, authorize=True),
    "charge with everything": msgspec.structs.replace(
        MINIMAL,
        custom_1="booking 7",
        custom_2="2",
        notify_url="https://shop.example/notifications?a=1&b=2",
        item_list=(
            Item(name="Tea", number="1", quantity=2, unit_amount_minor=15_000),
            Item(name="Tip", number="2", quantity=1, unit_amount_minor=4_567),
        ),
    ),
    "charge with an empty list": msgspec.structs.replace(MINIMAL, item_list=()),
    "charge beyond ASCII": msgspec.structs.replace(
        MINIMAL, order_id="ඇණවුම-1", items="Tee, grün \N{HOT BEVERAGE} \U0001d50a \u2028 \"\\/<>&'\x7f\t\n", custom_1=""
    ),
    "large charge": msgspec.structs.replace(MINIMAL, amount_minor=99_999_999_999_999),
    "beyond 64 bits": msgspec.structs.replace(MINIMAL, amount_minor=2**63),
    "capture": Capture(authorization_token="e34f3059-7b7d", amount_minor=8_000, description="one is missing"),
    "refund": Refund(payment_id="320025021815", description="late"),
    "refund of a part": Refund(payment_id="320025021815", description="late", amount_minor=10_050),
    "release": Void(authorization_token="74d7f304-7f9d", description="not wanted"),
    "release of a part": Void(authorization_token="74d7f304-7f9d", description="not wanted", amount_minor=1),
    "retry": RetrySubscription(subscription_id=420075032251),
    "cancellation": CancelSubscription(subscription_id=9_223_372_036_854_775_807),
}

ACCOUNT: Final = Account(
    name="gateway",
    environment="sandbox",
    base_url="https://Sandbox.payhere.lk:443/x",
    app_id="4OVx33RVOPg4DzbZUzq8Pw3D2",
    app_secret=Secret("s"),
    merchant_id="1211149",
)
ANSWER: Final = Answer(
    http_status=402,
    body=b'{"status":-1,"msg":"\xc3\xa9","data":{"amount":1000.0},"error":{"code":"declined"}}',
    code=Code.DECLINED,
    retry_after_s=10,
    headers=(("Payrelay-Operation", "op_1"),),
)
SEAL_KEY: Final = b"k" * 32
CHAIN: Final = ChainKey(b"c" * 32)
LINK: Final = Link("op_1", 2, 1_700_000_000_000, "succeeded", "succeeded", '{"http_status":200}', "r" * 64, "a" * 64)


def hashes() -> dict[str, str]:
    """Gives the hashes by which a row, a repeat or a caller is found, and what names a claim or a lock."""
    unnamed = msgspec.structs.replace(ACCOUNT, merchant_id=None)
    key = compose_key("sandbox", "abcdefghijkl", "s" * 43)
    return {
        "hash of a token": secret_hash("e34f3059-7b7d"),
        "lock of a hold that was captured": captured_guard(f"authorization/{secret_hash('e34f3059-7b7d')}"),
        "claim of a key": str(claim_of("k-1", "f", is_unkeyed_claimed=True)),
        "claim without a key": str(claim_of(None, "f", is_unkeyed_claimed=True)),
        "key of a customer's phone": key_of_bound(Bound(customer_id="cus_1", order_id="A-1"), "k-1"),
        "key of an order's phone": key_of_bound(Bound(order_id="A/1"), "k-1"),
        "secret of a checkout": secret_hash_of("Jw0cDlWeg3Jqg3Oct1FUtjVTZrMo7D"),
        "API key": key,
        "hash of an API key": hash_of(key).hex(),
        "event": event_id(1_700_000_000_000, "op_1/2"),
        "merchant": merchant_of(ACCOUNT),
        "merchant without a number": merchant_of(unnamed),
        "app": app_of(ACCOUNT),
        "access token": token_name_of(ACCOUNT),
    }


def person_names() -> dict[str, str]:
    """Gives what stands for the name of a person, which lies nowhere in clear."""
    names = PersonNames(b"c" * 32)
    return {
        "keys": names.keys_of("user/17"),
        "key of a phone": str(names.key_as_stored("reference/user%2F17/k-1")),
        "credential": names.credential_id("https://id.example/", "user/17"),
    }


def chain_hashes() -> dict[str, str]:
    """Gives the hashes of the audit chain."""
    anchor = CHAIN.anchor("p" * 64, AnchoredSpan(1, 0, 3_600_000, 3_600_001))
    anchor.add("op_1", 1, "l" * 64)
    anchor.add("op_1", 2, "m" * 64)
    with_customer = msgspec.structs.replace(OPERATION, customer_id="cus_019c8b2f5a7e4d10b6f3a92c7e08d154")
    return {
        "row": row_digest(OPERATION),
        "row with a customer": row_digest(with_customer),
        "first line": CHAIN.entry("", LINK._replace(version=1, event=None, answer_digest="")),
        "next line": CHAIN.entry("p" * 64, LINK),
        "answer": CHAIN.answer("op_1", b"answer"),
        "anchor": anchor.end(),
    }


async def sealed_rows(database: Database) -> dict[str, list[Row]]:
    """Fills every sealed column, and gives each one's sealed values with the names of their rows."""
    await fill(database, (SEAL_KEY,), ANSWER)
    return {column.name: await database.read(all_rows(Statement(_all_of(column), ()))) for column in SEALED}


def _all_of(column: SealedColumn) -> Query:
    names = f"{column.column}, {', '.join(column.keys)}"
    return query(f"SELECT {names} FROM {column.table} WHERE {column.column} IS NOT NULL")  # noqa: S608, our own names


def sealed_places() -> dict[str, str]:
    """Gives what binds a value to its row, for each sealed column."""
    names = {"merchant": "0123456789abcdef", "order_id": "A-1", "kind": "authorization", "subject": "order/A-1"}
    return {column.name: column.context(*(names.get(key, "name") for key in column.keys)).decode() for column in SEALED}


def opened_rows(found: dict[str, list[Row]]) -> dict[str, dict[str, bytes]]:
    """Opens sealed values; gives them by column and by the name of their row."""
    seal = Seal((SEAL_KEY,))
    data_keys = {str(owner): sealed for sealed, owner in found["data_keys.sealed_key"]}

    def opened(column: SealedColumn, sealed: Value, keys: list[Value]) -> bytes:
        context = column.context(*keys)
        if column.owner is None:
            return seal.open(blob_of(sealed), context)
        owner = column.owner(*keys)
        plain = DataKeys(seal).open(sealed, context, owner, data_keys[owner])
        assert plain is not None
        return plain

    return {
        column.name: {"/".join(map(str, keys)): opened(column, sealed, keys) for sealed, *keys in found[column.name]}
        for column in SEALED
    }
