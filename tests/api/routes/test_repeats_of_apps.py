"""Repeats of apps: they reach the flow, which gives the earlier answer, whoever owns by now what they name."""

import json
from typing import Any, cast

import msgspec
import pytest
from tests.flows.world import CREDENTIAL, HandClock
from tests.samples import OPERATION

from payrelay.api.requests.route import ParsedRequest, Policy
from payrelay.api.routes.policies import narrowed, own_cancellation, own_charge
from payrelay.core.access.allowance import Allowance
from payrelay.core.access.bounds import key_of_bound
from payrelay.core.access.credential import Bound
from payrelay.core.calls import CancelSubscription
from payrelay.core.customers.customer import Approval
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import JournalEntry, Kind, Operation, claim_of_key
from payrelay.core.secret import Secret
from payrelay.errors import Code, Refusal
from payrelay.flows.customers.approve_customer import approve
from payrelay.flows.relay import Relay, Request

ALLOWANCE = Allowance(amount_minor=150, currency="LKR")
PERSON = Bound(reference="user-1", order_id="A-1", allowance=ALLOWANCE, keys_of="person/1")
CHARGE: dict[str, Any] = {"type": "PAYMENT", "order_id": "A-1", "items": "Tea", "currency": "LKR", "amount": 1}


async def new_card(relay: Relay, token: str) -> str:
    """Has the person approve a card, and gives the customer that it makes."""
    approval = Approval(
        account="gateway", merchant=OPERATION.merchant, principal="shop", reference="user-1", token=Secret(token),
        method=None, card_no_masked=None, card_expiry=None, card_holder=None, order_id=None,
    )  # fmt: skip
    return (await approve(relay, approval)).id


async def made_before(relay: Relay, bound: Bound, **members: object) -> Operation:
    """Stores an operation that the app made with the key k."""
    key = key_of_bound(bound, "k")
    own = {"idempotency_key": key, "claim": claim_of_key(key)}
    operation = msgspec.structs.replace(OPERATION, **(own | members))
    entry = JournalEntry(version=1, at_ms=1, event=None, state=operation.state, evidence=Evidence())
    await relay.journal.accept(operation, entry, CancelSubscription(subscription_id=1), conflicts_with=None, now_ms=1)
    return operation


async def reaches(relay: Relay, policy: Policy, bound: Bound, *, key: str = "k", **members: Any) -> ParsedRequest:  # noqa: ANN401, of a request
    """Gives a request of the app's as it reaches the flow. Raises Refusal."""
    credential = msgspec.structs.replace(CREDENTIAL, bound=bound)
    request = Request(gateway=relay.account("gateway"), credential=credential, request_id="req_1", idempotency_key=key)
    return await narrowed(policy, relay, ParsedRequest(request=request, **members))


@pytest.mark.parametrize("card", ["meant", "named"])
async def test_a_charge_with_an_earlier_card_is_the_same_request_after_another_card_came(
    relay: Relay, card: str
) -> None:
    """The person charged, heard nothing and approved another card. The repeat must not look like another request."""
    first = await new_card(relay, "t-1")
    await made_before(relay, PERSON, customer_id=first)
    cast("HandClock", relay.clock).passed_ms += 1_000
    second = await new_card(relay, "t-2")
    body = json.dumps(CHARGE | {"customer_token": first} if card == "named" else CHARGE).encode()
    repeat = await reaches(relay, own_charge, PERSON, body=body)
    other = await reaches(relay, own_charge, PERSON, key="k-2", body=json.dumps(CHARGE).encode())

    assert json.loads(repeat.body)["customer_token"] == first
    assert json.loads(other.body)["customer_token"] == second
    with pytest.raises(Refusal, match="its own customer only"):
        await reaches(
            relay, own_charge, PERSON, key="k-2", body=json.dumps(CHARGE | {"customer_token": first}).encode()
        )


async def test_the_repeat_of_a_cancellation_is_answered_whoever_began_the_subscription(relay: Relay) -> None:
    """Another customer may have opened a page for the order since. What the app has ended stays ended, and is told."""
    bound = Bound(order_id="Plan-1")
    of_it = {"kind": Kind.CANCEL, "subject": "subscription/1", "guard": "subscription/1", "subscription_id": "1"}
    await made_before(relay, bound, order_id=None, **of_it)
    repeat = await reaches(relay, own_cancellation, bound, id="1")

    assert repeat.id == "1"
    for whose, key, subscription_id in ((bound, "k", "2"), (bound, "k-2", "1"), (Bound(order_id="Plan-2"), "k", "1")):
        with pytest.raises(Refusal) as refused:
            await reaches(relay, own_cancellation, whose, key=key, id=subscription_id)
        assert refused.value.code is Code.NOT_FOUND
