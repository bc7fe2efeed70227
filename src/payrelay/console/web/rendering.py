"""Makes answers: pages from templates, redirects, and the headers that all of them have.

Every text on a page goes through the template's escaping. No page has an inline script or style, or anything of another
host. Live pages have one script, and pages for passkeys another, each a file of ours; the policy of all others allows
none.
"""

from collections.abc import AsyncGenerator
from datetime import datetime
from importlib.resources import files
from typing import Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context

from payrelay.api.console_exchange import ConsoleAnswer
from payrelay.console.rules.timeline import state_tone
from payrelay.core.moments import rfc3339
from payrelay.core.money import money_text
from payrelay.core.text.operator_text import named
from payrelay.parts import parts

STYLE_PATH: Final = "/console/assets/console.css"
LIVE_SCRIPT_PATH: Final = "/console/assets/live.js"
PASSKEY_SCRIPT_PATH: Final = "/console/assets/passkeys.js"
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_POLICY_WITH: Final = {
    None: _POLICY,
    LIVE_SCRIPT_PATH: f"{_POLICY}; script-src 'self'; connect-src 'self'",
    PASSKEY_SCRIPT_PATH: f"{_POLICY}; script-src 'self'",
}
"""What each script needs: that of passkeys sends nothing but a form."""
_POLICY_NAME: Final = b"content-security-policy"
_COMMON: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    # Without any referrer browsers say that a form comes from nowhere; none goes to another host.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=()"),
    (b"x-robots-tag", b"noindex"),
    (b"server", b"payrelay"),
)
_FACTORS: Final = {"totp": "authenticator app", "totp_or_passkey": "authenticator app or passkey"}
_NOT_KEPT: Final = (b"cache-control", b"no-store")


def order_path(order_id: str, account: str) -> str:
    """Gives the address of an order's page; whatever is in its id, it is one part of the path."""
    return f"/console/orders/{quote(account, safe='')}/{quote(order_id, safe='')}"


_templates: Final = Environment(
    loader=ChoiceLoader(
        [
            PackageLoader(package, "templates")
            for package in ("payrelay.console", *(p.pages for p in parts() if p.pages))
        ]
    ),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@pass_context
def _when(context: Context, at_ms: int) -> str:
    """Writes a time for the reader, in the zone that the page was made for."""
    return written(at_ms, str(context.get("zone", "UTC")))


def written(at_ms: int, zone: str) -> str:
    """Writes a time with its distance from UTC: ``2026-11-23 23:10:13 UTC+05:30``."""
    at = datetime.fromtimestamp(at_ms / 1000, ZoneInfo(zone))
    offset = f"{at:%z}"
    return f"{at:%Y-%m-%d %H:%M:%S} UTC{'' if offset == '+0000' else f'{offset[:3]}:{offset[3:]}'}"


@pass_context
def _when_short(context: Context, at_ms: int) -> str:
    """Writes the day and the minute for the reader, where the year and the zone stand beside it."""
    return f"{datetime.fromtimestamp(at_ms / 1000, ZoneInfo(str(context.get('zone', 'UTC')))):%d %b %H:%M}"


_templates.filters["when"] = _when
_templates.filters["when_short"] = _when_short
_templates.filters["in_utc"] = lambda at_ms: written(at_ms, "UTC")
_templates.filters["money"] = money_text
_templates.filters["words"] = lambda text: text.replace("_", " ")
_templates.filters["capitalize_first"] = lambda text: f"{text[:1].upper()}{text[1:]}"
_templates.filters["named"] = named
_templates.filters["tone"] = state_tone
_templates.filters["order_path"] = order_path
_templates.filters["factor"] = lambda kind: _FACTORS.get(kind, kind)
_templates.filters["rfc3339"] = lambda at_ms: rfc3339(at_ms, "seconds")


def _guarded(*more: tuple[bytes, bytes], policy: str = _POLICY) -> tuple[tuple[bytes, bytes], ...]:
    return (*_COMMON, (_POLICY_NAME, policy.encode()), *more)


def csv(name: str, text: str) -> ConsoleAnswer:
    """Gives a table as a file to be saved."""
    headers = _guarded(
        _NOT_KEPT,
        (b"content-type", b"text/csv; charset=utf-8"),
        (b"content-disposition", f'attachment; filename="{name}"'.encode()),
    )
    return ConsoleAnswer(status=200, headers=headers, body=text.encode(), route="")


def html(template: str, status: int, *, script: str | None = None, **values: object) -> ConsoleAnswer:
    """Gives a page, which may load this one of our scripts, or none; the dispatch adds the route."""
    body = _templates.get_template(template).render(style=STYLE_PATH, script=script, **values).encode()
    headers = _guarded(_NOT_KEPT, (b"content-type", b"text/html; charset=utf-8"), policy=_POLICY_WITH[script])
    return ConsoleAnswer(status=status, headers=headers, body=body, route="")


def redirect(path: str) -> ConsoleAnswer:
    """Leads the browser to another address, by GET."""
    return ConsoleAnswer(status=303, headers=_guarded(_NOT_KEPT, (b"location", path.encode())), body=b"", route="")


def event_stream(pieces: AsyncGenerator[bytes, None]) -> ConsoleAnswer:
    """Gives a stream of server-sent events; proxies that know the header pass each on at once."""
    headers = _guarded(_NOT_KEPT, (b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no"))
    return ConsoleAnswer(status=200, headers=headers, body=b"", route="", stream=pieces)


def asset(name: str, content_type: str) -> ConsoleAnswer:
    """Gives a file of ours: the style sheet, or a script."""
    body = files("payrelay.console").joinpath("templates", name).read_bytes()
    headers = _guarded(
        (b"cache-control", b"public, max-age=3600"), (b"content-type", f"{content_type}; charset=utf-8".encode())
    )
    return ConsoleAnswer(status=200, headers=headers, body=body, route="")
