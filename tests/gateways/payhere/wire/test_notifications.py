"""Notifications are read strictly where it counts and leniently elsewhere; the signature is that of the raw strings."""

import string
from urllib.parse import quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.notifications.notification import (
    Authenticity,
    MessageType,
    NotificationKind,
    PlanStatus,
    ReportedStatus,
)
from payrelay.core.secret import Secret
from payrelay.gateways.payhere.wire.checkout_forms import Merchant
from payrelay.gateways.payhere.wire.notifications import (
    BODY_BYTES_MAX,
    FIELDS_MAX,
    SIGNED,
    Form,
    UnreadableError,
    authenticity_of,
    content_of,
    read_form,
    signature_of,
)

MERCHANT_ID = "1211149"
SECRET = Secret("MzExMTIyMjMzMw==")
MERCHANT = Merchant(base_url="https://gateway.test", merchant_id=MERCHANT_ID, merchant_secret=SECRET)
SIGNATURES = {
    "2": "340FD7FB0227389003098695F91ADB87",
    "0": "AB4FB1B4CC0CE874FB45BA3525DD677B",
    "-1": "7C2A2EFEC0E4D4B04342D15F3779ECD1",
    "-2": "3FDC8692814B35AA989C9496E860F290",
    "-3": "88C4D80DCAB1A61E8D952BEAEFE8E2ED",
    "3": "A72D1C23477DE3870E665C61DFF723C6",
}
SAMPLE = (
    b"merchant_id=1211149&order_id=Order12345&payment_id=320025000001&captured_amount=1000.00&payhere_amount=1000.00"
    b"&payhere_currency=LKR&status_code=2&md5sig=340FD7FB0227389003098695F91ADB87&custom_1=&custom_2="
    b"&status_message=Successfully+received+the+VISA+payment&method=VISA&card_holder_name=S+Perera"
    b"&card_no=************1292&card_expiry=0129&recurring=0"
)
FIELDS = {
    "merchant_id": MERCHANT_ID,
    "order_id": "Order12345",
    "payhere_amount": "1000.00",
    "payhere_currency": "LKR",
    "status_code": "2",
    "md5sig": SIGNATURES["2"],
}


def named(merchant_id: str, secret: str = SECRET.reveal()) -> Merchant:
    """Gives a merchant of that id."""
    return Merchant(base_url="https://gateway.test", merchant_id=merchant_id, merchant_secret=Secret(secret))


def body_of(**fields: str) -> bytes:
    """Writes a form."""
    return urlencode(FIELDS | fields).encode()


@pytest.mark.parametrize("status", SIGNATURES)
def test_the_vectors_are_genuine(status: str) -> None:
    """These were computed apart from this code; one that fails means that no real notification would pass."""
    form = read_form(body_of(status_code=status, md5sig=SIGNATURES[status]))

    assert authenticity_of(form, MERCHANT) is Authenticity.GENUINE


def test_the_published_vector_is_genuine() -> None:
    """It agrees with what another implementation of the gateway's rules publishes."""
    form = read_form(
        b"merchant_id=2xxxxx&order_id=12345&payhere_amount=1000.00&payhere_currency=LKR&status_code=2"
        b"&md5sig=ABA32E234F1A1E99ECC80F02BFF94AB4"
    )

    assert authenticity_of(form, named("2xxxxx", "x" * 32)) is Authenticity.GENUINE


def test_the_sample_is_read() -> None:
    """A whole body as the gateway sends it, with fields that it doesn't document."""
    content = content_of(read_form(SAMPLE))

    assert authenticity_of(read_form(SAMPLE), MERCHANT) is Authenticity.GENUINE
    assert (content.kind, content.reported) == (NotificationKind.PAYMENT, ReportedStatus.SUCCEEDED)
    assert (content.order_id, content.payment_id) == ("Order12345", "320025000001")
    assert (content.amount_minor, content.currency) == (100_000, "LKR")
    assert (content.method, content.card_no_masked, content.card_expiry) == ("VISA", "************1292", "0129")
    assert content.card_holder == Secret("S Perera")


@pytest.mark.parametrize("name", SIGNED)
def test_a_signed_field_that_was_changed_is_noticed(name: str) -> None:
    """Whoever raises the amount or turns a failure into a success must be found out."""
    other = {"payhere_currency": "USD", "status_code": "3"}.get(name, "9")
    authenticity = authenticity_of(
        read_form(body_of(**{name: other})), named(other if name == "merchant_id" else MERCHANT_ID)
    )

    assert authenticity is Authenticity.FORGED


def test_the_signature_is_over_the_text_and_not_the_number() -> None:
    """1000.0 is the same amount and another text; reformatting it would let through what the gateway never sent."""
    assert authenticity_of(read_form(body_of(payhere_amount="1000.0")), MERCHANT) is Authenticity.FORGED
    form = read_form(body_of(payhere_amount="1,000.00"))
    signed = body_of(payhere_amount="1,000.00", md5sig=signature_of(form, SECRET).decode())

    assert authenticity_of(read_form(signed), MERCHANT) is Authenticity.GENUINE
    assert content_of(read_form(signed)).amount_minor == 100_000


def test_the_merchant_is_checked() -> None:
    """Another merchant's genuine notification, or one of an account without a secret, is not ours to act on."""
    form = read_form(SAMPLE)

    assert authenticity_of(form, named("1211150")) is Authenticity.WRONG_MERCHANT
    assert authenticity_of(form, None) is Authenticity.NO_SECRET
    assert authenticity_of(form, named(MERCHANT_ID, "another")) is Authenticity.FORGED


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "merchant_id"),
        (b"{}", "merchant_id"),
        (b"a=1&" * (FIELDS_MAX + 1), "fields"),
        (b"a=" + b"x" * BODY_BYTES_MAX, "bytes"),
        (SAMPLE + b"&order_id=Order12345", "order_id is there twice"),
        (SAMPLE + b"&customer_token=a&customer_token=b", "customer_token is there twice"),
        (SAMPLE.replace(b"Order12345", b"%FF%FE"), "order_id"),
        (SAMPLE.replace(b"Order12345", b"a%00b"), "order_id"),
        (SAMPLE.replace(b"Order12345", b"a%1B%5B2J"), "order_id"),
        (SAMPLE.replace(b"Order12345", b"a" * 256), "order_id"),
        (SAMPLE.replace(b"&md5sig=340FD7FB0227389003098695F91ADB87", b""), "md5sig"),
        (SAMPLE.replace(b"LKR", b"rupees"), "payhere_currency"),
        (SAMPLE.replace(b"payhere_amount=1000.00", b"payhere_amount=r1000.00"), "payhere_amount"),
        # The end of order 1230 over 10.00, posted as order 123 over 010.00, has the same signature.
        (SAMPLE.replace(b"payhere_amount=1000.00", b"payhere_amount=01000.00"), "payhere_amount"),
    ],
)
def test_a_body_that_is_no_notification_has_a_reason(body: bytes, why: str) -> None:
    """Somebody who sets up the address wrongly should see what is wrong with what came."""
    with pytest.raises(UnreadableError, match=why):
        read_form(body)


@pytest.mark.parametrize(
    "order_id", ["\u0dc1\u0dca\u200d\u0dbb\u0dd3 1", "No.\u00a07", "a\u3000b", "a\u00adb", "\ue000"]
)
def test_every_text_that_a_form_takes_comes_back(order_id: str) -> None:
    """An order whose notification can't be read is paid without an event; an approval is lost for good."""
    content = content_of(read_form(body_of(order_id=order_id, card_holder_name=order_id)))

    assert content.order_id == order_id
    assert content.card_holder is not None
    assert content.card_holder.reveal() == order_id


def test_a_field_that_nobody_reads_may_be_there_twice() -> None:
    """A notification must not be lost over a field that means nothing here."""
    assert authenticity_of(read_form(SAMPLE + b"&x=1&x=2&custom_1=b"), MERCHANT) is Authenticity.GENUINE


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({}, NotificationKind.PAYMENT),
        ({"customer_token": "A" * 32}, NotificationKind.PREAPPROVAL),
        ({"status_code": "3"}, NotificationKind.AUTHORIZATION),
        ({"authorization_token": "e34f3059-7b7d-4b62-a57c-784beaa169f4"}, NotificationKind.AUTHORIZATION),
        ({"subscription_id": "420075044317", "message_type": "AUTHORIZATION_SUCCESS"}, NotificationKind.RECURRING),
        ({"status_code": "-3", "subscription_id": "420075044317"}, NotificationKind.CHARGEBACK),
    ],
)
def test_the_kinds_are_distinguished_by_their_fields(fields: dict[str, str], kind: NotificationKind) -> None:
    """No field says what a notification is about."""
    assert content_of(read_form(body_of(**fields))).kind is kind


def test_a_recurring_one_tells_of_its_subscription() -> None:
    """What an app shows of a subscription is made of these."""
    content = content_of(
        read_form(
            body_of(
                subscription_id="420075044317",
                message_type="RECURRING_INSTALLMENT_SUCCESS",
                item_rec_status="0",
                item_rec_date_next="2026-09-25 00:00:00",
                item_rec_install_paid="2",
            )
        )
    )

    assert (content.subscription_id, content.message_type) == ("420075044317", MessageType.INSTALLMENT_SUCCESS)
    assert (content.plan_status, content.next_on, content.installments_paid) == (PlanStatus.ACTIVE, "2026-09-25", 2)


@pytest.mark.parametrize(
    "fields",
    [
        {"payment_id": "3200x", "subscription_id": "4" * 20},
        {"payment_id": "", "card_no": "4916217501611292"},
        {"method": "a b", "card_expiry": "never", "customer_token": "two words", "item_rec_install_paid": "-1"},
        {"payhere_amount": "0.001", "status_code": "7", "item_rec_date_next": "soon", "message_type": "NEW"},
    ],
)
def test_what_cannot_be_read_is_not_there(fields: dict[str, str]) -> None:
    """A strange value must neither fail the whole nor be stored in clear; least of all a whole card number."""
    content = content_of(read_form(body_of(**fields)))

    for name in (
        "payment_id",
        "subscription_id",
        "card_no_masked",
        "method",
        "card_expiry",
        "customer_token",
        "installments_paid",
        "next_on",
        "message_type",
    ):
        assert getattr(content, name) is None
    if "status_code" in fields:
        assert (content.reported, content.amount_minor) == (ReportedStatus.OTHER, None)


@pytest.mark.parametrize("amount", ["", "much", "0.001", "9" * 40])
def test_an_amount_that_is_none_is_not_read(amount: str) -> None:
    """An amount is a number that the gateway reported, or None; never one made of a text."""
    fields = {name: value.encode() for name, value in (FIELDS | {"payhere_amount": amount}).items()}

    assert content_of(Form(fields)).amount_minor is None


@given(st.binary(max_size=2_000))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """Anybody may post anything."""
    try:
        form = read_form(body)
    except UnreadableError:
        return
    authenticity_of(form, MERCHANT)
    content_of(form)


# With all that joins letters or parts words: what stands in an order's form comes back in its notification.
texts = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=40)


@given(
    values=st.fixed_dictionaries(
        {
            "merchant_id": texts,
            "order_id": texts,
            "payhere_amount": st.from_regex(r"(0|[1-9][0-9]{0,2}(,[0-9]{3}){0,2})([.][0-9]{1,9})?", fullmatch=True),
            "payhere_currency": st.text(string.ascii_uppercase, min_size=3, max_size=3),
            "status_code": st.sampled_from(sorted(SIGNATURES)),
        }
    ),
    others=st.dictionaries(texts, texts, max_size=5),
)
def test_what_is_signed_over_any_texts_is_genuine(values: dict[str, str], others: dict[str, str]) -> None:
    """However a sender encodes it, the signature is over the characters that were meant."""
    plain = {**others, **values, "md5sig": "x"}
    form = read_form(urlencode(plain).encode())
    signed = plain | {"md5sig": signature_of(form, SECRET).decode().lower()}
    encoded = "&".join(f"{quote_plus(name)}={quote_plus(value, safe='/-.')}" for name, value in signed.items())

    assert authenticity_of(read_form(encoded.encode()), named(values["merchant_id"])) is Authenticity.GENUINE
    content_of(read_form(encoded.encode()))


def test_a_form_prints_names_only() -> None:
    """A traceback must show no value of it."""
    assert "Perera" not in repr(read_form(SAMPLE))
