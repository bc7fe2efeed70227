"""The endpoints of the merchant API: which method and path means which operation."""

from collections.abc import Mapping
from typing import Literal, get_args
from urllib.parse import unquote

import msgspec

from payrelay_simulator.reply import Reply, protocol_failure

EndpointName = Literal[
    "token",
    "search",
    "charge",
    "capture",
    "refund",
    "subscriptions",
    "subscription",
    "subscription_payments",
    "retry",
    "cancel",
    # Not endpoints of the API: a payer who pays on a hosted page, and an installment that falls due by itself.
    "pay",
    "installment",
]

ENDPOINT_NAMES: frozenset[str] = frozenset(get_args(EndpointName))

PREFIX = "/merchant/v1/"

FIXED: Mapping[str, tuple[str, EndpointName]] = {
    "oauth/token": ("POST", "token"),
    "payment/search": ("GET", "search"),
    "payment/charge": ("POST", "charge"),
    "payment/capture": ("POST", "capture"),
    "payment/refund": ("POST", "refund"),
    "subscription": ("GET", "subscriptions"),
    "subscription/retry": ("POST", "retry"),
    "subscription/cancel": ("POST", "cancel"),
}


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """An operation, with the id that its path names, if it names one."""

    endpoint: EndpointName
    subscription_id: str = ""


def find(method: str, path: str) -> Route | Reply:
    """Return the route of a raw path, or the reply to a path or method that the protocol does not have."""
    if not path.startswith(PREFIX):
        return protocol_failure(404, "no such endpoint")
    rest = path.removeprefix(PREFIX)
    if rest in FIXED:
        allowed, endpoint = FIXED[rest]
        route = Route(endpoint=endpoint)
    else:
        allowed = "GET"
        found = _subscription_route(rest)
        if found is None:
            return protocol_failure(404, "no such endpoint")
        route = found
    if method != allowed:
        reply = protocol_failure(405, f"the method must be {allowed}")
        return msgspec.structs.replace(reply, headers={"Allow": allowed})
    return route


def _subscription_route(rest: str) -> Route | None:
    segments = rest.split("/")
    if segments[0] != "subscription" or not all(segments):
        return None
    if len(segments) == len(("subscription", "id")):
        return Route(endpoint="subscription", subscription_id=unquote(segments[1]))
    if len(segments) == len(("subscription", "id", "payments")) and segments[2] == "payments":
        return Route(endpoint="subscription_payments", subscription_id=unquote(segments[1]))
    return None
