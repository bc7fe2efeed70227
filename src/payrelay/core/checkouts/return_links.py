"""Links to the clients' own apps, to which a customer is sent on: which ones are allowed, and what is added to them.

A browser follows the link from a page, so a link that an attacker chose could lead a customer anywhere. Only links that
an operator has listed are accepted: a whole scheme of an app (``myshop://``), one address, or all addresses that begin
with one (``https://shop.example/*``).
"""

import ipaddress
import re
from typing import Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from payrelay.core.events import public_addresses

LINK_LENGTH_MAX: Final = 1_000
_ANY: Final = "*"
_WEB: Final = frozenset({"http", "https"})
_BROWSERS_OWN: Final = frozenset(
    {
        "about",
        "android-app",
        "blob",
        "chrome",
        "chrome-extension",
        "data",
        "file",
        "filesystem",
        "ftp",
        "intent",
        "jar",
        "javascript",
        "moz-extension",
        "vbscript",
        "view-source",
        "ws",
        "wss",
    }
)
"""Schemes with an effect of their own in a browser; ``intent`` opens any app, or any address where there is none."""

# A text that browsers and this module could read differently is no link: spaces, quotes, backslashes, brackets.
_link_match: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9\-._~:/?#@!$&()*+,;=%]*").fullmatch
_rule_match: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://").fullmatch
_DOT_SEGMENT: Final = re.compile(r"/(?:\.|%2e){1,2}(?:/|$)", re.IGNORECASE)


class LinkError(ValueError):
    """The text is no usable link or rule; the message fits behind its name."""


class LinkRule(NamedTuple):
    """Links that are allowed.

    Attributes:
        scheme: in lower case.
        host: with its port where it has one, in lower case; None for every link of the scheme.
        path: of the link, or what its path begins with.
        is_prefix: whether more may follow.
    """

    scheme: str
    host: str | None
    path: str
    is_prefix: bool

    def allows(self, link: str) -> bool:
        """True where this rule allows the link; for a rule of one address, the query of the link doesn't matter."""
        if not _is_link(link):
            return False
        parts = urlsplit(link)
        if parts.scheme != self.scheme:
            return False
        if self.host is None:
            return True
        if _host_of(parts.netloc, self.scheme) != self.host or _DOT_SEGMENT.search(parts.path):
            return False
        path = parts.path or "/"
        return path.startswith(self.path) if self.is_prefix else path == self.path


def parse_rule(text: str, *, may_be_near: bool = False) -> LinkRule:
    """Reads ``myshop://``, ``https://shop.example/done`` or ``https://shop.example/*``.

    With ``may_be_near`` http also leads to a machine on a private network, named by its number. Raises LinkError.
    """
    app_scheme = _rule_match(text)
    if app_scheme is not None:
        scheme = app_scheme[1].lower()
        if scheme in _WEB or scheme in _BROWSERS_OWN:
            raise LinkError("must name a host: https://shop.example/*")
        return LinkRule(scheme, None, "", is_prefix=True)
    is_prefix = text.endswith("/*")
    address = text.removesuffix(_ANY) if is_prefix else text
    if not _is_link(address) or _ANY in address or "?" in address or "#" in address:
        raise LinkError("must be links such as https://shop.example/* or myshop://")
    parts = urlsplit(address)
    if parts.scheme not in _WEB:
        raise LinkError("must be links such as https://shop.example/* or myshop://")
    host = parts.hostname or ""
    if parts.scheme == "http" and not (_is_this_machine(host) or (may_be_near and is_near(host))):
        raise LinkError("must be https; http is for this machine only")
    return LinkRule(parts.scheme, _host_of(parts.netloc, parts.scheme), parts.path or "/", is_prefix=is_prefix)


def is_allowed(link: str, rules: tuple[LinkRule, ...]) -> bool:
    """True where one of the rules allows the link."""
    return any(rule.allows(link) for rule in rules)


def with_outcome(link: str, checkout_id: str, state: str) -> str:
    """Adds the id and the state of a checkout to an allowed link's query."""
    # Spliced, because urlsplit and urlunsplit would drop the slashes of ``myshop:///done``.
    address, hash_sign, fragment = link.partition("#")
    _, question, query = address.partition("?")
    joint = "" if question and query[-1:] in {"", "&"} else "&" if question else "?"
    return address + joint + urlencode({"checkout": checkout_id, "state": state}) + hash_sign + fragment


def _is_link(link: str) -> bool:
    if len(link) > LINK_LENGTH_MAX or _link_match(link) is None:
        return False
    try:
        parts = urlsplit(link)
        port = parts.port
    except ValueError:
        return False
    if "@" in parts.netloc or parts.scheme in _BROWSERS_OWN:
        return False
    return parts.scheme not in _WEB or (bool(parts.hostname) and port != 0)


def _host_of(netloc: str, scheme: str) -> str:
    """Gives host and port in lower case, without the default port of the scheme."""
    usual = {"http": ":80", "https": ":443"}[scheme]
    return netloc.lower().removesuffix(usual).removesuffix(":")


def is_near(host: str) -> bool:
    """True for the number of a machine on a private network, this one included."""
    try:
        return public_addresses.is_near(ipaddress.ip_address(host))
    except ValueError:
        return False


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
