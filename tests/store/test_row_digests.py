# ruff: noqa: S608 - what is put into the texts are the tables and columns of the schema

import sqlite3
from functools import cache
from typing import Final, NamedTuple

import msgspec
import pytest
from tests.digests import CHAIN_KEY, digests_of
from tests.samples import ENDPOINT, IMPORTED, OPERATION, PAYMENT
from tests.store.conftest import Book, Tamper
from tests.store.console.samples import CONFIRMATION, confirmations_of, operators_of, with_everything
from tests.store.test_chargebacks import CHARGEBACK
from tests.store.test_chargebacks import EVENT as TOLD
from tests.store.test_checkouts import CHECKOUT, DETAILS
from tests.store.test_customers import APPROVAL, CUSTOMER
from tests.store.test_inbox import NOTIFICATION
from tests.store.test_subscriptions import paid

from payrelay.core.access.allowance import Allowance
from payrelay.core.access.client_token import ClientToken
from payrelay.core.access.credential import Credential, Rate, Scope
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.notifications.notification import NotificationKind
from payrelay.core.payments.payment import PaymentStatus
from payrelay.core.secret import Secret
from payrelay.runtime.ids import new_id
from payrelay.store.access.client_tokens import CLIENT_TOKENS, ClientTokens
from payrelay.store.access.credentials import CREDENTIALS, Credentials
from payrelay.store.access.principals import Principals
from payrelay.store.alerts import Alerts, AlertSubject
from payrelay.store.chargebacks import Chargebacks
from payrelay.store.checkouts import Checkouts
from payrelay.store.customers import Customers
from payrelay.store.engine import migrations
from payrelay.store.engine.database import Database, Statement, all_rows
from payrelay.store.engine.sealing import Seal
from payrelay.store.engine.tables import StructTable
from payrelay.store.events.endpoints import Endpoints
from payrelay.store.events.feed import Feed
from payrelay.store.gateways.readings import ReadingStore
from payrelay.store.imports.payments import ImportedPayments
from payrelay.store.inbox import Inbox
from payrelay.store.signed_texts import SignedTexts
from payrelay.store.statements.payments.operations import ADD_FAILED, FAILED_REFUNDS
from payrelay.store.subscriptions import SubscriptionOwner, Subscriptions
from payrelay.store.tables.digested import DIGESTED, UNDIGESTED

SEAL: Final = Seal((b"k" * 32,))
KEY: Final = Credential(
    id="key1",
    principal="shop",
    key_hash=b"h" * 32,
    scopes=frozenset({Scope.PAYMENTS_CHARGE}),
    accounts=frozenset({"gateway"}),
    amount_max_minor=100,
    rate=Rate(count=1, window_s=1),
    created_at_ms=1,
    expires_at_ms=2,
    revoked_at_ms=None,
)
TOKEN: Final = ClientToken(
    id="tok1",
    principal="shop",
    credential_id="key1",
    account="gateway",
    customer_id="cus_1",
    order_id="A-1",
    allowance=Allowance(is_open=True, amount_max_minor=100, currency="LKR"),
    scopes=frozenset({Scope.PAYMENTS_CHARGE}),
    issued_at_ms=1,
    expires_at_ms=2,
)
TYPES: Final = {"TEXT": "text", "INTEGER": "bigint"}
"""PostgreSQL's types of columns, by those of SQLite."""
FORGED: Final = {"TEXT": "'forged'", "INTEGER": "77", "BLOB": "X'00'"}
LEGAL: Final = {
    ("customers", "state"): "'removed', sealed_token = NULL",
    ("principal_groups", "id"): "'forged' WHERE id = 'web'",
}
"""What a check of the schema lets pass."""


class Column(NamedTuple):
    """A column of the schema: its type, and its place in the primary key, 0 where it isn't in it."""

    kind: str
    place: int


@cache
def schema() -> dict[str, dict[str, Column]]:
    """Gives every table with its columns, as the migrations leave them."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(migrations.CREATE_VERSION_TABLE)
    for migration in migrations.shipped("sqlite"):
        connection.executescript(migration.text)
    tables = [
        row[0]
        for row in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
    ]
    found = {
        name: {row[1]: Column(row[2], row[5]) for row in connection.execute(f"PRAGMA table_info({name})")}
        for name in tables
    }
    connection.close()
    return found


COVERED: Final = [
    (table.name, column, each.kind)
    for table in DIGESTED
    for column, each in schema()[table.name].items()
    if column not in {*table.uncovered, *table.sealed}
]


@pytest.fixture
async def filled(database: Database) -> Database:
    """Gives a database with a row in every table that has digests, each written as the program writes it."""
    rows = digests_of(database)
    await Credentials(database, rows).add(KEY)
    await ClientTokens(database, rows).add(TOKEN)
    await Customers(database, SEAL, rows, chain_key=CHAIN_KEY).add(CUSTOMER, APPROVAL)
    await Endpoints(database, SEAL, rows).add(ENDPOINT, Secret("secret"))
    await Checkouts(database, SEAL, rows).add(CHECKOUT, DETAILS)
    await Inbox(database, SEAL, rows).put(NOTIFICATION, b"body")
    await Book(database).accept(OPERATION)
    await Inbox(database, SEAL, rows).accept_token(NOTIFICATION, NotificationKind.AUTHORIZATION, "token", at_ms=1)
    text = SignedText(order_id=CHECKOUT.order_id, amount_minor=1, currency="LKR")
    await SignedTexts(database, rows, secret=CHAIN_KEY).keep_form(CHECKOUT, [text], at_ms=1)
    refunded = msgspec.structs.replace(PAYMENT, status=PaymentStatus.REFUNDED)
    await ReadingStore(database, SEAL, rows).note_payments("m", [refunded], 1, 1)
    failed = ("op_1", "m", "1", 1)
    await database.write(all_rows(Statement(ADD_FAILED, (*failed, rows.of(FAILED_REFUNDS, failed)))))
    await ImportedPayments(database, rows).take([msgspec.structs.replace(IMPORTED, order_id="old-1")], is_dry=False)
    owner = SubscriptionOwner(account="gateway", merchant="m", principal="shop")
    await Subscriptions(database, new_id, rows).note(owner, [paid(1)], now_ms=1)
    await Principals(database, rows).add_name("web", "web shop", now_ms=1)
    await Principals(database, rows).put_into_group("all", ["web", "support"], now_ms=1)
    await with_everything(operators_of(database, SEAL))
    await confirmations_of(database).add(CONFIRMATION)
    await Chargebacks(database, rows).keep(CHARGEBACK, TOLD)
    await Feed(database, rows).publish(0, limit=1)  # the others are in the outbox
    return database


async def wrong_in(database: Database) -> list[str]:
    """Gives the tables that have a row with a wrong digest."""
    rows = digests_of(database)
    wrong = [table.name for table in DIGESTED async for row in rows.check(table) if not row.is_right]
    return list(dict.fromkeys(wrong))


def test_every_table_has_digests_or_a_reason() -> None:
    """A new table whose rows grant something must not come without digests, and without anybody noticing."""
    assert schema().keys() == {table.name for table in DIGESTED} | UNDIGESTED.keys()
    assert not {table.name for table in DIGESTED} & UNDIGESTED.keys()


def test_every_column_is_covered_or_has_a_reason() -> None:
    """A new column is covered as soon as the store reads it; one that isn't is sealed, or has a reason by its name."""
    for table in DIGESTED:
        assert {*table.columns, *table.uncovered, *table.sealed, "row_digest"} == schema()[table.name].keys()
        assert not table.sealed.keys() & {*table.columns, *table.uncovered}


def test_a_table_has_the_key_and_the_types_of_the_schema() -> None:
    """Rows are named and replaced by these keys, and PostgreSQL is told these types."""
    for table in DIGESTED:
        columns = schema()[table.name]
        assert [columns[name].place for name in table.columns] == [*range(1, table.keys + 1)] + [0] * (
            len(table.columns) - table.keys
        )
        if isinstance(table, StructTable):
            assert table.types == tuple(TYPES[columns[name].kind] for name in table.columns)


async def test_what_the_program_writes_is_right(filled: Database) -> None:
    """Each row with the digest of itself: otherwise nothing would open any more."""
    assert await wrong_in(filled) == []


@pytest.mark.deep
@pytest.mark.parametrize(("table", "column", "kind"), COVERED)
async def test_every_covered_column_is_watched(
    filled: Database, tamper: Tamper, table: str, column: str, kind: str
) -> None:
    """Whoever changes one of them, or the digest itself, is found out, and the row is named."""
    await tamper(f"UPDATE {table} SET {column} = {LEGAL.get((table, column), FORGED[kind])}")

    assert await wrong_in(filled) == [table]


async def test_no_row_counts_without_a_digest(filled: Database, tamper: Tamper) -> None:
    """Of whatever table: nothing vouches for such a row, so somebody else has written it."""
    for table in DIGESTED:
        await tamper(f"UPDATE {table.name} SET row_digest = ''")

    assert await wrong_in(filled) == [table.name for table in DIGESTED]


async def test_a_digest_is_worth_nothing_in_another_row_or_under_another_key(filled: Database, tamper: Tamper) -> None:
    """Nobody copies the digest of his own row, or makes one of his own."""
    await tamper("UPDATE client_tokens SET row_digest = (SELECT row_digest FROM credentials)")

    assert await wrong_in(filled) == ["client_tokens"]
    assert not [row async for row in digests_of(filled, b"x" * 32).check(CREDENTIALS) if row.is_right]


@pytest.mark.parametrize("change", ["row_digest = ''", "id = 'other'"])
async def test_a_row_with_a_wrong_digest_counts_as_not_existing(filled: Database, tamper: Tamper, change: str) -> None:
    """Whatever is read by: nobody is let in by it, shown it, or sent to it."""
    for table in (each for each in DIGESTED if each.columns[0] == "id"):
        one = f" WHERE id = (SELECT min(id) FROM {table.name})"
        await tamper(f"UPDATE {table.name} SET {change.replace('other', f'other-{table.name}')}{one}")
    rows = digests_of(filled)
    keys, tokens = Credentials(filled, rows), ClientTokens(filled, rows)
    customers = Customers(filled, SEAL, rows, chain_key=CHAIN_KEY)
    endpoints, checkouts = Endpoints(filled, SEAL, rows), Checkouts(filled, SEAL, rows)
    inbox = Inbox(filled, SEAL, rows)

    assert [await keys.get(each) for each in ("key1", "other-credentials")] == [None, None]
    assert await keys.list() == []
    assert await tokens.parentage("tok1") is None
    assert await customers.of_token(CUSTOMER.merchant, CUSTOMER.principal, APPROVAL.token) is None
    assert await endpoints.list_all() == []
    assert await endpoints.target(ENDPOINT.id) is None
    assert await checkouts.of_order(CHECKOUT.merchant, CHECKOUT.order_id) == []
    assert await inbox.get(NOTIFICATION.id) is None
    assert await inbox.put(NOTIFICATION, b"body") is None
    principals = Principals(filled, rows)
    assert [await principals.acts_for(each) for each in ("web", "support")] == [frozenset(), frozenset()]
    assert await principals.names() == []


async def test_a_wrong_row_is_an_alert_once(filled: Database, tamper: Tamper) -> None:
    """However often it is tried, and by however many processes: a thousand alerts hide the one that matters."""
    await tamper("UPDATE credentials SET principal = 'other'")
    for _ in range(2):
        rows = digests_of(filled)
        assert [await Credentials(filled, rows).get("key1") for _ in range(2)] == [None, None]
    due = await Alerts(filled, AlertSubject.ROW).lease_due(2**60, leased_until_ms=2**61, limit=10)

    assert [(alert.subject_id, alert.version) for alert in due] == [("credentials/key1", 1)]


async def test_an_alert_that_was_given_beforehand_keeps_nobody_from_being_told(
    filled: Database, tamper: Tamper
) -> None:
    """Somebody writes the alert's row first, as one that was given: the log of each process tells of the row, once."""
    await tamper("UPDATE credentials SET principal = 'other'")
    await tamper("INSERT INTO row_alerts (row_name, version, created_at_ms) VALUES ('credentials/key1', 1, 1)")
    rows, told = digests_of(filled), list[str]()
    rows.tell_of_wrong(told.append)

    assert [await Credentials(filled, rows).get("key1") for _ in range(2)] == [None, None]
    assert told == ["credentials/key1"]
    assert await Alerts(filled, AlertSubject.ROW).lease_due(2**60, leased_until_ms=2**61, limit=10) == []


async def test_what_was_revoked_can_not_be_brought_back(filled: Database, tamper: Tamper) -> None:
    """A revoked row has no digest: without the time of its end it is a row that somebody else has written."""
    rows = digests_of(filled)
    await Credentials(filled, rows).revoke("key1", 5)
    await ClientTokens(filled, rows).revoke("tok1", "shop", "gateway", 5)
    assert await wrong_in(filled) == []
    revoked = await Credentials(filled, rows).get("key1")
    assert revoked is not None
    assert revoked.revoked_at_ms == 5

    await tamper("UPDATE credentials SET revoked_at_ms = NULL; UPDATE client_tokens SET revoked_at_ms = NULL")
    assert await Credentials(filled, rows).get("key1") is None
    assert await wrong_in(filled) == [CREDENTIALS.name, CLIENT_TOKENS.name]


async def test_a_change_does_not_make_a_forged_row_right(filled: Database, tamper: Tamper) -> None:
    """Its owner changes a label between the forgery and the next read: the principal stays a forged one."""
    rows = digests_of(filled)
    endpoints, checkouts = Endpoints(filled, SEAL, rows), Checkouts(filled, SEAL, rows)
    endpoint, checkout = await endpoints.get(ENDPOINT.id), await checkouts.get(CHECKOUT.id)
    assert endpoint is not None
    assert checkout is not None
    await tamper("UPDATE endpoints SET principal = 'other'; UPDATE checkouts SET amount_minor = 1")
    await endpoints.change(msgspec.structs.replace(endpoint, label="new"), was=endpoint)
    await checkouts.change(msgspec.structs.replace(checkout, version=checkout.version + 1), has_event=False)

    assert await wrong_in(filled) == ["endpoints", "checkouts"]


async def test_forgetting_a_customer_does_not_make_a_forged_row_right(filled: Database, tamper: Tamper) -> None:
    """An erasure writes the row's digest anew; what somebody else wrote into the row stays forged."""
    checkouts = Checkouts(filled, SEAL, digests_of(filled))
    await tamper("UPDATE checkouts SET state = 'failed'")

    assert await checkouts.forget_order(CHECKOUT.merchant, CHECKOUT.principal, CHECKOUT.order_id) == 1
    assert await wrong_in(filled) == ["checkouts"]
