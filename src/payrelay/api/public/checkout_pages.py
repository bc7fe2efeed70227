"""The pages of a checkout, for the customer's browser: they work without JavaScript, and load nothing from elsewhere.

Rules:

1. A page shows the outcome that the service knows; it doesn't read the query of its address.
2. A page sends its origin as its referrer, which the gateway requires, and never the secret in its address.
3. A form leads to the gateway, a link to an app's address that the operator allows; nothing leads elsewhere.
"""

from collections.abc import Mapping
from importlib.resources import files
from typing import Final
from urllib.parse import urlsplit

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from payrelay.api.http.outgoing import PlainAnswer, plain_answer
from payrelay.api.public.site import ASSET_CACHED_S
from payrelay.clock import Clock
from payrelay.core.checkouts.checkout import Checkout, CheckoutKind, CheckoutState
from payrelay.core.checkouts.hosted_payment import HostedPayment
from payrelay.core.money import decimal_text
from payrelay.errors import Code, Refusal, StoreError
from payrelay.flows.checkouts.visit_checkout import CheckoutVisit, return_to_checkout, visit_checkout
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import CheckoutForm

ASSETS: Final = {"page.css": "text/css", "continue.js": "text/javascript"}
"""The files that the pages load."""
REFRESH_S_MIN: Final = 2
REFRESH_S_MAX: Final = 15
"""The limits of the time after which a page without an outcome reloads: a twentieth of the checkout's age."""
_MS: Final = 1000

_templates: Final = Environment(
    loader=PackageLoader("payrelay.api.public", "hosted"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)

_PROMPTS: Final[dict[CheckoutKind, str]] = {
    CheckoutKind.PAYMENT: "You pay on the payment provider's own page.",
    CheckoutKind.PREAPPROVAL: "You approve a card on the payment provider's own page. It can be charged later.",
    CheckoutKind.RECURRING: "You subscribe on the payment provider's own page. Later payments are made automatically.",
    CheckoutKind.AUTHORIZATION: "You allow the amount to be held on your card, on the payment provider's own page.",
}
_COMPLETED: Final[dict[CheckoutKind, tuple[str, str]]] = {
    CheckoutKind.PAYMENT: ("Payment received", "Thank you. Your payment has been received."),
    CheckoutKind.PREAPPROVAL: ("Card approved", "Thank you. Your card has been approved."),
    CheckoutKind.RECURRING: ("Subscribed", "Thank you. Your subscription has begun."),
    CheckoutKind.AUTHORIZATION: ("Amount authorized", "Thank you. You authorized the amount."),
}
_OUTCOMES: Final[dict[CheckoutState, tuple[str, str]]] = {
    CheckoutState.OPEN: (
        "One moment",
        "We are waiting for the payment provider. This page updates by itself; you do not need to do anything.",
    ),
    CheckoutState.NOTIFIED: (
        "Thank you",
        "The payment provider reports that the amount is held on your card. You do not need to do anything more.",
    ),
    CheckoutState.FAILED: (
        "That did not work",
        "The payment provider says that it failed. You were not charged for it.",
    ),
    CheckoutState.CANCELLED: ("Cancelled", "You cancelled. As far as we know, you were not charged."),
    CheckoutState.EXPIRED: (
        "This page has expired",
        "The time for it is over, and we know of no payment. Go back to the shop to start again.",
    ),
}
_NOT_FOUND: Final = (
    "There is nothing here",
    "The address is wrong or incomplete. Go back to the shop to start again.",
)
_ALREADY_PAID: Final = ("Paid already", "This order has been paid already. You do not need to do anything more.")
_PAUSED: Final = (
    "Not at this moment",
    "Payments are not accepted here at the moment. This page updates by itself. You do not need to do anything.",
)
_PAGE_EXPIRED: Final = ("This page has expired", "The time for it is over. Go back to the shop to start again.")
_UNAVAILABLE: Final = (
    "Please try again",
    "Something does not work at the moment. Load this page again shortly.",
)


async def checkout_page(relay: Relay, account: str, checkout_id: str, secret: str) -> PlainAnswer:
    """Shows the customer the checkout with a button that leads to the gateway, or a message where there is none."""
    try:
        visited = await visit_checkout(relay, account, checkout_id, secret)
    except (StoreError, Refusal):
        return _unavailable(account)
    if visited is None:
        return _not_found(account)
    if visited.link_to_gateway is not None and visited.details is not None:
        return _form_page(account, visited)
    if visited.is_paused:
        return _message_page(account, _PAUSED, http_status=503, refresh=str(REFRESH_S_MAX), is_open=True)
    if visited.is_order_notified:
        return _message_page(account, _OUTCOMES[CheckoutState.NOTIFIED], order_id=visited.checkout.order_id)
    if visited.is_order_paid:
        return _message_page(account, _ALREADY_PAID, order_id=visited.checkout.order_id)
    if visited.checkout.is_open:
        return _message_page(account, _PAGE_EXPIRED, order_id=visited.checkout.order_id, http_status=410)
    return _outcome_page(account, visited)


async def back_page(relay: Relay, account: str, checkout_id: str, secret: str, *, is_cancelled: bool) -> PlainAnswer:
    """Shows the outcome that is known, reloads while there is none, and then leads on to the app's link."""
    try:
        visited = await return_to_checkout(relay, account, checkout_id, secret, is_cancelled=is_cancelled)
    except (StoreError, Refusal):
        return _unavailable(account)
    if visited is None:
        return _not_found(account)
    return _outcome_page(account, visited, refresh_s=_refresh_s(visited.checkout, relay.clock))


def asset(name: str) -> PlainAnswer:
    """Gives a file that a page loads; raises Refusal (not_found)."""
    if name not in ASSETS:
        raise Refusal(Code.NOT_FOUND, "there is nothing at this address")
    body = files("payrelay.api.public").joinpath("hosted", name).read_bytes()
    return plain_answer(body, f"{ASSETS[name]}; charset=utf-8", f"public, max-age={ASSET_CACHED_S}")


def _form_page(account: str, visited: CheckoutVisit) -> PlainAnswer:
    link, details = visited.link_to_gateway, visited.details
    assert link is not None  # noqa: S101, the caller has checked
    assert details is not None  # noqa: S101, the caller has checked
    hosted_payment = details.asked
    form = link if isinstance(link, CheckoutForm) else None
    action = link.action if isinstance(link, CheckoutForm) else link.url
    target = "'none'" if form is None else targets_of(form.action)
    return _page(
        "form.html",
        {
            "title": "Continue to payment",
            "assets": _assets(account),
            "rows": _rows(hosted_payment),
            "sentence": _PROMPTS[hosted_payment.kind],
            "is_form": form is not None,
            "action": action,
            "fields": {} if form is None else form.fields,
        },
        policy=f"style-src 'self'; script-src 'self'; form-action {target}",
    )


def targets_of(action: str) -> str:
    """Gives the sources that ``form-action`` allows for a form with this address.

    Browsers apply them to every redirect that follows as well, and a gateway doesn't say through which of its hosts it
    leads a customer. So the other hosts of its domain are allowed too, where it has one, over https only.
    """
    parts = urlsplit(action)
    origin = f"{parts.scheme}://{parts.netloc}"
    domain = (parts.hostname or "").partition(".")[2]
    has_domain = parts.scheme == "https" and "." in domain and not domain.replace(".", "").isdigit()
    return f"{origin} https://*.{domain}" if has_domain else origin


def _rows(payment: HostedPayment) -> list[tuple[str, str]]:
    rows = [("Order", payment.order_id), ("For", payment.items)]
    if payment.amount_minor is None:
        return rows
    amount = f"{payment.currency} {decimal_text(payment.amount_minor)}"
    plan = payment.plan
    if plan is None:
        return [*rows, ("Amount", amount)]
    length = "until it is ended" if plan.duration == "Forever" else f"for {plan.duration.lower()}"
    rows.append(("Amount", f"{amount} every {plan.recurrence.lower()}, {length}"))
    if plan.starts_on is not None:
        rows.append(("From", plan.starts_on.isoformat()))
    if payment.first_minor != payment.amount_minor:
        rows.append(("First payment", f"{payment.currency} {decimal_text(payment.first_minor or 0)}"))
    return rows


def _outcome_page(account: str, visited: CheckoutVisit, *, refresh_s: int | None = None) -> PlainAnswer:
    checkout, return_link = visited.checkout, visited.return_link
    is_done = checkout.state is CheckoutState.COMPLETED
    message = _COMPLETED[checkout.kind] if is_done else _OUTCOMES[checkout.state]
    refresh = str(refresh_s) if checkout.is_open and refresh_s is not None else None
    if return_link is not None and not checkout.is_open:
        refresh = f"0;url={return_link}"
    return _message_page(
        account, message, order_id=checkout.order_id, refresh=refresh, link=return_link, is_open=checkout.is_open
    )


def _refresh_s(checkout: Checkout, clock: Clock) -> int:
    age_s = (clock.now_ms() - (checkout.opened_at_ms or checkout.created_at_ms)) // _MS
    return min(max(age_s // 20, REFRESH_S_MIN), REFRESH_S_MAX)


def _not_found(account: str) -> PlainAnswer:
    return _message_page(account, _NOT_FOUND, http_status=404)


def _unavailable(account: str) -> PlainAnswer:
    return _message_page(account, _UNAVAILABLE, http_status=503, refresh="5", is_open=True)


def _message_page(
    account: str,
    message: tuple[str, str],
    *,
    http_status: int = 200,
    order_id: str | None = None,
    refresh: str | None = None,
    link: str | None = None,
    is_open: bool = False,
) -> PlainAnswer:
    title, sentence = message
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
    # A Refresh header, no redirect: where a phone has no app for the link, the page stays and shows the link.
    refresh_headers = () if refresh is None else ((b"refresh", refresh.encode()),)
    return msgspec.structs.replace(page, http_status=http_status, raw_headers=(*page.raw_headers, *refresh_headers))


def _assets(account: str) -> str:
    return f"/{account}/hosted"


def _page(template: str, values: Mapping[str, object], *, policy: str) -> PlainAnswer:
    body = _templates.get_template(template).render(values).encode()
    csp = f"default-src 'none'; {policy}; base-uri 'none'; frame-ancestors 'none'"
    return plain_answer(
        body,
        "text/html; charset=utf-8",
        "no-store",
        (b"content-security-policy", csp.encode()),
        (b"referrer-policy", b"origin"),
        (b"x-frame-options", b"DENY"),
        (b"x-robots-tag", b"noindex"),
    )
