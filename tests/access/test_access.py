"""Every route by every kind of credential by own and foreign ids of every noun: each cell of the table is asked."""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from tests.access.bearers import OF_KEYS, OF_PHONES, REFUSED, Bearer
from tests.access.belongings import Ids, Noun, Whose, belongings, fresh
from tests.access.bench import ACCOUNT, Bench, Reply, opened_bench
from tests.access.table import CODES, PUBLIC_ROWS, ROWS, PublicRow, Row

from payrelay.api.public.router import PUBLIC_ROUTES
from payrelay.api.requests.route import Route
from payrelay.api.routes.table import ROUTES
from payrelay_simulator import DEFAULT_MERCHANT

BY_NAME: Final = {route.name: route for route in ROUTES}
SEEN_BY_KEYS: Final = (Whose.OWN, Whose.FOREIGN, Whose.UNKNOWN, Whose.NOWHERE, Whose.GROUP)
OTHERS: Final = (Whose.SIBLING, Whose.FOREIGN, Whose.UNKNOWN, Whose.NOWHERE)
NAMING: Final = frozenset(
    {
        "order_id",
        "payment_id",
        "authorization_token",
        "subscription_id",
        "customer_id",
        "customer_token",
        "credential_id",
        "reference",
        "subject",
        "ids",
    }
)
"""The parameters and members with which a request names what belongs to somebody, besides those in its path."""
UNNAMED: Final = {
    # What a new thing is called or filtered by, besides the rows of it.
    ("openCheckout", "customer_id"),
    ("importCustomer", "reference"),
    ("changeCustomer", "reference"),
}


class Cell(NamedTuple):
    """One request, and what is expected of it."""

    row: Row
    bearer: str
    whose: Whose
    expected: str


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """A service of the test's own."""
    async with opened_bench(tmp_path) as bench:
        yield bench


def cells_of(row: Row) -> Iterator[Cell]:
    """All cells of a row; what a phone may not have is asked for in every way that it may be another's."""
    of_keys = dict(zip(SEEN_BY_KEYS, row.key.split(), strict=True))
    for whose, cell in of_keys.items():
        yield Cell(row, "key", whose, cell)
        of_group = of_keys[Whose.GROUP] if whose is Whose.FOREIGN else cell
        yield Cell(row, "key of any principal", whose, of_group)
    for bearer, group in zip(OF_PHONES, row.phones.split("|"), strict=True):
        own, other = group.split()
        yield Cell(row, bearer, Whose.OWN, own)
        for whose in OTHERS:
            yield Cell(row, bearer, whose, other)
    for bearer, (_, status) in REFUSED.items():
        yield Cell(row, bearer, Whose.OWN, str(status))


class Things:
    """What the cells of a row name: made once where an answer changes nothing, and anew where one does."""

    def __init__(self, bench: Bench, row: Row) -> None:
        self._bench = bench
        self._row = row
        self._shared: dict[Whose, Ids] = {}

    async def make(self) -> None:
        """Makes what is shared, before any cell is asked: what the gateway showed once it shows again for 2 seconds."""
        for whose in Whose:
            await self.of(whose, is_changed=False)

    async def of(self, whose: Whose, *, is_changed: bool) -> Ids:
        """Gives a thing, to be changed or only looked at."""
        if is_changed:
            return await belongings(self._bench, self._row.noun, whose)
        if whose not in self._shared:
            self._shared[whose] = await belongings(self._bench, self._row.noun, whose)
        return self._shared[whose]


def filled(template: Any, ids: Ids) -> Any:  # noqa: ANN401, of JSON
    """The template with ids in their places."""
    if isinstance(template, str):
        return template.format(**ids)
    if isinstance(template, dict):
        return {name: filled(member, ids) for name, member in template.items()}
    return [filled(each, ids) for each in template] if isinstance(template, list) else template


async def answer_to(bench: Bench, things: Things, cell: Cell) -> tuple[Reply, Ids]:
    """Asks what the cell says, and gives the answer and what was named."""
    row, route = cell.row, BY_NAME[cell.row.route]
    is_changed = route.method != "GET" and not cell.expected.startswith("4")
    own = await things.of(Whose.OWN, is_changed=is_changed)
    target = own if cell.whose is Whose.OWN else await things.of(cell.whose, is_changed=is_changed)
    credential = await bearer_of(cell)(bench, route, own)
    ids = target | {f"own_{name}": id_ for name, id_ in own.items()}
    key = fresh("try") if route.is_effect or route.takes_key else None
    return await bench.ask(credential, route.method, filled(row.path, ids), filled(row.body, ids), key=key), ids


def bearer_of(cell: Cell) -> Bearer:
    """The maker of a cell's credential."""
    refused = {name: bearer for name, (bearer, _) in REFUSED.items()}
    return {**OF_KEYS, **OF_PHONES, **refused}[cell.bearer]


def found(reply: Reply, shown: str | None) -> str:
    """What an answer is, as a cell says it."""
    if reply.status != 200:
        return next(
            (cell for cell, code in CODES.items() if code == reply.code and cell.startswith(str(reply.status))),
            str(reply.status),
        )
    if shown is None:
        return "200"
    return "+" if re.search(shown, reply.body.decode()) else "-"


@pytest.mark.deep
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.route}-{row.path}")
async def test_each_cell_answers_as_the_table_says(bench: Bench, row: Row) -> None:
    """Nobody sees or does anything with another's things, and what is refused is refused with the code that it has."""
    things, wrong = Things(bench, row), []
    await things.make()
    for cell in cells_of(row):
        if cell.expected == ".":
            continue
        reply, ids = await answer_to(bench, things, cell)
        seen = found(reply, None if row.shows is None else row.shows.format(**ids))
        if seen != cell.expected:
            wrong.append(f"{cell.bearer}, {cell.whose}: {seen} and not {cell.expected}, {reply}")

    assert wrong == []


async def posted(bench: Bench, case: str) -> Reply:
    """Posts a notification of a payment that was made, in the way that a case says."""
    own = await belongings(bench, Noun.CHECKOUT, Whose.OWN)
    fields = {
        "merchant_id": DEFAULT_MERCHANT.merchant_id,
        "order_id": own["order"],
        "payment_id": own["payment"],
        "payhere_amount": "345.67",
        "payhere_currency": "LKR",
        "status_code": "2",
    }
    signed = bench.world.notifications.signed(fields)
    changes = {
        "genuine": {},
        "forged": {"md5sig": "0" * 32},
        "edited": {"payhere_amount": "345.66"},
        "unsigned": {"md5sig": ""},
        "of another merchant": {"merchant_id": "1200002"},
    }
    return await bench.post_form(f"/{ACCOUNT}/notifications", signed | changes[case])


@pytest.mark.parametrize("row", PUBLIC_ROWS, ids=lambda row: f"{row.route} {row.case}")
async def test_pages_without_a_credential_ask_for_their_own_proof(bench: Bench, row: PublicRow) -> None:
    """A secret in an address, or the gateway's signature: who has it for one thing has it for no other one."""
    if row.route.startswith("POST"):
        reply = await posted(bench, row.path)
    else:
        own, other = [await belongings(bench, Noun.CHECKOUT, Whose.OWN) for _ in range(2)]
        nothing = await belongings(bench, Noun.CHECKOUT, Whose.NOWHERE)
        ids = own | {"other_secret": other["secret"], "no_secret": "-", "no_checkout": nothing["checkout"]}
        reply = await bench.get_page(f"/{ACCOUNT}/{row.path.format(**ids)}")

    assert reply.status == row.status, reply


def test_every_route_has_a_row() -> None:
    """Whoever adds a route says whose things it may touch."""
    assert {row.route for row in ROWS} == set(BY_NAME)
    assert {row.route for row in PUBLIC_ROWS} == {f"{route.method} {route.path}" for route in PUBLIC_ROUTES}


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_every_way_to_name_a_thing_has_a_row(route: Route) -> None:
    """A new parameter or member that names somebody's thing is a new way to another's thing."""
    own_rows = [row for row in ROWS if row.route == route.name]
    members = set() if route.body is None else set(route.body.__struct_fields__)
    parameters = {parameter.name for parameter in route.query}
    for name in (members | parameters) & NAMING:
        named = any(f"{name}=" in row.path or name in (row.body or {}) for row in own_rows)
        assert named or (route.name, name) in UNNAMED, name
    if route.segment is not None:
        assert any("{" in row.path.partition("?")[0] for row in own_rows)


def test_every_noun_is_named() -> None:
    """A kind of thing that no row names would be protected by nothing here."""
    assert {row.noun for row in ROWS} == set(Noun)
