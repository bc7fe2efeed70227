"""Tokens in bodies: one spelling each, because whose an authorization is and whether it was captured hangs on it."""

import pytest
from tests.api.bodies import CAPTURE, CHARGE, LEFT_OUT, REFUND, written, wrong

from payrelay.api.requests.body import Body, parse_body
from payrelay.api.requests.payment_bodies import CaptureBody, ChargeBody, RefundBody
from payrelay.api.routes.customers import CustomerBody

UUID = "0e34f305-7b7d-4b62-a57c-784beaa169f4"
OTHERS = [
    f"{UUID} ",
    f" {UUID}",
    f"{UUID}\t",
    f"{UUID}\n",
    f"{UUID}\u00a0",
    f"{UUID[:8]} {UUID[8:]}",
    "ශ",
    "a\x7f",
    "a\x1b",
]
AS_THE_GATEWAY = "must be written as the gateway gave the token, without spaces"
HOLD = {"payment_id": LEFT_OUT, "description": "late"}


@pytest.mark.parametrize(
    "token",
    [
        *OTHERS,
        UUID.replace("-", ""),
        UUID.replace("-", "", 1),
        UUID[1:],
        f"0{UUID}",
        f"+{UUID[1:]}",
        f"{{{UUID}}}",
        f"urn:uuid:{UUID}",
    ],
    ids=ascii,
)
def test_an_authorization_is_named_as_the_gateway_named_it(token: str) -> None:
    """A gateway that reads another spelling as the same token would capture what is captured, or another's."""
    expected = {"authorization_token": AS_THE_GATEWAY}

    assert wrong(written(CAPTURE, authorization_token=token), CaptureBody) == expected
    assert wrong(written(REFUND | HOLD, authorization_token=token), RefundBody) == expected


@pytest.mark.parametrize("token", [UUID, UUID.upper(), "chk_019c8b2f5a7e4d10b6f3a92c7e08d154", "74d7", "a.b~c+d/e=="])
def test_a_token_of_any_usual_form_is_passed_on(token: str) -> None:
    """Only the form of today's tokens is documented; whoever's gateway has others is not kept from a capture."""
    assert parse_body(written(CAPTURE, authorization_token=token), CaptureBody).call().authorization_token == token


@pytest.mark.parametrize(("kind", "body"), [(ChargeBody, CHARGE), (CustomerBody, {})])
@pytest.mark.parametrize("token", OTHERS, ids=ascii)
def test_a_customers_token_has_no_blanks(kind: type[Body], body: dict[str, object], token: str) -> None:
    """With a blank behind it, a handle would be sent to the gateway, and a token be stored as another card."""
    words = "must be visible ASCII characters without spaces"

    assert wrong(written(body, customer_token=token), kind) == {"customer_token": words}


@pytest.mark.parametrize(
    ("token", "words"),
    [(7, "must be a string"), ("", "must not be empty"), ("x" * 256, "must have at most 255 characters")],
)
def test_what_is_no_token_at_all_is_said(token: object, words: str) -> None:
    """A client that forgot it, or sends it as a number, finds its mistake by the words."""
    assert wrong(written(CAPTURE, authorization_token=token), CaptureBody) == {"authorization_token": words}
