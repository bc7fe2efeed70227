"""The hosted pages as HTML. They need no script, and fetch nothing but one stylesheet of the simulator's own."""

from collections.abc import Mapping
from importlib.resources import files
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import jinja2

from payrelay_simulator.money import text_of
from payrelay_simulator.pages.cards import CARD_METHODS, TEST_CARDS, Typed
from payrelay_simulator.pages.forms import SOMETHING_WRONG, HostedForm, PageError
from payrelay_simulator.pages.visits import Visit
from payrelay_simulator.rendering import recurring_prose

WALLET_NAMES: Mapping[str, str] = {"HELAPAY": "HelaPay", "FRIMI": "FriMi", "QPLUS": "Q+"}

HEADINGS: Mapping[str, str] = {
    "payment": "Pay your order",
    "recurring": "Subscribe",
    "preapproval": "Approve your card",
    "authorization": "Approve a hold on your card",
}

# What stays as it is in an address; everything else is written so that a header can carry it.
KEPT = "%/:?#[]@!$&'()*+,;="

STYLESHEET = (files("payrelay_simulator.pages") / "templates" / "page.css").read_bytes()


def _amount(cents: int) -> str:
    whole, _, rest = text_of(cents).partition(".")
    return f"{int(whole):,}.{rest}"


templates = jinja2.Environment(
    loader=jinja2.PackageLoader("payrelay_simulator.pages"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    auto_reload=False,
)
templates.filters["amount"] = _amount


def payment_page(visit: Visit, *, typed: Typed | None = None, errors: Mapping[str, str] | None = None) -> str:
    """Return the page on which the payer pays or cancels; `errors` by the input's name, after a slip."""
    form = visit.form
    cards = [method for method in form.methods if method in CARD_METHODS]
    wallets = [(method, WALLET_NAMES[method]) for method in form.methods if method in WALLET_NAMES]
    methods = [("CARD", f"Card: {', '.join(cards)}"), *wallets] if cards and wallets else []
    method = typed.method if typed is not None and typed.method else "CARD"
    if wallets and not cards:
        methods, method = wallets, wallets[0][0]
    return templates.get_template("pay.html").render(
        visit=visit,
        form=form,
        heading=HEADINGS[form.kind],
        site=urlsplit(form.return_url).hostname,
        explanation=explanation(form),
        methods=methods,
        has_card=bool(cards),
        typed=Typed(
            method=method,
            holder_name=typed.holder_name if typed else "",
            expiry=typed.expiry if typed else "",
        ),
        errors=errors or {},
        action=f"Pay {form.currency} {_amount(form.due_cents)}" if form.kind != "authorization" else "Approve the hold",
        cards=[
            ("succeeds" if decline is None else decline.replace("_", " "), method, number)
            for number, (method, decline) in TEST_CARDS.items()
            if method in cards
        ],
    )


def explanation(form: HostedForm) -> list[str]:
    """Return what the payer should know of what the amount is for."""
    if form.kind == "authorization":
        return ["The amount is set aside on your card for up to seven days. The merchant may take all or part of it."]
    if form.kind == "preapproval":
        lines = ["Your card is saved, and the merchant may charge it later without asking you again."]
        if form.amount_cents is None:
            lines.append("The amount is taken to try the card and given back at once.")
        return lines
    if form.plan is None:
        return []
    lines = [f"{form.currency} {_amount(form.amount_cents or 0)}: {_course(form)}."]
    if form.plan.startup_fee_cents:
        fee = form.plan.startup_fee_cents
        word = "Startup fee" if fee > 0 else "Discount on the first payment"
        lines.append(f"{word}: {form.currency} {_amount(abs(fee))}.")
    if form.plan.starts_on is not None:
        lines.append(f"The first payment is taken on {form.plan.starts_on}. What is taken now is given back at once.")
    return lines


def _course(form: HostedForm) -> str:
    if form.plan is None:
        return ""
    return recurring_prose(form.plan.recurrence, form.plan.duration).lower()


def over_page(visit: Visit) -> str:
    """Return the page of a visit that is over, with the way on to the merchant."""
    if visit.state == "cancelled":
        heading, text = "You cancelled", "Nothing was taken from your card."
    elif visit.is_pending:
        heading, text = "Your payment is being worked on", "The merchant is told as soon as it is settled."
    elif visit.form.kind == "authorization":
        heading, text = "Your card was approved", "The amount is set aside and was not taken twice."
    else:
        heading, text = "You have paid", "Paying again on this page takes nothing more."
    return templates.get_template("over.html").render(
        visit=visit, form=visit.form, heading=heading, text=text, target=target_of(visit)
    )


def target_of(visit: Visit) -> str:
    """Return where the payer goes from a visit that is over, in characters that a header can carry."""
    if visit.state == "cancelled":
        return quote(visit.form.cancel_url, safe=KEPT)
    parts = urlsplit(visit.form.return_url)
    order = urlencode({"order_id": visit.form.order_id})
    return quote(urlunsplit(parts._replace(query=f"{parts.query}&{order}" if parts.query else order)), safe=KEPT)


def error_page(error: PageError, code: str) -> str:
    """Return the page for a form that is refused."""
    shown = code if error.text == SOMETHING_WRONG else ""
    return templates.get_template("error.html").render(text=error.text, code=shown, details=error.details)
