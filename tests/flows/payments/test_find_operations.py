import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from tests.flows.world import CHARGE, CREDENTIAL, World, asked, outcome_of
from tests.gateways.still_gateway import StillGateway

from payrelay.clock import Clock
from payrelay.core.access.credential import DEFAULT_SCOPES, Scope
from payrelay.core.answers import Answer
from payrelay.core.outcomes import OutcomeKind
from payrelay.core.payments.operation import Kind, OperationFilter, State
from payrelay.core.payments.sentences import EVENT_SENTENCES, FIRST_ENTRY, STATE_SENTENCES
from payrelay.errors import Code, Refusal
from payrelay.flows.payments.charge import charge
from payrelay.flows.payments.find_operations import list_operations, show_operation, show_operation_by_key
from payrelay.flows.relay import Request
from payrelay.gateways.gateway import Gateway

ALL_SCOPES = DEFAULT_SCOPES | {Scope.OPERATIONS_READ_ALL}
FIRST, SECOND = StillGateway(Clock()), StillGateway(Clock())
SECOND.name = "second"


def asked_by(principal: str, *, gateway: Gateway = FIRST, **members: Any) -> Request:  # noqa: ANN401, of a credential
    """Gives a request of a principal."""
    credential = msgspec.structs.replace(CREDENTIAL, principal=principal, **members)
    return Request(gateway=gateway, credential=credential, request_id="req_1", idempotency_key="k-1")


OWNER, OTHER, AUDITOR = asked_by("shop"), asked_by("other"), asked_by("auditor", scopes=ALL_SCOPES)


def data_of(answer: Answer) -> Any:  # noqa: ANN401, JSON
    """Reads the data of an answer."""
    return json.loads(answer.body)["data"]


async def charge_five(world: World) -> list[str]:
    """Makes five operations, a millisecond apart; gives their ids, newest first."""
    for number in range(5):
        world.clock.passed_ms += 1
        await charge(world.relay, asked(world.relay, f"k-{number}"), world.charge_of(number))
    return [operation.id for operation in await world.operations()]


async def listed(world: World, request: Request, **fields: Any) -> list[str]:  # noqa: ANN401, of several types
    """Gives the ids on the first page."""
    answer = await list_operations(world.relay, request, OperationFilter(**fields), before=None, limit=100)
    return [operation["id"] for operation in data_of(answer)]


@pytest.mark.parametrize(("request_", "count"), [(OWNER, 1), (OTHER, 0), (AUDITOR, 1)])
async def test_a_principal_sees_its_own_and_an_auditor_sees_all(world: World, request_: Request, count: int) -> None:
    """A shop must not learn what another shop does."""
    await charge(world.relay, asked(world.relay), CHARGE)
    assert len(await listed(world, request_)) == count


async def test_a_filter_for_another_principal_shows_nothing_of_it(world: World) -> None:
    """The filter narrows what may be seen and never widens it."""
    await charge(world.relay, asked(world.relay), CHARGE)
    assert len(await listed(world, OTHER, principal="shop")) == 0


@pytest.mark.parametrize("request_", [OTHER, asked_by("other", scopes=frozenset())])
async def test_an_operation_of_another_principal_is_not_found(world: World, request_: Request) -> None:
    """Not forbidden: that it exists is already too much. Neither by its id nor by its key."""
    await charge(world.relay, asked(world.relay), CHARGE)
    with pytest.raises(Refusal, match="no such operation"):
        await show_operation(world.relay, request_, (await world.operation()).id)
    with pytest.raises(Refusal, match="no such operation") as caught:
        await show_operation_by_key(world.relay, request_, "k-1")
    assert caught.value.code is Code.NOT_FOUND


async def test_an_operation_of_another_account_is_not_found_under_this_one(world: World) -> None:
    """The path says which account is meant, and a credential may be bound to it."""
    await charge(world.relay, asked(world.relay), CHARGE)
    row = await world.operation()
    elsewhere = msgspec.structs.replace(AUDITOR, gateway=SECOND)
    assert await listed(world, elsewhere) == []
    with pytest.raises(Refusal, match="no such operation"):
        await show_operation(world.relay, elsewhere, row.id)


async def test_what_does_not_exist_is_not_found(world: World) -> None:
    """By id and by key."""
    with pytest.raises(Refusal, match="no such operation"):
        await show_operation(world.relay, OWNER, "op_nothing")
    with pytest.raises(Refusal, match="no such operation"):
        await show_operation_by_key(world.relay, AUDITOR, "nothing")


async def test_a_view_has_sentences_and_exact_numbers(world: World) -> None:
    """It can be read out to a customer; the amount keeps its decimals, the times name their zone."""
    await charge(world.relay, asked(world.relay), CHARGE)
    row = await world.operation()
    answer = await show_operation(world.relay, OWNER, row.id)
    data = data_of(answer)
    assert (data["id"], data["state"], data["explanation"]) == (row.id, "succeeded", STATE_SENTENCES[State.SUCCEEDED])
    assert b'"amount":1000.00' in answer.body
    assert (data["created_at"], data["send_by"]) == ("2023-11-14T22:13:20.000Z", "2023-11-14T22:13:30.000Z")


async def test_the_history_tells_each_step(world: World) -> None:
    """Each journal entry is shown with its evidence and its time."""
    world.account.script.append(outcome_of(OutcomeKind.UNKNOWN))
    await charge(world.relay, asked(world.relay), CHARGE)
    data = data_of(await show_operation(world.relay, OWNER, (await world.operation()).id))
    assert [(entry["state"], entry["text"]) for entry in data["history"]] == [
        ("sending", FIRST_ENTRY),
        ("unknown", EVENT_SENTENCES["unknown"]),  # type: ignore[index]
    ]
    assert (data["answer"], data["is_final"]) == (None, False)


async def test_an_app_that_was_killed_finds_its_answer_by_its_key(world: World) -> None:
    """The app gets the answer that it did not live to read."""
    answer = await charge(world.relay, asked(world.relay), CHARGE)
    data = data_of(await show_operation_by_key(world.relay, OWNER, "k-1"))
    assert data["answer"] == {"http_status": 200, "body": json.loads(answer.body)}


async def test_an_auditor_does_not_see_the_answer(world: World) -> None:
    """An answer may have a token in it; an auditor needs only the state and the history."""
    await charge(world.relay, asked(world.relay), CHARGE)
    data = data_of(await show_operation_by_key(world.relay, AUDITOR, "k-1"))
    assert (data["answer"], data["state"]) == (None, "succeeded")


async def test_no_token_is_shown_anywhere(world: World) -> None:
    """A view shows neither the customer's token nor an authorization token."""
    world.account.script.append(outcome_of(OutcomeKind.SUCCEEDED, authorization_token="hold-token"))
    await charge(world.relay, asked(world.relay), CHARGE)
    row = await world.operation()
    shown = (await show_operation(world.relay, OWNER, row.id)).body
    assert not [secret for secret in (b"cust-token", b"hold-token") if secret in shown]


async def test_pages_join_without_gap_or_overlap(world: World) -> None:
    """The link of each page leads to the next; the last one has none."""
    ids = await charge_five(world)
    seen: list[str] = []
    before = None
    for _ in range(3):
        answer = await list_operations(world.relay, OWNER, OperationFilter(), before=before, limit=2)
        seen += [operation["id"] for operation in data_of(answer)]
        link = dict(answer.headers).get("Link")
        before = parse_qs(urlsplit(link[1 : link.index(">")]).query)["cursor"][0] if link else None
    assert (seen, before) == (ids, None)


async def test_the_link_keeps_the_filter_and_names_no_principal(world: World) -> None:
    """The next page is of the same list; who asks is known by the credential."""
    await charge_five(world)
    wanted = OperationFilter(state=State.SUCCEEDED, principal="shop")
    answer = await list_operations(world.relay, OWNER, wanted, before=None, limit=2)
    last = data_of(answer)[-1]["id"]
    link = f'</gateway/api/operations?state=succeeded&cursor={last}&limit=2>; rel="next"'
    assert dict(answer.headers)["Link"] == link


async def test_a_full_last_page_has_no_link(world: World) -> None:
    """It would lead to an empty one."""
    await charge_five(world)
    answer = await list_operations(world.relay, OWNER, OperationFilter(), before=None, limit=5)
    assert (len(data_of(answer)), answer.headers) == (5, ())


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"order_id": "A-1"}, 1),
        ({"state": State.SUCCEEDED}, 5),
        ({"state": State.UNKNOWN}, 0),
        ({"kind": Kind.CHARGE}, 5),
    ],
)
async def test_a_list_can_be_narrowed(world: World, fields: dict[str, Any], count: int) -> None:
    """Support searches for an order, an operator for what is open."""
    await charge_five(world)
    assert len(await listed(world, OWNER, **fields)) == count
