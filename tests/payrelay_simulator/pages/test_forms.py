from datetime import UTC, datetime
from urllib.parse import urlencode

import msgspec
import pytest
from tests.payrelay_simulator.shop import Form, a_form, form_hash

from payrelay_simulator import DEFAULT_MERCHANT, Switches
from payrelay_simulator.pages.forms import (
    HELAPAY_ERROR,
    REQUIRED,
    SOMETHING_WRONG,
    UNAUTHORIZED,
    HostedForm,
    Page,
    PageError,
    read_form,
    signed_amount,
)
from payrelay_simulator.records import Merchant, Period
from payrelay_simulator.signature import md5sig

NOW = datetime(2026, 9, 1, 6, 30, tzinfo=UTC)
SHOP = "http://shop.example/basket"


def read(form: Form, page: Page = "checkout", *, referer: str | None = SHOP, **switches: object) -> HostedForm:
    """Read a form as the gateway would."""
    return read_form(
        page,
        urlencode(form).encode(),
        content_type="application/x-www-form-urlencoded",
        referer=referer,
        merchants=(DEFAULT_MERCHANT,),
        switches=msgspec.convert(switches, Switches),
        now=NOW,
    )


def refusal(form: Form, page: Page = "checkout", *, referer: str | None = SHOP, **switches: object) -> PageError:
    """Read a form that must be refused, and return how."""
    with pytest.raises(PageError) as caught:
        read(form, page, referer=referer, **switches)
    return caught.value


def test_form_in_order_is_read_whole() -> None:
    """Everything that the payer and the notification are told later comes from here."""
    form = read(a_form(custom_1="a", custom_2="b", item_name_1="Bell", amount_1="500", quantity_1="2", state="x"))

    assert (form.kind, form.due_cents, form.order_id, form.title) == ("payment", 100_000, "Order12345", "Door bell")
    assert (form.custom_1, form.custom_2, form.person.first_name) == ("a", "b", "Saman")
    assert [(item.name, item.amount_cents, item.quantity) for item in form.items] == [("Bell", 50_000, 2)]


@pytest.mark.parametrize("name", [*REQUIRED, "amount"])
def test_each_required_field_is_required(name: str) -> None:
    """A form that the real gateway would refuse is refused, and the field is named to who built it."""
    error = refusal(a_form(**{name: ""}))

    assert (error.text, [name in detail for detail in error.details]) == (SOMETHING_WRONG, [True])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("email", "saman"),
        ("email", "saman@example"),
        ("phone", "call me"),
        ("phone", "12"),
        ("amount", "1,000.00"),
        ("amount", "0"),
        ("amount", "-5"),
        ("amount", "10.005"),
        ("amount", "1e3"),
        ("currency", "lkr"),
        ("currency", "JPY"),
        ("return_url", "shop.example"),
        ("notify_url", "ftp://shop.example/"),
        ("cancel_url", "http://"),
        ("return_url", "http://shop.example:port/"),
        ("return_url", f"http://{'a' * 301}/"),
        ("items", "Bell \N{BELL}"),
        ("items", "Umbrella \N{UMBRELLA}"),
        ("custom_1", "<script>alert(1)</script>"),
        ("custom_1", "< / Script"),
        ("custom_1", "<  script"),
        ("custom_2", "x" * 4_097),
        ("payment_method", "CASH"),
        ("amount_1", "free"),
        ("quantity_1", "0"),
    ],
)
def test_wrong_values_are_refused(name: str, value: str) -> None:
    """Bad data gets the gateway's words and the name of the field."""
    error = refusal(a_form(**{name: value}))

    assert (error.text, len(error.details)) == (SOMETHING_WRONG, 1)
    assert name in error.details[0]


def test_text_in_other_scripts_is_no_bad_data() -> None:
    """Names in Sinhala and Tamil are what most payers have."""
    form = read(a_form(first_name="සමන්", last_name="பெரேரா", items="Crème brûlée №1"))

    assert form.person.first_name == "සමන්"


def test_helapay_needs_a_way_to_reach_the_payer() -> None:
    """This method has an error of its own for it."""
    assert refusal(a_form(payment_method="HELAPAY", phone="")).text == HELAPAY_ERROR
    assert refusal(a_form(payment_method="HELAPAY", email="x")).text == HELAPAY_ERROR


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b"{}"),
        ("application/x-www-form-urlencoded", b"\xff"),
        ("application/x-www-form-urlencoded", b"order_id=%ff"),
        ("application/x-www-form-urlencoded", b"&".join(b"a%d=1" % number for number in range(1_001))),
    ],
)
def test_what_is_no_form_is_refused(content_type: str, body: bytes) -> None:
    """No body makes the page fail in another way than by refusing."""
    with pytest.raises(PageError):
        read_form(
            "checkout",
            body,
            content_type=content_type,
            referer=SHOP,
            merchants=(DEFAULT_MERCHANT,),
            switches=Switches(),
            now=NOW,
        )


@pytest.mark.parametrize("referer", [None, "", "null", "shop.example"])
def test_form_without_a_referer_is_refused(referer: str | None) -> None:
    """A page with Referrer-Policy no-referrer cannot post a form, which is easy to miss and hard to find."""
    error = refusal(a_form(), referer=referer)

    assert error.text == UNAUTHORIZED
    assert "no-referrer" in error.details[0]


def test_only_allowed_domains_may_post() -> None:
    """The domain is compared without scheme and port; a part of one is none."""
    allowed = ["shop.example"]

    assert read(a_form(), referer="https://shop.example:8443/x", allowed_domains=allowed).kind == "payment"
    assert refusal(a_form(), referer="http://evil-shop.example/", allowed_domains=allowed).text == UNAUTHORIZED
    assert read(a_form(), referer="http://any.example/", allowed_domains=["*"]).kind == "payment"


def test_unknown_merchant_and_wrong_hash_are_unauthorized() -> None:
    """Both look the same to the payer; the details tell who built it which it is, without the right hash."""
    stranger, spoiled = refusal(a_form(merchant_id="7")), refusal(a_form(hash="0" * 32))

    assert (stranger.text, spoiled.text) == (UNAUTHORIZED, UNAUTHORIZED)
    assert "merchant_id" in stranger.details[0]
    assert "1000.00" in spoiled.details[0]
    assert form_hash(a_form(), "1000.00") not in str(spoiled)


@pytest.mark.parametrize("changes", [{"amount": "1000.01"}, {"order_id": "Other"}, {"currency": "USD"}])
def test_hash_covers_what_it_covers(changes: Form) -> None:
    """A payer who changes the run of characters on the way is found out; see test_hostile_forms.py for the others."""
    assert refusal({**a_form(), **changes}).text == UNAUTHORIZED


@pytest.mark.parametrize("amount", ["1000", "1000.0", "1000.00"])
def test_amount_is_brought_into_form_before_it_is_signed(amount: str) -> None:
    """The documents post 1000 and sign 1000.00."""
    assert read(a_form(amount=amount)).due_cents == 100_000


@pytest.mark.parametrize(
    ("currency", "signed", "switch"), [("LKR", "10.00", "0.51"), ("USD", "0.51", "0.51"), ("USD", "1.01", "1.01")]
)
def test_preapproval_without_an_amount_is_signed_over_a_small_one(currency: str, signed: str, switch: str) -> None:
    """Which amount it is changed without notice once, and differs between environments."""
    form = a_form(signed, amount="", currency=currency)

    read_one = read(form, "preapprove", preapproval_hash_amount=switch)

    assert (read_one.kind, read_one.amount_cents) == ("preapproval", None)


def test_preapproval_with_an_amount_is_signed_over_it() -> None:
    """The amount is charged as well."""
    assert read(a_form(), "preapprove").due_cents == 100_000


def test_startup_fee_is_signed_with_the_amount() -> None:
    """As official clients do; a negative one is a discount."""
    plan = {"recurrence": "1 Month", "duration": "1 Year"}

    assert read(a_form("1100.50", **plan, startup_fee="100.50")).due_cents == 110_050
    assert read(a_form("900.00", **plan, startup_fee="-100")).due_cents == 90_000
    assert read(a_form("1000.00", **plan, startup_fee="100"), startup_fee_hash="amount").due_cents == 110_000
    assert refusal(a_form("1000.00", **plan, startup_fee="-1000")).text == SOMETHING_WRONG


@pytest.mark.parametrize(("currency", "signed"), [("LKR", "10.00"), ("USD", "0.50")])
def test_later_start_is_signed_over_a_small_amount(currency: str, signed: str) -> None:
    """Nothing is due yet; the amount in the form stays the real one."""
    form = a_form(
        signed, currency=currency, recurrence="1 Month", duration="Forever", recurring_start_date="2026-09-02"
    )
    plan = read(form).plan

    assert plan is not None
    assert (str(plan.starts_on), plan.duration) == ("2026-09-02", None)


def test_start_today_is_no_later_start() -> None:
    """Today is a day of the gateway's zone."""
    form = a_form(recurrence="1 Month", duration="Forever", recurring_start_date="2026-09-01")
    plan = read(form).plan

    assert plan is not None
    assert plan.starts_on is None


@pytest.mark.parametrize(
    "changes",
    [
        {"recurrence": "Month"},
        {"recurrence": "0 Month"},
        {"recurrence": "1 Months"},
        {"duration": ""},
        {"duration": "forever"},
        {"recurrence": "3 Month", "duration": "2 Month"},
        {"recurrence": "1 Month", "duration": "1 Week"},
        {"startup_fee": "x"},
        {"startup_fee": "1.005"},
        {"max_retries": "-1"},
        {"max_retries": "many"},
        {"auto_cancel": "yes"},
        {"is_recovery_due": "0"},
        {"recurring_start_date": "02/09/2026"},
        {"recurring_start_date": "2026-08-31"},
    ],
)
def test_wrong_plan_is_refused(changes: Form) -> None:
    """A subscription that could not run is not begun."""
    error = refusal(a_form(**{"recurrence": "1 Month", "duration": "1 Year", **changes}))

    assert error.text == SOMETHING_WRONG


def test_plan_is_read() -> None:
    """What a subscription does later is decided by its form."""
    options = {"auto_cancel": "false", "max_retries": "2", "is_recovery_due": "true"}
    form = a_form(recurrence="2 Week", duration="1 Year", **options)
    plan = read(form).plan

    assert plan is not None
    assert (plan.recurrence, plan.retries_max, plan.is_auto_cancelled) == (Period(count=2, unit="Week"), 2, False)
    assert "sandbox" in refusal(form, recurring_options="refused").details[0]


def test_only_cards_that_can_be_kept_are_taken_for_later() -> None:
    """A wallet cannot be charged again."""
    assert "HELAPAY" in read(a_form()).methods
    assert read(a_form(payment_method="AMEX")).methods == ("AMEX",)
    assert read(a_form(), "authorize").methods == ("VISA", "MASTER")
    assert refusal(a_form(payment_method="AMEX"), "authorize").text == SOMETHING_WRONG


@pytest.mark.parametrize(
    ("page", "currency", "amount", "expected"),
    [
        ("checkout", "LKR", "1000", "B34BC29666CF0280A3097909DFBE8477"),
        ("preapprove", "LKR", "", "12E6311FAC0CF7E212848DBE2A8C4163"),
        ("preapprove", "USD", "", "831DAF168351610953854C62D35679F3"),
    ],
)
def test_hashes_computed_elsewhere_are_taken(page: Page, currency: str, amount: str, expected: str) -> None:
    """The test vectors come from neither this code nor that of a client."""
    merchant = Merchant(app_id="a", app_secret="s", merchant_id="1211149", merchant_secret="MzExMTIyMjMzMw==")
    form = {**a_form(currency=currency, amount=amount, merchant_id="1211149", hash=expected)}

    taken = read_form(
        page,
        urlencode(form).encode(),
        content_type="application/x-www-form-urlencoded;charset=UTF-8",
        referer=SHOP,
        merchants=(merchant,),
        switches=Switches(),
        now=NOW,
    )

    parts = (taken.merchant.merchant_id, taken.order_id, signed_amount(taken, Switches()), taken.currency)
    assert md5sig(*parts, merchant_secret=merchant.merchant_secret) == expected
