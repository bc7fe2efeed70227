"""The pages of a checkout, for the customer's browser: they work without JavaScript, and load nothing from elsewhere.

Rules:

1. The outcome on a page is the one that we know; what stands behind a question mark is not read.
2. A page sends its origin as its referrer, which the gateway asks for, and never the secret in its address.
3. A form leads to the gateway, a link to the app's own address that an operator has allowed; nothing leads elsewhere.
"""

from collections.abc import Mapping
from importlib.resources import files
from typing import Final
from urllib.parse import urlsplit

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from payrelay.api.http.outgoing import PlainAnswer
from payrelay.api.public.site import ASSET_KEPT_S
from payrelay.clock import Clock
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState
from payrelay.core.checkouts.hosted_payment import HostedPayment
from payrelay.core.money import decimal_text
from payrelay.errors import Code, Refusal, StoreError
from payrelay.flows.checkouts.visit_checkout import CheckoutVisit, return_to_checkout, visit_checkout
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import CheckoutForm

ASSETS: Final = {"page.css": "text/css", "continue.js": "text/javascript"}
"""What the pages load."""
REFRESH_S_MIN: Final = 2
REFRESH_S_MAX: Final = 15
"""After how long a page that waits for an outcome looks again: a twentieth of the customer's time so far."""
_MS: Final = 1000

_templates: Final = Environment(
    loader=PackageLoader("payrelay.api.public", "hosted"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

_ASKED: Final[dict[CheckoutKind, str]] = {
    CheckoutKind.PAYMENT: "You pay on the payment provider's own page.",
    CheckoutKind.PREAPPROVAL: "You approve a card on the payment provider's own page. It can be charged later.",
    CheckoutKind.RECURRING: "You subscribe on the payment provider's own page. Later payments are made by themselves.",
    CheckoutKind.AUTHORIZATION: "You let the amount be held on the payment provider's own page.",
}
_DONE: Final[dict[CheckoutKind, tuple[str, str]]] = {
    CheckoutKind.PAYMENT: ("Payment received", "Thank you. Your payment has been received."),
    CheckoutKind.PREAPPROVAL: ("Card approved", "Thank you. Your card has been approved."),
    CheckoutKind.RECURRING: ("Subscribed", "Thank you. Your subscription has begun."),
    CheckoutKind.AUTHORIZATION: ("Amount held", "Thank you. The amount is held on your card."),
}
_OTHERWISE: Final[dict[CheckoutState, tuple[str, str]]] = {
    CheckoutState.OPEN: (
        "One moment",
        "We are waiting for the payment provider's word. This page looks again by itself; you need not do anything.",
    ),
    CheckoutState.FAILED: ("That did not work", "The payment provider says that it failed. Nothing was taken for it."),
    CheckoutState.CANCELLED: ("Cancelled", "You turned back. As far as we know, nothing was taken."),
    CheckoutState.EXPIRED: (
        "This page has expired",
        "Its time is over, and no payment is known. Go back to the shop to start again.",
    ),
}
_NOTHING: Final = (
    "There is nothing here",
    "The address is not right, or not whole. Go back to the shop to start again.",
)
_PAID_OTHERWISE: Final = ("Paid already", "This order has been paid already. Nothing more is to be done.")
_PAUSED: Final = (
    "Not at this moment",
    "No payments are taken here just now. This page looks again by itself; you need not do anything.",
)
_CIRCUIT_OPEN: Final = ("This page has expired", "Its time is over. Go back to the shop to start again.")
_TROUBLE: Final = ("Please try again", "Something does not work here just now. Load this page again in a moment.")


async def checkout_page(relay: Relay, account: str, checkout_id: str, secret: str) -> PlainAnswer:
    """Shows what the customer is asked for, with a button that leads on to the gateway."""
    try:
        visited = await visit_checkout(relay, account, checkout_id, secret)
    except (StoreError, Refusal):
        return _trouble(account)
    if visited is None:
        return _nothing(account)
    if visited.link_to_gateway is not None and visited.details is not None:
        return _form_page(account, visited)
    if visited.is_paused:
        return _said(account, _PAUSED, http_status=503, refresh=str(REFRESH_S_MAX), is_open=True)
    if visited.is_order_paid:
        return _said(account, _PAID_OTHERWISE, order_id=visited.checkout.order_id)
    if visited.checkout.is_open:
        return _said(account, _CIRCUIT_OPEN, order_id=visited.checkout.order_id, http_status=410)
    return _outcome_page(account, visited)


async def back_page(relay: Relay, account: str, checkout_id: str, secret: str, *, is_cancelled: bool) -> PlainAnswer:
    """Shows the outcome as we know it, looks again while there is none, and goes on to the app's link."""
    try:
        visited = await return_to_checkout(relay, account, checkout_id, secret, is_cancelled=is_cancelled)
    except (StoreError, Refusal):
        return _trouble(account)
    if visited is None:
        return _nothing(account)
    return _outcome_page(account, visited, refresh_s=_refresh_s(visited.checkout, relay.clock))


def asset(name: str) -> PlainAnswer:
    """Gives what a page loads; raises Refusal (not_found)."""
    if name not in ASSETS:
        raise Refusal(Code.NOT_FOUND, "there is nothing at this address")
    body = files("payrelay.api.public").joinpath("hosted", name).read_bytes()
    return PlainAnswer(
        body=body,
        raw_headers=(
            (b"content-type", f"{ASSETS[name]}; charset=utf-8".encode()),
            (b"cache-control", f"public, max-age={ASSET_KEPT_S}".encode()),
            (b"x-content-type-options", b"nosniff"),
            (b"server", b"payrelay"),
        ),
    )


def _form_page(account: str, visited: CheckoutVisit) -> PlainAnswer:
    way, details = visited.link_to_gateway, visited.details
    assert way is not None  # noqa: S101, the caller has looked
    assert details is not None  # noqa: S101, the same
    asked = details.asked
    form = way if isinstance(way, CheckoutForm) else None
    action = way.action if isinstance(way, CheckoutForm) else way.url
    target = "'none'" if form is None else targets_of(form.action)
    return _page(
        "form.html",
        {
            "title": "Continue to payment",
            "assets": _assets(account),
            "rows": _rows(asked),
            "sentence": _ASKED[asked.kind],
            "is_form": form is not None,
            "action": action,
            "fields": {} if form is None else form.fields,
        },
        policy=f"style-src 'self'; script-src 'self'; form-action {target}",
    )


def targets_of(action: str) -> str:
    """Names where a form for this address may lead, as ``form-action`` has it.

    Browsers hold that for every redirect that follows, too, and how many hosts of its own a gateway passes a customer
    through, it doesn't say: so the others of its domain count where it has one, over https only.
    """
    parts = urlsplit(action)
    origin = f"{parts.scheme}://{parts.netloc}"
    domain = (parts.hostname or "").partition(".")[2]
    has_domain = parts.scheme == "https" and "." in domain and not domain.replace(".", "").isdigit()
    return f"{origin} https://*.{domain}" if has_domain else origin


def _rows(asked: HostedPayment) -> list[tuple[str, str]]:
    rows = [("Order", asked.order_id), ("For", asked.items)]
    if asked.amount_minor is None:
        return rows
    amount = f"{asked.currency} {decimal_text(asked.amount_minor)}"
    plan = asked.plan
    if plan is None:
        return [*rows, ("Amount", amount)]
    length = "until it is ended" if plan.duration == "Forever" else f"for {plan.duration.lower()}"
    rows.append(("Amount", f"{amount} every {plan.recurrence.lower()}, {length}"))
    if plan.starts_on is not None:
        rows.append(("From", plan.starts_on.isoformat()))
    if asked.first_minor != asked.amount_minor:
        rows.append(("First payment", f"{asked.currency} {decimal_text(asked.first_minor or 0)}"))
    return rows


def _outcome_page(account: str, visited: CheckoutVisit, *, refresh_s: int | None = None) -> PlainAnswer:
    checkout, onward = visited.checkout, visited.return_link
    is_done = checkout.state is CheckoutState.COMPLETED
    words = _DONE[checkout.kind] if is_done else _OTHERWISE[checkout.state]
    refresh = str(refresh_s) if checkout.is_open and refresh_s is not None else None
    if onward is not None and not checkout.is_open:
        refresh = f"0;url={onward}"
    return _said(account, words, order_id=checkout.order_id, refresh=refresh, link=onward, is_open=checkout.is_open)


def _refresh_s(checkout: Checkout, clock: Clock) -> int:
    age_s = (clock.now_ms() - (checkout.opened_at_ms or checkout.created_at_ms)) // _MS
    return min(max(age_s // 20, REFRESH_S_MIN), REFRESH_S_MAX)


def _nothing(account: str) -> PlainAnswer:
    return _said(account, _NOTHING, http_status=404)


def _trouble(account: str) -> PlainAnswer:
    return _said(account, _TROUBLE, http_status=503, refresh="5", is_open=True)


def _said(
    account: str,
    words: tuple[str, str],
    *,
    http_status: int = 200,
    order_id: str | None = None,
    refresh: str | None = None,
    link: str | None = None,
    is_open: bool = False,
) -> PlainAnswer:
    title, sentence = words
    values = {
        "title": title,
        "assets": _assets(account),
        "sentence": sentence,
        "order_id": order_id,
        "link": link,
        "link_text": "Go back without waiting" if is_open else "Go back to the shop",
        "may_close": link is None and not is_open,
    }
    page = _page("outcome.html", values, policy="style-src 'self'; form-action 'none'")
    # A header, and no redirect: where a phone has no app for the link, the page stays and has it to be pressed.
    going_on = () if refresh is None else ((b"refresh", refresh.encode()),)
    return msgspec.structs.replace(page, http_status=http_status, raw_headers=(*page.raw_headers, *going_on))


def _assets(account: str) -> str:
    return f"/{account}/hosted"


def _page(template: str, values: Mapping[str, object], *, policy: str) -> PlainAnswer:
    body = _templates.get_template(template).render(values).encode()
    csp = f"default-src 'none'; {policy}; base-uri 'none'; frame-ancestors 'none'"
    return PlainAnswer(
        body=body,
        raw_headers=(
            (b"content-type", b"text/html; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"content-security-policy", csp.encode()),
            (b"referrer-policy", b"origin"),
            (b"x-content-type-options", b"nosniff"),
            (b"x-frame-options", b"DENY"),
            (b"x-robots-tag", b"noindex"),
            (b"server", b"payrelay"),
        ),
    )
