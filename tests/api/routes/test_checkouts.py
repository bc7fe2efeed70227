import json
from datetime import date
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.api.openapi.document import describe_api
from payrelay.api.openapi.examples import REQUESTS
from payrelay.api.requests.body import parse_body
from payrelay.api.routes.checkouts import MEMBERS_OF_KINDS, CheckoutBody
from payrelay.api.routes.table import ROUTES
from payrelay.core.calls import Item
from payrelay.core.checkouts.hosted_payment import CheckoutKind, Plan, PostalAddress
from payrelay.errors import Code, Refusal

DOCUMENT: dict[str, Any] = json.loads(describe_api(ROUTES, {"gateway": "sandbox"}))
EXAMPLES: dict[str, dict[str, Any]] = {name: shown["value"] for name, shown in REQUESTS["openCheckout"].items()}
PAYMENT, PLAN = EXAMPLES["payment"], EXAMPLES["recurring"]


def parsed(body: dict[str, Any]) -> CheckoutBody:
    """Reads a body as the API does."""
    return parse_body(json.dumps(body).encode(), CheckoutBody)


def wrong(body: dict[str, Any]) -> list[tuple[str, str]]:
    """What is wrong with it."""
    with pytest.raises(Refusal) as refused:
        parsed(body)
    assert refused.value.code is Code.INVALID_REQUEST
    return [(field.path, field.msg) for field in refused.value.fields]


def changed(body: dict[str, Any], **members: object) -> dict[str, Any]:
    """The body with members that are added or, where None, left out."""
    return {name: value for name, value in {**body, **members}.items() if value is not None}


def test_a_payment_has_its_items_and_its_buyer() -> None:
    """Nothing of it is lost on the way to the form."""
    new = parsed(changed(PAYMENT, custom_1="a", platform="app", payment_method="VISA", customer_reference="u")).call()
    asked = new.payment

    assert (asked.kind, asked.order_id, asked.amount_minor) == (CheckoutKind.PAYMENT, "Order12350", 100_000)
    assert asked.person.home == PostalAddress(address="No. 1, Galle Road", city="Colombo", country="Sri Lanka")
    assert asked.delivery == asked.person.home
    assert asked.item_list == (Item(name="Door bell", number="b-1", quantity=1, unit_amount_minor=100_000),)
    assert (asked.custom_1, asked.custom_2, asked.platform, asked.payment_method) == ("a", None, "app", "VISA")
    assert (new.expires_in_s, new.customer_reference, new.return_to) == (1_800, "u", None)


def test_a_plan_has_its_recurrence_and_duration() -> None:
    """With everything that only live accounts know."""
    body = changed(
        PLAN,
        auto_cancel=False,
        max_retries=3,
        is_recovery_due=True,
        recurring_start_date="2026-12-24",
        startup_fee=-100.5,
        expires_in_s=60,
        return_to="myshop://paid",
        cancel_to="myshop://basket",
    )
    new = parsed(body).call()

    assert new.payment.plan == Plan(
        recurrence="1 Month",
        duration="1 Year",
        startup_fee_minor=-10_050,
        auto_cancel=False,
        max_retries=3,
        is_recovery_due=True,
        starts_on=date(2026, 12, 24),
    )
    assert (new.expires_in_s, new.return_to, new.cancel_to) == (60, "myshop://paid", "myshop://basket")


def test_an_approval_needs_no_amount() -> None:
    """It takes nothing then."""
    assert parsed(EXAMPLES["preapproval"]).call().payment.amount_minor is None
    assert parsed(changed(EXAMPLES["preapproval"], amount=5)).call().payment.amount_minor == 500


@pytest.mark.parametrize("kind", MEMBERS_OF_KINDS)
def test_what_a_kind_needs_and_what_it_does_not_know_is_named(kind: str) -> None:
    """`recurrence` in a payment is a mistake that nobody would notice before the second month."""
    everything = {
        "delivery": {},
        "itemList": [],
        "payment_method": "VISA",
        "recurrence": "1 Month",
        "duration": "1 Year",
        "startup_fee": 1,
        "auto_cancel": True,
        "max_retries": 1,
        "recurring_start_date": "2026-12-24",
        "is_recovery_due": True,
    }
    of_kind = MEMBERS_OF_KINDS[kind]
    body = changed(PAYMENT, type=kind, amount=None, delivery=None, itemList=None)

    assert [path for path, _ in wrong({**body, **everything, "unknown": 1})] == [
        "unknown",
        *(name for name in of_kind.required if name not in everything),
        *of_kind.forbidden,
    ]
    assert all(msg == f"does not belong to a {kind}" for path, msg in wrong({**body, **everything}) if path != "amount")


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"type": "gift"}, ["type"]),
        ({"type": ["payment"]}, ["type"]),
        ({"type": None}, ["type"]),
        ({"currency": "lkr"}, ["currency"]),
        ({"amount": 0}, ["amount"]),
        ({"amount": "5"}, ["amount"]),
        ({"amount": 1.005}, ["amount"]),
        ({"customer": "Saman"}, ["customer"]),
        ({"customer": {**PAYMENT["customer"], "email": "x", "phone": "y"}}, ["customer.email", "customer.phone"]),
        ({"customer": {**PAYMENT["customer"], "first_name": ""}}, ["customer.first_name"]),
        ({"delivery": {"city": 3, "zip": "1"}}, ["delivery.city", "delivery.zip"]),
        ({"itemList": [{"name": "x"}]}, ["itemList[0].number", "itemList[0].quantity", "itemList[0].unit_amount"]),
        ({"itemList": [PAYMENT["itemList"][0]] * 101}, ["itemList"]),
        ({"payment_method": "CASH"}, ["payment_method"]),
        ({"order_id": "a\nb"}, ["order_id"]),
        ({"items": "😀"}, ["items"]),
        ({"expires_in_s": 0}, ["expires_in_s"]),
        ({"return_to": "paid"}, ["return_to"]),
        ({"card_no": "4916217501611292"}, ["card_no"]),
    ],
)
def test_every_field_that_is_wrong_is_named(members: dict[str, object], expected: list[str]) -> None:
    """Here, and not on an error page in front of the customer."""
    assert [path for path, _ in wrong(changed(PAYMENT, **members))] == expected


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"duration": "3 Week"}, [("duration", "must not be shorter than recurrence")]),
        ({"recurrence": "2 Year"}, [("duration", "must not be shorter than recurrence")]),
        ({"startup_fee": -500}, [("startup_fee", "must leave something to be paid first")]),
        ({"auto_cancel": "true"}, [("auto_cancel", "must be true or false")]),
        ({"max_retries": 1.5}, [("max_retries", "must be a whole number from 0 to 100")]),
    ],
)
def test_a_plan_must_make_sense(members: dict[str, object], expected: list[tuple[str, str]]) -> None:
    """The gateway wants the two to fit, and takes no first payment of nothing."""
    assert wrong(changed(PLAN, **members)) == expected


@pytest.mark.parametrize(
    ("recurrence", "duration"),
    [
        ("1 Month", "1 Month"),
        ("4 Week", "1 Month"),
        ("1 Month", "Forever"),
        ("12 Month", "1 Year"),
        ("52 Week", "1 Year"),
    ],
)
def test_a_plan_may_be_as_long_as_one_period(recurrence: str, duration: str) -> None:
    """A month has 28 days sometimes."""
    assert parsed(changed(PLAN, recurrence=recurrence, duration=duration)).call().payment.plan is not None


def test_nothing_of_a_person_is_printed() -> None:
    """A traceback goes into the log."""
    assert "Saman" not in repr(parsed(PAYMENT))
    assert "Saman" not in repr(parsed(PAYMENT).call())


ODD: st.SearchStrategy[object] = st.sampled_from(
    ["", "x" * 256, "LKR", "payment", "recurring", "preapproval", "1 Month", "Forever", "2026-12-24", "myshop://x",
     "a@b.lk", 0, -1, 1, 60, 10**6, 0.5, True, None, [], {}, PAYMENT["customer"], PAYMENT["itemList"]],
)  # fmt: skip
SCHEMA = DOCUMENT["paths"]["/gateway/api/checkouts"]["post"]["requestBody"]["content"]["application/json"]["schema"]
VALIDATOR = jsonschema_rs.validator_for({**SCHEMA, "components": DOCUMENT["components"]})


@given(data=st.data())
def test_schema_and_check_agree(data: st.DataObject) -> None:
    """A body that the description allows is accepted, and one that it forbids is refused.

    Left out is what JSON Schema can't say: how one value bears on another.
    """
    body = dict(data.draw(st.sampled_from(list(EXAMPLES.values()))))
    names = [*CheckoutBody.__struct_fields__, "unknown"]
    body.update(data.draw(st.dictionaries(st.sampled_from(names), ODD, max_size=2)))
    for name in data.draw(st.sets(st.sampled_from(names), max_size=2)):
        body.pop(name, None)
    try:
        parsed(body)
        is_accepted = True
    except Refusal as refusal:
        is_accepted = all("shorter" in field.msg or "leave something" in field.msg for field in refusal.fields)

    assert bool(VALIDATOR.is_valid(body)) == is_accepted, body
