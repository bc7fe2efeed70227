"""An empty text says nothing of an address or a label, and is a mistake wherever it would decide about money."""

import json
import re

import pytest
from tests.api.members import Member, members, outcome
from tests.sources import ROOT

from payrelay.core.calls import Call
from payrelay.core.payments.idempotency import fingerprint_of

ABSENT = {
    "ChargeBody.notify_url",
    *("CaptureBody.description", "CaptureBody.deduction_details"),
    *("CheckoutBody.delivery", "CheckoutBody.platform", "CheckoutBody.payment_method"),
    *("CheckoutBody.return_to", "CheckoutBody.cancel_to"),
    *("DeliveryBody.address", "DeliveryBody.city", "DeliveryBody.country"),
    *("CustomerBody.label", "CustomerBody.method", "CustomerBody.card_no_masked", "CustomerBody.card_expiry"),
    "CustomerBody.card_holder",
    "NewEndpointBody.label",
    *("ChargeBody.custom_1", "ChargeBody.custom_2", "CheckoutBody.custom_1", "CheckoutBody.custom_2"),
}
"""Addresses and labels that may be absent. Everything else is money, whom it is of, a time, or a change."""
ALL = members()
MONEY_OR_WHOM = {
    *("ChargeBody.amount", "ChargeBody.order_id", "ChargeBody.customer_token", "ChargeBody.currency"),
    *("CaptureBody.amount", "CaptureBody.authorization_token"),
    *("RefundBody.amount", "RefundBody.payment_id", "RefundBody.authorization_token"),
    *("CheckoutBody.amount", "CheckoutBody.order_id", "CheckoutBody.startup_fee", "CheckoutBody.customer_reference"),
    *("CheckoutBody.recurrence", "CheckoutBody.duration", "CheckoutBody.recurring_start_date"),
    *(
        "ClientTokenBody.amount",
        "ClientTokenBody.amount_max",
        "ClientTokenBody.order_id",
        "ClientTokenBody.customer_id",
    ),
    *("CustomerBody.customer_token", "CustomerBody.reference"),
}


@pytest.mark.parametrize("member", [each for each in ALL if each.name in ABSENT], ids=lambda member: member.name)
def test_an_empty_address_or_label_is_as_if_it_were_not_there(member: Member) -> None:
    """Forms send every field, filled in or not; a repeat by a library that leaves them out is the same request."""
    for empty, without in zip(member.bodies('""'), member.bodies_without(), strict=True):
        call = outcome(member, empty)
        assert call == outcome(member, without)
        if isinstance(call, Call):
            bare = outcome(member, without)
            assert fingerprint_of("gateway", call) == fingerprint_of("gateway", bare)  # type: ignore[arg-type]


@pytest.mark.parametrize("member", [each for each in ALL if each.name not in ABSENT], ids=lambda member: member.name)
def test_any_other_empty_text_is_refused_by_its_field(member: Member) -> None:
    """A shop that lost the number of a payment, or an amount, must hear of it before money moves."""
    for body in member.bodies('""'):
        found = outcome(member, body)
        assert isinstance(found, dict), found
        assert member.shown in found


def test_what_decides_about_money_or_whom_is_among_the_refused() -> None:
    """Whoever marks a further member as a label meets this list."""
    assert {each.name for each in ALL if each.name not in ABSENT} >= MONEY_OR_WHOM


def test_a_delivery_of_empty_texts_is_none() -> None:
    """A customer who fetches the goods filled in nothing: a repeat without it is the same page."""
    (delivery,) = (each for each in ALL if each.name == "CheckoutBody.delivery")
    (bare,) = list(delivery.bodies_without())[:1]
    empty = json.dumps({"address": "", "city": "", "country": ""})

    assert outcome(delivery, next(delivery.bodies(empty))) == outcome(delivery, bare)
    assert outcome(delivery, next(delivery.bodies("{}"))) == outcome(delivery, bare)


def test_a_capture_needs_one_detail_that_says_something() -> None:
    """Of two fields for one text, the empty one counts as absent, and two empty ones are none."""
    (details,) = (each for each in ALL if each.name == "CaptureBody.deduction_details")
    both = json.loads(next(details.bodies('""'))) | {"description": ""}

    assert outcome(details, json.dumps(both).encode()) == {"description": "is required, or deduction_details"}
    assert getattr(outcome(details, json.dumps(both | {"description": "late"}).encode()), "description", None) == "late"


@pytest.mark.parametrize("text", [" ", "\t", "\u00a0"])
def test_a_blank_is_not_empty(text: str) -> None:
    """Somebody typed it; where to send news is not guessed."""
    (address,) = (each for each in ALL if each.name == "ChargeBody.notify_url")

    assert outcome(address, next(address.bodies(json.dumps(text)))) == {
        "notify_url": "must be an absolute http or https address of at most 255 characters"
    }


def test_the_docs_name_each_member_that_may_be_empty() -> None:
    """Whoever writes a client reads it there, and a member that is marked later is missed."""
    section = (ROOT / "docs" / "api.md").read_text().partition("## Empty members")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", section.partition("| --- |")[2].partition("\n\n")[0]))

    assert named == {name.partition(".")[2] for name in ABSENT if not name.startswith("DeliveryBody.")}
