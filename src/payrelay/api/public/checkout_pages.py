"""The pages of a checkout, for the customer's browser: they work without JavaScript, and load nothing from elsewhere.

Rules:

1. A page shows the outcome that the service knows; it doesn't read the query of its address.
2. A page sends its origin as its referrer, which the gateway requires, and never the secret in its address.
3. A form leads to the gateway, a link to an app's address that the operator allows; nothing leads elsewhere.
4. A page waits for whatever may still be completed, and goes on to the app by itself only with what
   ``core.checkouts.shown`` passes on, or for a customer who turned back.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from payrelay.api.http.outgoing import PlainAnswer, plain_answer
from payrelay.api.public import sentences
from payrelay.api.public.page_assets import SHOP_STYLE
from payrelay.api.public.page_reader import ANYBODY, PageReader
from payrelay.api.public.page_rows import rows_of
from payrelay.clock import Clock
from payrelay.core.checkouts.shown import Shown
from payrelay.errors import Refusal, StoreError
from payrelay.flows.checkouts.visit_checkout import CheckoutVisit, return_to_checkout, visit_checkout
from payrelay.flows.relay import Relay
from payrelay.gateways.gateway import CheckoutForm, CheckoutRedirect

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

_STATUSES: Final = {Shown.CLOSED: 410, Shown.PAUSED: 503}
"""Of the pages that refuse what was asked for."""


async def checkout_page(
    relay: Relay, account: str, checkout_id: str, secret: str, reader: PageReader = ANYBODY
) -> PlainAnswer:
    """Shows the customer the checkout with a button that leads to the gateway, or a message where there is none."""
    try:
        visited = await visit_checkout(relay, account, checkout_id, secret)
    except (StoreError, Refusal):
        return _unavailable(account, reader)
    if visited is None:
        return _not_found(account, reader)
    if visited.link_to_gateway is not None:
        return _form_page(account, visited, visited.link_to_gateway, reader, outcome=f"{secret}/return")
    return _outcome_page(account, visited, relay.clock, reader)


async def back_page(
    relay: Relay, account: str, checkout_id: str, secret: str, reader: PageReader = ANYBODY, *, is_cancelled: bool
) -> PlainAnswer:
    """Shows the outcome that is known, reloads while there is none, and then leads on to the app's link."""
    try:
        visited = await return_to_checkout(relay, account, checkout_id, secret, is_cancelled=is_cancelled)
    except (StoreError, Refusal):
        return _unavailable(account, reader)
    if visited is None:
        return _not_found(account, reader)
    return _outcome_page(account, visited, relay.clock, reader)


def _form_page(
    account: str, visited: CheckoutVisit, link: CheckoutForm | CheckoutRedirect, reader: PageReader, *, outcome: str
) -> PlainAnswer:
    """Makes the page with the button; ``outcome`` is the return page's address, beside this one."""
    form = link if isinstance(link, CheckoutForm) else None
    message = sentences.message_of(visited.shown, visited.checkout.kind)
    values = {
        "title": message.title,
        "sentences": (*message.sentences, sentences.OPENED_BEFORE) if visited.was_opened else message.sentences,
        "rows": rows_of(visited.checkout, visited.details, reader.language),
        "is_form": form is not None,
        "begins_by_itself": not visited.was_opened,
        "action": link.action if isinstance(link, CheckoutForm) else link.url,
        "fields": {} if form is None else form.fields,
        "button": sentences.CONTINUE,
        "outcome": outcome if visited.was_opened else None,
        "outcome_text": sentences.SEE_OUTCOME,
        "link": visited.return_link,
        "link_text": sentences.GO_BACK,
    }
    target = "'none'" if form is None else targets_of(form.action)
    return _page("form.html", account, reader, values, policy=f"script-src 'self'; form-action {target}")


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


def _outcome_page(account: str, visited: CheckoutVisit, clock: Clock, reader: PageReader) -> PlainAnswer:
    checkout, link = visited.checkout, visited.return_link
    message = sentences.message_of(visited.shown, checkout.kind)
    page = _message_page(
        account,
        message,
        reader,
        http_status=_STATUSES.get(visited.shown, 200),
        rows=rows_of(checkout, visited.details, reader.language),
        link=link,
        is_awaited=visited.is_awaited and not visited.leads_on,
    )
    if visited.leads_on:
        return _refreshed(page, f"0;url={link}")
    return _refreshed(page, _refresh_s(visited, clock)) if visited.is_awaited else page


def _refresh_s(visited: CheckoutVisit, clock: Clock) -> str:
    if visited.shown is Shown.PAUSED:
        return str(REFRESH_S_MAX)
    checkout = visited.checkout
    age_s = (clock.now_ms() - (checkout.opened_at_ms or checkout.created_at_ms)) // _MS
    return str(min(max(age_s // 20, REFRESH_S_MIN), REFRESH_S_MAX))


def _not_found(account: str, reader: PageReader) -> PlainAnswer:
    return _message_page(account, sentences.NOT_FOUND, reader, http_status=404)


def _unavailable(account: str, reader: PageReader) -> PlainAnswer:
    page = _message_page(account, sentences.UNAVAILABLE, reader, http_status=503, is_awaited=True)
    return _refreshed(page, "5")


def _message_page(
    account: str,
    message: sentences.Message,
    reader: PageReader,
    *,
    http_status: int = 200,
    rows: list[tuple[str, str]] | None = None,
    link: str | None = None,
    is_awaited: bool = False,
) -> PlainAnswer:
    values = {
        "title": message.title,
        "sentences": (*message.sentences, sentences.WAIT_HERE) if is_awaited else message.sentences,
        "rows": rows or [],
        "last": sentences.UPDATES if is_awaited else None if link else sentences.MAY_CLOSE,
        "link": link,
        "link_text": sentences.GO_BACK_NOW if is_awaited else sentences.GO_BACK,
    }
    page = _page("outcome.html", account, reader, values, policy="form-action 'none'")
    return msgspec.structs.replace(page, http_status=http_status)


def _refreshed(page: PlainAnswer, refresh: str) -> PlainAnswer:
    """Adds a Refresh header, no redirect: where a phone has no app for the link, the page stays and shows the link."""
    return msgspec.structs.replace(page, raw_headers=(*page.raw_headers, (b"refresh", refresh.encode())))


def _page(template: str, account: str, reader: PageReader, values: Mapping[str, object], *, policy: str) -> PlainAnswer:
    shop = reader.shop
    common = {
        "_": reader.language.text,
        "language": reader.language.tag,
        "assets": f"/{account}/hosted",
        "shop_name": shop.name,
        "styles": ("page.css", SHOP_STYLE) if shop.colour else ("page.css",),
        "has_logo": shop.logo is not None,
    }
    body = _templates.get_template(template).render({**common, **values}).encode()
    pictures = "img-src 'self'; " if shop.logo is not None else ""
    csp = f"default-src 'none'; style-src 'self'; {pictures}{policy}; base-uri 'none'; frame-ancestors 'none'"
    return plain_answer(
        body,
        "text/html; charset=utf-8",
        "no-store",
        (b"content-language", reader.language.tag.encode()),
        (b"vary", b"accept-language"),
        (b"content-security-policy", csp.encode()),
        (b"referrer-policy", b"origin"),
        (b"x-frame-options", b"DENY"),
        (b"x-robots-tag", b"noindex"),
    )
