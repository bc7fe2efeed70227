"""The forms of the trial, each with what the protocol says of its notifications. Data, and what fills it in."""

from collections.abc import Mapping
from datetime import date
from typing import Final

import msgspec

from payrelay.core.checkouts.hosted_payment import Buyer, CheckoutKind, HostedPayment, Plan, PostalAddress
from payrelay.gateways.gateway import ReturnUrls
from payrelay.gateways.payhere.wire.checkout_forms import PATHS, Merchant, build_form
from payrelay_tools.sandbox_trial.payhere import steps
from payrelay_tools.sandbox_trial.payhere.shapes import Shape
from payrelay_tools.sandbox_trial.trial import TrialDesk, TrialForm

GOOD_CARD: Final = "4916 2175 0161 1292"
REFUSED_CARD: Final = "4024 0071 9434 9121"
_PAY: Final = f"Pay with the test card {GOOD_CARD}: any name, any future date, any three digits."

HEARD_WITHIN_S: Final = 20.0
SLOW_WITHIN_S: Final = 150.0
"""The sandbox is documented to charge the next installment after about a minute; a further attempt may take as long."""

BUYER: Final = Buyer(
    first_name="Payrelay",
    last_name="Trial",
    email="trial@example.com",
    phone="0771234567",
    home=PostalAddress(address="1 Trial Street", city="Colombo", country="Sri Lanka"),
)

_CARD: Final[dict[str, Shape]] = {
    "method": "text",
    "card_holder_name": "text",
    "card_no": "card",
    "card_expiry": "expiry",
}
_SIGNED: Final[dict[str, Shape]] = {
    "merchant_id": "text",
    "order_id": "text",
    "payhere_amount": "amount",
    "payhere_currency": "text",
    "md5sig": "hex",
    "custom_1": "any",
    "custom_2": "any",
    "status_message": "text",
}


def paid(status_code: str = "2", *, recurring: str = "0") -> dict[str, Shape]:
    """Gives the shape of the notification of a payment."""
    own: dict[str, Shape] = {
        "payment_id": "id",
        "captured_amount": "amount",
        "status_code": f"={status_code}",
        "recurring": f"={recurring}",
    }
    return {**_SIGNED, **own, **_CARD}


def installment(message_type: str) -> dict[str, Shape]:
    """Gives the shape of the notification of an installment."""
    own: dict[str, Shape] = {
        "subscription_id": "id",
        "message_type": f"={message_type}",
        "item_recurrence": "~(?i:1 month)",
        "item_duration": "~(?i:1 year)",
        "item_rec_status": "code",
        "item_rec_date_next": "any",
        "item_rec_install_paid": "~[0-9]+",
    }
    return {**paid(recurring="1"), **own}


APPROVED: Final[Shape] = {**_SIGNED, "payment_id": "id", "status_code": "=2", "customer_token": "hex", **_CARD}
HELD: Final[Shape] = {
    **_SIGNED,
    "payment_id": "id-",
    "status_code": "=3",
    "authorization_token": "uuid",
    **_CARD,
}


class FormStep(msgspec.Struct, frozen=True, kw_only=True):
    """One form of the trial.

    Attributes:
        name, question, source: as of a call.
        kind: which form it is; ``page`` is the kind to whose page it is posted instead, None for its own.
        task: what the person does there; to pay with the good card, where nothing else is said.
        order: the end of its order id.
        amount_minor, currency, plan: what it asks for.
        shifted: the end that an edited order has, which the edited amount lost at its front; None for no edit.
        known: the shapes of its notifications, in their order; as many are waited for.
        refuses_first: whether its first notification is answered with 503.
        reported_minor: the amount that the first notification is known to have; None where none is known.
        keeps: members of the first notification that later steps need, by the names under which they are kept.
        order_as: the name under which its order is kept.
        after: the calls that follow it.
    """

    name: str
    question: str
    source: str = steps.OPEN
    kind: CheckoutKind
    task: str = _PAY
    order: str
    amount_minor: int | None
    currency: str = "LKR"
    plan: Plan | None = None
    page: CheckoutKind | None = None
    shifted: str | None = None
    known: tuple[Shape, ...] = ()
    reported_minor: int | None = None
    refuses_first: bool = False
    keeps: Mapping[str, str] = {}
    order_as: str = ""
    after: tuple[steps.CallStep, ...] = ()


FORMS: Final = (
    FormStep(
        name="payment",
        question="What does the notification of a payment have?",
        source=steps.OBSERVED,
        kind=CheckoutKind.PAYMENT,
        order="pay",
        amount_minor=15_000,
        known=(paid(),),
        reported_minor=15_000,
        order_as="order of payment",
        after=steps.OF_PAYMENT,
    ),
    FormStep(
        name="refused card",
        question="Is a refused card notified, and a customer who turns back?",
        kind=CheckoutKind.PAYMENT,
        task=f"Try the test card {REFUSED_CARD}, which is refused. Then turn back, by the page's own way.",
        order="refused",
        amount_minor=15_100,
    ),
    FormStep(
        name="notification that is refused",
        question="Does a notification come again that was answered with 503?",
        kind=CheckoutKind.PAYMENT,
        order="again",
        amount_minor=15_200,
        refuses_first=True,
    ),
    FormStep(
        name="approval",
        question="Which amount is notified for an approval that charges nothing, and with which token?",
        source=steps.DOCUMENTED,
        kind=CheckoutKind.PREAPPROVAL,
        task=f"Approve the test card {GOOD_CARD}.",
        order="approve",
        amount_minor=None,
        known=(APPROVED,),
        keeps={"customer_token": "customer_token"},
        after=steps.OF_CUSTOMER,
    ),
    FormStep(
        name="approval in dollars",
        question="Is an approval in dollars taken with the amount in its hash that this account has set?",
        source=steps.DOCUMENTED,
        kind=CheckoutKind.PREAPPROVAL,
        task=f"Approve the test card {GOOD_CARD}, or say that the page refused the form.",
        order="approveusd",
        amount_minor=None,
        currency="USD",
        known=(APPROVED,),
    ),
    FormStep(
        name="authorization",
        question="What does the notification of an authorization have?",
        source=steps.DOCUMENTED,
        kind=CheckoutKind.AUTHORIZATION,
        order="hold",
        amount_minor=10_000,
        known=(HELD,),
        reported_minor=10_000,
        keeps={"authorization_token": "hold"},
        order_as="order of hold",
        after=steps.OF_AUTHORIZATION,
    ),
    FormStep(
        name="authorization to be voided",
        question="Is a second authorization notified as the first one was?",
        source=steps.DOCUMENTED,
        kind=CheckoutKind.AUTHORIZATION,
        order="void",
        amount_minor=10_000,
        known=(HELD,),
        reported_minor=10_000,
        keeps={"authorization_token": "second hold"},
        after=steps.OF_VOID,
    ),
    FormStep(
        name="subscription",
        question="What do the notifications of a subscription with a startup fee have?",
        source=steps.DOCUMENTED,
        kind=CheckoutKind.RECURRING,
        task=f"{_PAY} The next installment follows after about a minute.",
        order="plan",
        amount_minor=10_000,
        plan=Plan(recurrence="1 Month", duration="1 Year", startup_fee_minor=5_000),
        known=(installment("AUTHORIZATION_SUCCESS"), installment("RECURRING_INSTALLMENT_SUCCESS")),
        reported_minor=15_000,
        keeps={"subscription_id": "subscription"},
        after=steps.OF_SUBSCRIPTION,
    ),
    FormStep(
        name="edited form",
        question="Does the gateway take a form whose digits were moved from the amount to the order?",
        source=steps.GUESSED,
        kind=CheckoutKind.PAYMENT,
        task=f"{_PAY} If the page refuses the form, say so.",
        order="edit",
        amount_minor=212_300,
        shifted="2",
        known=(paid(),),
        reported_minor=12_300,
    ),
    FormStep(
        name="form on another page",
        question="Does the gateway take the form of a payment as one of an authorization?",
        source=steps.GUESSED,
        kind=CheckoutKind.PAYMENT,
        page=CheckoutKind.AUTHORIZATION,
        task=f"{_PAY} If the page refuses the form, say so.",
        order="other",
        amount_minor=12_400,
        known=(HELD,),
        reported_minor=12_400,
    ),
)


def order_of(step: FormStep, prefix: str) -> str:
    """Gives the order of a form, before it was edited."""
    return f"{prefix}{step.order}"


def filled(step: FormStep, merchant: Merchant, prefix: str, desk: TrialDesk, *, today: date) -> TrialForm:
    """Fills in a form, signs it, and edits it where it is to be edited."""
    payment = HostedPayment(
        kind=step.kind,
        order_id=order_of(step, prefix),
        items="Payrelay trial",
        currency=step.currency,
        amount_minor=step.amount_minor,
        person=BUYER,
        plan=step.plan,
    )
    addresses = {f"{what}_url": desk.address_of(step.name, what) for what in ("return", "cancel", "notify")}
    form = build_form(merchant, payment, ReturnUrls(**addresses), today=today)
    fields, action = dict(form.fields), form.action
    if step.shifted is not None:
        fields["order_id"] += step.shifted
        fields["amount"] = fields["amount"].removeprefix(step.shifted)
    if step.page is not None:
        action = merchant.base_url + PATHS[step.page]
    is_slow = step.plan is not None or step.refuses_first
    return TrialForm(
        name=step.name,
        task=step.task,
        action=action,
        fields=fields,
        heard_within_s=SLOW_WITHIN_S if is_slow else HEARD_WITHIN_S,
        refuses_first=step.refuses_first,
    )
