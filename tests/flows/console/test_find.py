"""Finding, on books with everything: by each thing that somebody may name, and by filters."""

import pytest
from tests.flows.console.books import PAYMENT, PLAN, everything, id_at, operation
from tests.flows.console.desk import MINUTE_MS, START_MS, Desk

from payrelay.console.flows.cases.find import PAGE, find
from payrelay.console.rules.finding import Found, Search, SearchError
from payrelay.core.operators.roles import Role
from payrelay.core.payments.operation import Kind, State
from payrelay.flows.operators.parts import Actor, acting

CHECKOUT = id_at("chk", START_MS)
CUSTOMER = id_at("cus", START_MS)


async def hired(desk: Desk, role: Role) -> Actor:
    """Gives an operator of a role as the one who acts."""
    email = f"{role}@shop.example"
    return acting(await desk.parts.operators.by_email(email) or (await desk.hired(email, role)).operator)


async def looked_up(desk: Desk, role: Role = Role.SUPPORT, **wanted: object) -> Found:
    """Finds what is wanted."""
    return await find(desk.cases, await hired(desk, role), Search(**wanted))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "nouns"),
    [
        ("A-1", {"operation", "checkout", "notification", "subscription"}),
        (PAYMENT, {"operation", "checkout", "notification"}),
        (PLAN, {"checkout", "subscription"}),
        ("320025000003", {"subscription"}),
        (CHECKOUT, {"checkout"}),
        ("req_page", {"checkout"}),
        ("req_2", {"operation"}),
        ("key plain", {"operation"}),
        ("page plain", {"checkout"}),
        ("person plain", {"customer", "operation", "checkout"}),
        ("1292", {"customer", "operation"}),
        (CUSTOMER, {"customer", "operation"}),
        (id_at("op", START_MS + 5_000, 1), {"operation"}),
        (id_at("ntf", START_MS), {"notification"}),
        ("A-", set()),
        ("a-1", set()),
        ("%", set()),
    ],
)
async def test_whatever_is_named_leads_to_it(desk: Desk, text: str, nouns: set[str]) -> None:
    """Support types what the customer or the client has in hand, and never has to say what kind of id it is."""
    await everything(desk)
    found = await looked_up(desk, text=text)

    assert {hit.noun for hit in found.hits} == nouns
    assert {hit.order_id for hit in found.hits} <= {"A-1", None}


async def test_a_persons_operation_is_found_by_the_name_and_the_apps_key(desk: Desk) -> None:
    """It is stored under a digest, which nobody at the desk can make; a shop has the name and the key in its books."""
    key = desk.cases.relay.access.person_names.key_as_stored("reference/anna%40example.org/pay")
    await operation(desk, 1, at_ms=START_MS, idempotency_key=key, claim=f"key/{key}")

    assert [hit.found_by for hit in (await looked_up(desk, text="reference/anna%40example.org/pay")).hits] == [
        "idempotency key"
    ]


@pytest.mark.parametrize("text", ["person plain", "1292", CUSTOMER, "key plain", "page plain"])
async def test_a_viewer_finds_nothing_by_what_names_a_customer(desk: Desk, text: str) -> None:
    """The page says that it was not looked for, so that nobody takes the silence for an answer."""
    await everything(desk)
    found = await looked_up(desk, Role.VIEWER, text=text)

    assert found.hits == ()
    assert any("Your role finds nothing by" in note for note in found.notes)


async def test_the_cards_that_were_not_compared_are_named(desk: Desk) -> None:
    """Cards lie sealed: how many were opened is said, and that others aren't searched."""
    await everything(desk)
    found = await looked_up(desk, text="9999")

    assert found.hits == ()
    assert any("the cards of all 1 stored customers were compared" in note for note in found.notes)
    assert any("aren't searched" in note for note in found.notes)


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ({}, {1, 2, 3}),
        ({"kind": Kind.REFUND}, {3}),
        ({"state": State.SENDING}, {1, 2, 3}),
        ({"state": State.SUCCEEDED}, set()),
        ({"account": "gateway"}, {1, 2}),
        ({"account": "nobody"}, set()),
        ({"amount_minor": 700}, {2}),
        ({"amount_minor": 700, "account": "gateway", "kind": Kind.CHARGE}, {2}),
        ({"since_ms": START_MS + MINUTE_MS}, {2, 3}),
        ({"until_ms": START_MS + MINUTE_MS}, {1}),
        ({"since_ms": START_MS + MINUTE_MS, "until_ms": START_MS + 2 * MINUTE_MS}, {2}),
        ({"text": "A-1", "amount_minor": 700}, {2}),
        ({"text": "A-1", "kind": Kind.REFUND}, {3}),
    ],
)
async def test_each_filter_lets_pass_what_fits(desk: Desk, filters: dict[str, object], numbers: set[int]) -> None:
    """By itself, together with others, and on what an id has found."""
    await operation(desk, 1, at_ms=START_MS)
    await operation(desk, 2, at_ms=START_MS + MINUTE_MS, amount_minor=700)
    await operation(desk, 3, at_ms=START_MS + 2 * MINUTE_MS, kind=Kind.REFUND, account="second")
    found = await find(desk.cases, await hired(desk, Role.SUPPORT), Search(**filters))  # type: ignore[arg-type]

    assert {int(hit.id[-1], 16) for hit in found.hits} == numbers
    assert [hit.at_ms for hit in found.hits] == sorted((hit.at_ms for hit in found.hits), reverse=True)


async def test_a_list_goes_on_where_a_page_ended(desk: Desk) -> None:
    """Each row is shown once, however many pages there are."""
    for number in range(PAGE + 3):
        await operation(desk, number, at_ms=START_MS + number)
    first = await looked_up(desk)
    actor = await hired(desk, Role.VIEWER)
    second = await find(desk.cases, actor, Search(before=first.older))

    assert (len(first.hits), len(second.hits), second.older) == (PAGE, 3, None)
    assert len({hit.id for hit in (*first.hits, *second.hits)}) == PAGE + 3


async def test_checkouts_are_listed_by_their_own_states(desk: Desk) -> None:
    """Some words are states of both, so the filter says of which."""
    await everything(desk)
    found = await looked_up(desk, state="checkout-completed")

    assert [(hit.id, hit.state) for hit in found.hits] == [(CHECKOUT, "completed")]
    assert (await looked_up(desk, Role.ADMIN, kind="checkout", state="checkout-open")).hits == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": Kind.REFUND, "state": "checkout-open"},
        {"kind": "checkout", "state": State.UNKNOWN},
        {"since_ms": 2, "until_ms": 1},
    ],
)
def test_what_can_not_fit_is_said(wrong: dict[str, object]) -> None:
    """An empty page would look like an answer about money."""
    with pytest.raises(SearchError):
        Search(**wrong)  # type: ignore[arg-type]
