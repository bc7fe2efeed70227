"""A database of today after the upgrade: who acted on whose payments goes on, is named, and ends by a decision."""

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from tests.scenarios.gateway_double import GatewayDouble
from tests.upgrades.books import VERSIONS, Books, copy_database, effects_at, read_books
from tests.upgrades.service import Opened, opened, settings_over

from payrelay.flows.operators.manage_principals import (
    command_that_groups,
    command_that_separates,
    list_principals,
    pair_in_words,
    separate_principals,
)

CHARGED: Final = """
    SELECT payment_id, order_id FROM operations
    WHERE principal = ? AND kind = 'charge' AND state = 'succeeded'"""
REFUNDED: Final = "UPDATE operations SET principal = 'kiosk', payment_id = ?, state = ? WHERE kind = 'refund'"
SHARED: Final = "UPDATE operations SET order_id = ? WHERE principal = 'kiosk' AND kind = 'charge'"
SPLIT_KEY: Final = """
    INSERT INTO credentials
    SELECT '0000000{0}', '{1}', key_hash, '{2}', accounts, NULL, NULL, NULL, created_at_ms, NULL, {3} FROM credentials
    WHERE principal = 'shop' LIMIT 1"""


@pytest.fixture(scope="module")
def gateway() -> Iterator[GatewayDouble]:
    """Gives a gateway that would do everything that it is asked."""
    with GatewayDouble() as double:
        yield double


@pytest.fixture(scope="module", params=VERSIONS)
def books(request: pytest.FixtureRequest) -> Books:
    """Gives the books of an earlier version."""
    return read_books(request.param)


class Shelf:
    """A copy of an earlier database, which a test may change before this version opens it."""

    def __init__(self, books: Books, gateway: GatewayDouble, path: Path) -> None:
        copy_database(books.version, path)
        self.books = books
        self.path = path
        self._settings = settings_over(f"sqlite:///{path}", gateway, books.encryption_key)
        with closing(sqlite3.connect(path)) as database:
            self.payments = database.execute(CHARGED, ("shop",)).fetchall()

    def change(self, statement: str, *parameters: str) -> None:
        """Changes what the earlier version left behind."""
        with closing(sqlite3.connect(self.path)) as database:
            assert database.execute(statement, parameters).rowcount > 0, statement
            database.commit()

    def charged_by(self, principal: str) -> tuple[str, str]:
        """Gives the first payment that a principal charged, and its order."""
        with closing(sqlite3.connect(self.path)) as database:
            payment_id, order_id = database.execute(CHARGED, (principal,)).fetchone()
        return payment_id, order_id

    async def opened(self) -> AsyncIterator[Opened]:
        """Opens it with this version."""
        async with opened(self._settings, self.books.left_at_ms) as world:
            yield world


@pytest.fixture
def shelf(books: Books, gateway: GatewayDouble, tmp_path: Path) -> Shelf:
    """Gives a copy that nothing has opened yet."""
    return Shelf(books, gateway, tmp_path / "payrelay.db")


@pytest.fixture
async def world(shelf: Shelf, request: pytest.FixtureRequest) -> AsyncIterator[Opened]:
    """Opens it, after what the test names is done to it: ``refunded`` has the kiosk refund a payment of the shop's."""
    if getattr(request, "param", None) == "refunded":
        shelf.change(REFUNDED, shelf.payments[0][0], "succeeded")
    async for world in shelf.opened():
        yield world


async def refund(world: Opened, key: str, payment_id: str) -> Any:  # noqa: ANN401, of any answer
    """Asks for a refund of a part."""
    body = json.dumps({"payment_id": payment_id, "description": "back", "amount": 1}).encode()
    headers = {"Authorization": f"Bearer {key}"}
    return await world.call("POST", "/gateway/api/payments/refund", headers=headers, body=body)


async def test_principals_that_kept_to_their_own_are_kept_apart_at_once(
    world: Opened, shelf: Shelf, gateway: GatewayDouble
) -> None:
    """Nothing has to be decided, and the payments of the one are closed to the other from the first request on."""
    before = effects_at(gateway)
    reply = await refund(world, shelf.books.keys["kiosk"], shelf.payments[0][0])

    assert await world.relay.principals.grandfathered() == []
    assert reply.status == 404
    assert effects_at(gateway) == before
    assert {each.stored_as for each in await list_principals(world.relay.principals)} >= {"shop", "kiosk"}


@pytest.mark.parametrize("world", ["refunded"], indirect=True)
async def test_who_refunded_anothers_payments_still_may_until_somebody_decides(world: Opened, shelf: Shelf) -> None:
    """An upgrade breaks no shop whose support key gives back what its web key took; it says how to decide."""
    kiosk, principals = shelf.books.keys["kiosk"], world.relay.principals
    [pair] = await principals.grandfathered()
    reply = await refund(world, kiosk, shelf.payments[1][0])

    assert (pair.principal, pair.owner) == ("kiosk", "shop")
    assert reply.status == 200, reply.body
    assert command_that_groups(pair, {}) == "payrelay principals group shop-kiosk shop kiosk"
    assert command_that_separates(pair) == "payrelay principals separate shop kiosk"
    assert command_that_groups(pair, {}) in pair_in_words(pair, {})
    assert command_that_separates(pair) in pair_in_words(pair, {})
    assert await separate_principals(principals, ["shop", "kiosk"]) == 1
    assert (await refund(world, kiosk, shelf.payments[2][0])).status == 404


async def test_it_goes_one_way(shelf: Shelf) -> None:
    """The shop never touched what is the kiosk's: that the kiosk refunds for the shop opens nothing of the kiosk's."""
    shelf.change(REFUNDED, shelf.payments[0][0], "succeeded")
    kiosks, _ = shelf.charged_by("kiosk")
    async for world in shelf.opened():
        assert (await refund(world, shelf.books.keys["shop"], kiosks)).status == 404


async def test_who_shares_an_order_may_go_on_with_it(shelf: Shelf) -> None:
    """Two keys of one shop charged one order: both still may, and both are asked about."""
    shelf.change(SHARED, shelf.payments[0][1])
    async for world in shelf.opened():
        pairs = await world.relay.principals.grandfathered()
        assert [(each.principal, each.owner) for each in pairs] == [("kiosk", "shop"), ("shop", "kiosk")]


async def test_a_key_that_has_made_nothing_is_asked_about(shelf: Shelf) -> None:
    """Reads leave no trace: a key for reports would find nothing any more, and nobody would have been told."""
    shelf.change(SPLIT_KEY.format(1, "reports", '["payments:read"]', "NULL"))
    shelf.change(SPLIT_KEY.format(2, "till", '["payments:charge","operations:read"]', "NULL"))
    shelf.change(SPLIT_KEY.format(3, "gone", '["payments:read"]', "1"))
    async for world in shelf.opened():
        pairs = await world.relay.principals.grandfathered()
        assert {(each.principal, each.owner, each.reason) for each in pairs} == {
            ("reports", "shop", "unseen"),
            ("reports", "kiosk", "unseen"),
        }
        assert "has made nothing yet" in pair_in_words(pairs[0], {})


@pytest.mark.parametrize("tried", ["a refund that was refused", "a refund of an unknown payment", "an import"])
async def test_a_support_desk_is_asked_about_whatever_it_tried(shelf: Shelf, tried: str) -> None:
    """It has made nothing that it owns: it would be cut off from the shop's payments, and nobody would be told.

    Nor does it own anything: nobody is asked whether others may act on what is the desk's.
    """
    desk, scopes = "desk", '["payments:read","payments:refund"]'
    shelf.change(SPLIT_KEY.format(1, desk, scopes, "NULL"))
    shelf.change(SPLIT_KEY.format(2, "reports", '["payments:read"]', "NULL"))
    if tried == "an import":
        shelf.change("UPDATE customers SET principal = 'desk' WHERE id = (SELECT max(id) FROM customers)")
    else:
        state, payment_id = ("refused", shelf.payments[0][0]) if "refused" in tried else ("succeeded", "999")
        shelf.change(
            "UPDATE operations SET principal = 'desk', payment_id = ?, state = ? WHERE kind = 'refund'",
            payment_id,
            state,
        )
    async for world in shelf.opened():
        pairs = await world.relay.principals.grandfathered()
        assert {(each.principal, each.owner, each.reason) for each in pairs} == {
            (principal, owner, "unseen") for principal in (desk, "reports") for owner in ("shop", "kiosk")
        }


async def test_a_refund_of_a_payment_that_the_gateway_showed_is_found(shelf: Shelf) -> None:
    """An operator decided without the payment's number: only the gateway's records tell whose order it is of."""
    payment_id, order_id = shelf.payments[0]
    shelf.change(
        "INSERT INTO payments_seen SELECT merchant, '888', ?, status, currency, amount_minor, seen_at_ms"
        " FROM payments_seen LIMIT 1",
        order_id,
    )
    shelf.change(REFUNDED, "888", "succeeded")
    async for world in shelf.opened():
        [pair] = await world.relay.principals.grandfathered()
        assert (pair.principal, pair.owner, pair.reason) == ("kiosk", "shop", "acted")
        assert (await refund(world, shelf.books.keys["kiosk"], payment_id)).status == 200


async def test_a_refund_that_was_refused_earns_nothing(shelf: Shelf) -> None:
    """An attacker who tried before the upgrade must not be let in because of the trying."""
    shelf.change(REFUNDED, shelf.payments[0][0], "refused")
    async for world in shelf.opened():
        assert await world.relay.principals.grandfathered() == []


GIVEN_UP: Final = """
    UPDATE checkouts SET state = 'failed', guard = NULL, order_id = ?
    WHERE id = (SELECT min(id) FROM checkouts WHERE kind = 'payment' AND state = 'open')"""
SEEN: Final = """
    INSERT INTO payments_seen SELECT merchant, ?, ?, 'RECEIVED', 'LKR', 34567, 1 FROM checkouts LIMIT 1"""


async def test_who_charged_an_order_whose_page_was_given_up_still_may(shelf: Shelf) -> None:
    """The shop's customer gave up on its page, and paid at the kiosk: the page's owner owns the order from now on."""
    shelf.change(GIVEN_UP, shelf.charged_by("kiosk")[1])
    async for world in shelf.opened():
        pairs = await world.relay.principals.grandfathered()
        assert [(each.principal, each.owner, each.actions) for each in pairs] == [("kiosk", "shop", 1)]


async def test_who_refunded_what_was_paid_on_a_page_that_was_given_up_still_may(shelf: Shelf) -> None:
    """Its notification was lost, so that the payment is known as one of its order alone."""
    shelf.change(GIVEN_UP, "A-1")
    shelf.change(SEEN, "320025999999", "A-1")
    shelf.change(REFUNDED, "320025999999", "succeeded")
    async for world in shelf.opened():
        pairs = await world.relay.principals.grandfathered()
        assert {(each.principal, each.owner) for each in pairs} == {("kiosk", "shop")}


async def test_a_page_that_was_given_up_is_no_act_of_its_own(shelf: Shelf) -> None:
    """Whoever opened pages for another's orders, and nothing more, must not be let in because of that."""
    shelf.change(GIVEN_UP, shelf.charged_by("kiosk")[1])
    async for world in shelf.opened():
        pairs = await world.relay.principals.grandfathered()
        assert ("shop", "kiosk") not in {(each.principal, each.owner) for each in pairs}
