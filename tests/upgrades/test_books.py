"""What an earlier version left behind is known again by this one, over a copy of its database.

The books stand for all that was ever stored: what fails here fails for everybody who upgrades. They are never made
anew; where a test can't be met any more, the change that it found is the mistake.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus
from pathlib import Path

import msgspec
import pytest
import structlog
from tests.scenarios.gateway_double import GatewayDouble
from tests.upgrades.books import VERSIONS, Asked, Books, copy_database, effects_at, read_books
from tests.upgrades.make_books import post, send
from tests.upgrades.service import FINISH_S, PUBLIC_URL, Opened, StillClock, opened, settings_over

from payrelay.app import opened_resources, running
from payrelay.app_commands import opened_key_stores
from payrelay.clock import Clock
from payrelay.core.answers import Answer, without_signatures
from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.database.schema_changes import ANY
from payrelay.core.gateways.signed_text import SignedText
from payrelay.core.notifications.notification import NotificationFilter
from payrelay.core.payments.idempotency import fingerprint_of
from payrelay.core.payments.operation import Kind, Operation, OperationFilter, State
from payrelay.core.seal_keys import parse_keys
from payrelay.core.secret import Secret
from payrelay.errors import Code, DatabaseNotReady, StoreUnusable
from payrelay.flows.operators.audit import Audit
from payrelay.flows.payments.recover_after_crash import recover
from payrelay.store.access.credentials import Credentials
from payrelay.store.engine.database import Row, Statement, Unit
from payrelay.store.engine.owner_lock import OwnerLock
from payrelay.store.engine.queries import query
from payrelay.store.engine.sealing import Seal
from payrelay.store.meta import chain_key
from payrelay.store.seals import SEALED, Seals

ALL = 1_000
OTHER_KEY = b"another key, of exactly 32 bytes"


@pytest.fixture(scope="module")
def gateway() -> Iterator[GatewayDouble]:
    """Gives a gateway that would do everything that it is asked."""
    with GatewayDouble() as double:
        yield double


@pytest.fixture(scope="module", params=VERSIONS)
def books(request: pytest.FixtureRequest) -> Books:
    """Gives the books of an earlier version."""
    return read_books(request.param)


@pytest.fixture
async def world(books: Books, gateway: GatewayDouble, tmp_path: Path) -> AsyncIterator[Opened]:
    """Opens a copy of its database at the moment at which it was left."""
    path = tmp_path / "payrelay.db"
    copy_database(books.version, path)
    async with opened(settings_over(f"sqlite:///{path}", gateway, books.encryption_key), books.left_at_ms) as world:
        yield world


async def operations_of(world: Opened) -> list[Operation]:
    """Gives all operations."""
    return await world.relay.journal.list(OperationFilter(), before=None, limit=ALL)


async def heard(world: Opened, asked: Asked) -> tuple[object, ...]:
    """Repeats a request; gives what of the answer is not to change."""
    reply = await send(world, asked)
    error = reply.json.get("error", {})
    operation_id = reply.headers.get("payrelay-operation") or error.get("operation_id")
    is_replayed = reply.headers.get("idempotent-replayed") == "true"
    return (asked.what, reply.status, error.get("code"), operation_id, reply.body.decode() if is_replayed else None)


def code_now(asked: Asked, for_operators: set[str]) -> str | None:
    """Gives the code of this version: what an operator must decide has a code of its own since."""
    is_for_operator = asked.operation_id in for_operators and asked.status == HTTPStatus.ACCEPTED
    return Code.NEEDS_ATTENTION if is_for_operator else asked.code


def answer_now(asked: Asked, books: Books) -> str | None:
    """Gives the replayed answer of this version: the earlier one, for a phone without the signature in it."""
    if asked.answer is None or asked.headers.get("Authorization") != f"Bearer {books.keys['phone']}":
        return asked.answer
    return without_signatures(Answer(http_status=asked.status, body=asked.answer.encode())).body.decode()


async def test_every_request_is_known_again(world: Opened, books: Books, gateway: GatewayDouble) -> None:
    """With a key and without, by token, by handle and by a phone: nothing is done a second time.

    What had its answer gets that answer byte for byte; what is open is 202, and what is under way 409. A fingerprint,
    a claim, a stored answer or a key that came out otherwise would charge somebody again. A phone gets its answer
    without the members that no phone gets any more.
    """
    before = effects_at(gateway)
    for_operators = {row.id for row in await operations_of(world) if row.state is State.NEEDS_ATTENTION}
    found = [await heard(world, asked) for asked in books.asked]
    await world.relay.background.finish(FINISH_S)

    assert found == [
        (each.what, each.status, code_now(each, for_operators), each.operation_id, answer_now(each, books))
        for each in books.asked
    ]
    assert effects_at(gateway) == before


async def test_what_was_under_way_is_still_known_after_the_start(
    world: Opened, books: Books, gateway: GatewayDouble
) -> None:
    """The program was killed in the midst, and upgraded before it was started again: nothing is sent again."""
    rows = {operation.id: operation for operation in await operations_of(world)}
    under_way = [each for each in books.asked if rows[str(each.operation_id)].state is State.SENDING]
    before = effects_at(gateway)
    await recover(world.relay, is_sole_owner=True)
    found = [await heard(world, asked) for asked in under_way]

    assert under_way
    assert [(status, code) for _, status, code, *_ in found] == [(202, "outcome_unknown")] * len(under_way)
    assert effects_at(gateway) == before


async def test_what_stood_in_the_way_still_does(world: Opened, books: Books, gateway: GatewayDouble) -> None:
    """Another request on an order, hold, payment or subscription that is open is 409, and so is a second capture.

    Locks are found by hashes of tokens and by the number of the merchant: one that isn't found locks nothing.
    """
    before = effects_at(gateway)
    barred = [
        each for each in books.asked if each.status in {202, 409} or each.what.startswith("capture that succeeded")
    ]
    found = {}
    for number, asked in enumerate(barred):
        body = json.dumps(json.loads(asked.body) | {"amount": 2}) if asked.body else ""
        other = {"headers": asked.headers | {"Idempotency-Key": f"new-{number}"}, "body": body}
        found[asked.what] = (await send(world, msgspec.structs.replace(asked, **other))).status

    assert found == dict.fromkeys(found, 409)
    assert len({asked.target for asked in barred}) > len(("charge", "capture", "refund"))
    assert effects_at(gateway) == before


async def test_every_fingerprint_comes_out_as_it_is_stored(world: Opened) -> None:
    """Each stored call can be read, and hashed anew it gives the fingerprint that it was claimed by."""
    operations = await operations_of(world)
    found = {row.id: fingerprint_of(row.account, await world.relay.journal.call_of(row.id)) for row in operations}

    assert found
    assert found == {row.id: row.fingerprint for row in operations}


async def test_every_kept_answer_can_be_read(world: Opened) -> None:
    """What has its outcome has its answer; it is asked for by key for thirty days, and shown to operators for ever."""
    done = [row for row in await operations_of(world) if row.is_final]
    answers = [await world.relay.journal.answer_of(row.id) for row in done]

    assert all(isinstance(answer, Answer) for answer in answers)


async def test_every_signed_text_is_filled_in(world: Opened, books: Books) -> None:
    """Each form that was given out and each authorization has its text, so that no later notification is mistaken."""
    relay, found = world.relay, 0
    for opened_before in books.checkouts:
        checkout = await relay.checkouts.get(opened_before.id)
        assert checkout is not None
        text = SignedText(
            order_id=checkout.order_id, amount_minor=checkout.first_minor or 1_000, currency=checkout.currency
        )
        holders = await relay.signed_texts.holders(checkout.merchant, [text])
        assert [each.is_exact for each in holders if each.subject == checkout.id] == [True]
        found += 1
    for operation in await operations_of(world):
        if operation.kind is Kind.AUTHORIZATION and operation.state not in {State.DECLINED, State.REFUSED}:
            amount_minor, currency = operation.amount_minor or 0, operation.currency or ""
            text = SignedText(order_id=operation.order_id or "", amount_minor=amount_minor, currency=currency)
            holders = await relay.signed_texts.holders(operation.merchant, [text])
            assert operation.id in {each.subject for each in holders}
            found += 1

    rows = await world.database.read(_all(Statement(query("SELECT DISTINCT subject FROM signed_texts"), ())))
    assert len(rows) >= found > len(books.checkouts)
    assert not await relay.signed_texts.is_incomplete(relay.accounts["gateway"].merchant)


async def test_the_audit_finds_nothing(world: Opened, books: Books) -> None:
    """Chains and anchors of the earlier version hold: otherwise nobody could tell tampering from an upgrade.

    The rows are trusted as they stood at the upgrade, and that is told; from then on they have digests.
    """
    start = await chain_key(world.database, Seal(parse_keys(books.encryption_key)), world.clock)
    trail, now_ms = world.relay.journal.trail, world.clock.now_ms()
    audit = Audit(trail, start.since_ms, lambda *_: None, rows=world.relay.checkouts.rows, now_ms=now_ms)

    assert [finding async for finding in audit.findings()] == []
    assert audit.summary.is_verified
    assert audit.summary.trusted_since_ms == now_ms
    assert 0 < audit.summary.rows_trusted < audit.summary.rows


async def test_everything_that_is_sealed_opens(world: Opened, books: Books) -> None:
    """In every column that was sealed there is something, and each value opens; they all come under another key.

    Endpoints are registered anew: their addresses lay in clear.
    """
    old = parse_keys(books.encryption_key)
    seals = Seals(world.database, Seal((OTHER_KEY, *old)))
    exchanged = [each async for each in seals.rotate()]

    erasable = {column.name for column in SEALED if column.owner is not None}
    kept = {name for name in books.sealed if not name.startswith("endpoints.")}
    assert {each.column.name for each in exchanged} == kept - erasable | {"data_keys.sealed_key"}
    assert [each.unopened for each in exchanged if each.unopened] == []
    counted = await seals.count()
    assert {column.name for column, counts in counted.items() if counts} & erasable == set()


async def test_an_open_checkout_is_given_again(world: Opened, books: Books) -> None:
    """An equal request, with a key and without, gets the page and the form of before, signed alike, and no other."""
    for checkout in books.checkouts:
        data = (await send(world, checkout.asked)).json["data"]
        assert (data["id"], data["url"], data["state"]) == (checkout.id, checkout.url, checkout.state)
        assert data["form"]["fields"] == checkout.form


async def test_the_page_of_a_checkout_is_shown(world: Opened, books: Books) -> None:
    """The customer has its address from before the upgrade; who knows another secret sees nothing."""
    for checkout in books.checkouts:
        assert checkout.url is not None
        path = checkout.url.removeprefix(PUBLIC_URL)
        other = path[:-1] + ("a" if path[-1] != "a" else "b")
        shown = [await world.call("GET", each, headers={"Authorization": ""}) for each in (path, other)]
        assert [reply.status for reply in shown] == [200, 404], checkout.asked.what


async def test_a_customer_is_found_by_its_token(world: Opened, books: Books) -> None:
    """A second approval of the same card must find the customer, and not make another one."""
    customers, merchant = world.relay.customers, world.relay.account("gateway").merchant
    found = {token: await customers.of_token(merchant, "shop", Secret(token)) for token in books.customers}

    assert books.customers
    assert {token: customer and customer.id for token, customer in found.items()} == books.customers


async def test_a_customer_can_still_be_charged(world: Opened, books: Books, gateway: GatewayDouble) -> None:
    """Behind the handle lies the gateway's token, sealed: a new charge takes it."""
    token, handle = min(books.customers.items())
    body = {"order_id": "new", "type": "PAYMENT", "items": "Tea", "currency": "LKR", "amount": 1}
    headers = {"Authorization": f"Bearer {books.keys['shop']}"}
    content = json.dumps(body | {"customer_token": handle}).encode()
    reply = await world.call("POST", "/gateway/api/payments/charge", headers=headers, body=content)

    assert reply.status == 200
    assert gateway.asked[-1].json["customer_token"] == token


async def test_a_notification_that_comes_again_is_counted(world: Opened, books: Books) -> None:
    """The gateway repeats itself for days: what was worked on before the upgrade is not worked on again."""
    before = await notifications_of(world)
    for body in books.notifications:
        await post(world, body.encode())
    await world.relay.background.finish(FINISH_S)
    after = await notifications_of(world)

    assert before
    assert {number: repeats + 1 for number, repeats in before.items()} == after


async def notifications_of(world: Opened) -> dict[str, int]:
    """Gives how often each notification has come again."""
    rows = await world.relay.inbox.list(NotificationFilter(), before=None, limit=ALL)
    return {row.id: row.repeats for row in rows}


async def test_the_keys_and_the_phones_token_are_accepted(world: Opened, books: Books) -> None:
    """Keys are rotated by their owners, not by an upgrade."""
    statuses = {}
    for name, key in books.keys.items():
        reply = await world.call("GET", "/gateway/api/operations", headers={"Authorization": f"Bearer {key}"})
        statuses[name] = reply.status

    assert statuses == dict.fromkeys(books.keys, 200)


async def test_the_phones_token_pays_its_order_no_second_time(
    world: Opened, books: Books, gateway: GatewayDouble
) -> None:
    """It was issued without a number of payments, and had none to keep to before."""
    before = effects_at(gateway)
    by_phone = next(each for each in books.asked if each.headers.get("Authorization", "").endswith(books.keys["phone"]))
    again = msgspec.structs.replace(by_phone, headers=by_phone.headers | {"Idempotency-Key": "another"})
    reply = await send(world, again)

    assert (reply.status, reply.json["error"]["code"]) == (409, "conflict")
    assert reply.json["error"]["operation_id"] == by_phone.operation_id
    assert effects_at(gateway) == before


async def test_the_last_known_answers_stand_in_for_a_gateway_that_is_down(world: Opened, books: Books) -> None:
    """What was read before the upgrade is found by the same question after it."""
    headers = {"Authorization": f"Bearer {books.keys['shop']}"}
    account = world.relay.account("gateway")
    await account.close()
    for path, data in books.reads.items():
        reply = await world.call("GET", f"/gateway/api/{path}", headers=headers)
        assert (reply.status, reply.headers.get("payrelay-stale")) == (200, "true")
        assert reply.json["data"] == json.loads(data)


async def test_the_feed_goes_on_from_where_it_was(world: Opened, books: Books) -> None:
    """Who has read up to a position finds what was told before it, and after it."""
    headers = {"Authorization": f"Bearer {books.keys['shop']}"}
    reply = await world.call("GET", "/gateway/api/events?limit=100", headers=headers)

    assert reply.status == 200
    assert {"operation.succeeded", "checkout.completed", "customer.created"} <= {
        event["type"] for event in reply.json["data"]["events"]
    }


async def test_what_is_known_of_subscriptions_is_shown(world: Opened, books: Books) -> None:
    """It is put together of facts that were told long ago, and the gateway isn't asked for it."""
    headers = {"Authorization": f"Bearer {books.keys['shop']}"}
    reply = await world.call("GET", "/gateway/api/subscription-states/420075044317", headers=headers)

    assert (reply.status, reply.json["data"]["state"]) == (200, "active")


async def test_every_checkout_can_be_read(world: Opened, books: Books) -> None:
    """Those that have their outcome too: what was asked for, with the customer's data, is sealed with each."""
    headers = {"Authorization": f"Bearer {books.keys['shop']}"}
    merchant = world.relay.account("gateway").merchant
    order = (await send(world, books.checkouts[0].asked)).json["data"]["order_id"]
    rows: list[Checkout] = await world.relay.checkouts.of_order(merchant, order)

    assert [await world.relay.checkouts.details_of(row.id) is not None for row in rows] == [True]
    assert (await world.call("GET", f"/gateway/api/checkouts/{rows[0].id}", headers=headers)).status == 200


def _all(statement: Statement) -> Unit[list[Row]]:
    return (yield statement)


async def test_no_command_upgrades_beneath_a_running_server(
    books: Books, gateway: GatewayDouble, tmp_path: Path
) -> None:
    """The server of the version before would write rows without digests: they would count as not existing for good."""
    path = tmp_path / "payrelay.db"
    copy_database(books.version, path)
    settings = settings_over(f"sqlite:///{path}", gateway, books.encryption_key)
    before = hash_of_file(path)
    server = OwnerLock(path.with_name("payrelay.db.lock"), "the server of then")
    with pytest.raises(StoreUnusable, match=r"another Payrelay process \(pid \d+\) is running"):
        async with opened_resources(settings, Clock(), changes=ANY):
            pass
    assert hash_of_file(path) == before

    server.release()
    async with opened_resources(settings, Clock(), changes=ANY) as shared:
        assert await Credentials(shared.database, shared.rows).list()


async def test_a_service_upgrades_only_when_it_is_told_to(books: Books, gateway: GatewayDouble, tmp_path: Path) -> None:
    """A restart by chance must change nothing; one that was told to says what it does, and serves."""
    path, told = tmp_path / "payrelay.db", list[str]()
    copy_database(books.version, path)
    settings = settings_over(f"sqlite:///{path}", gateway, books.encryption_key)
    before, clock = hash_of_file(path), StillClock(books.left_at_ms)

    def note(_logger: object, _method: str, event: structlog.typing.EventDict) -> str:
        if event["event"] == "upgrading":
            told.append(event["text"])
        raise structlog.DropEvent

    log = structlog.wrap_logger(None, processors=[note], wrapper_class=structlog.make_filtering_bound_logger(0))
    with pytest.raises(DatabaseNotReady, match="run payrelay db upgrade, or start payrelay serve --upgrade"):
        async with running(settings, clock=clock, log=log):
            pass
    assert (hash_of_file(path), told) == (before, [])

    async with running(settings, clock=clock, log=log, may_upgrade=True) as service:
        assert await service.credentials.list()
    assert "migration 22 (budget_consumers)" in told
    assert "upgrade step 'row digests'" in told


async def test_a_command_works_beside_a_server_of_its_own_version(
    books: Books, gateway: GatewayDouble, tmp_path: Path
) -> None:
    """A key is made while the service runs: there is nothing to upgrade, so nobody's lock is asked for."""
    path = tmp_path / "payrelay.db"
    copy_database(books.version, path)
    settings = settings_over(f"sqlite:///{path}", gateway, books.encryption_key)
    async with opened(settings, books.left_at_ms), opened_key_stores(settings, Clock(), may_make=True) as stores:
        assert await stores.credentials.list()


def hash_of_file(path: Path) -> str:
    """Gives the digest of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
