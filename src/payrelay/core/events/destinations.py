"""Where Payrelay calls addresses that others name: public ones over https, and whatever the operator allows by name.

A client that registers an address makes Payrelay call it, from inside the operator's network. So Payrelay calls no
private address, no name that leads to one, and no port but some, unless the name or the network is allowed.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Final, TypeAlias
from urllib.parse import SplitResult, urlsplit, urlunsplit

import msgspec

from payrelay.core.events.delivery import URL_LENGTH_MAX
from payrelay.core.events.public_addresses import Address, is_public

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_name: Final = re.compile(
    r"(?=.{1,253}\Z)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
).fullmatch
_host_and_port: Final = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:]+)(:[0-9]{0,5})?").fullmatch
"""Whatever else stands there, such as text behind a bracket or a scope, is read differently by different readers."""
HTTPS_PORT: Final = 443
_USUAL_PORTS: Final = {"http": 80, "https": HTTPS_PORT}


class DestinationError(ValueError):
    """The address may not be called; the message says why and fits behind the field's name."""


class AllowedDestinations(msgspec.Struct, frozen=True):
    """Hosts and networks that are allowed beside public addresses over https, each at any port.

    ``ports`` are those at which public addresses are called.
    """

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()
    ports: frozenset[int] = frozenset({HTTPS_PORT})

    def has(self, host: str, address: Address | None) -> bool:
        """True where the host is allowed by its name, or the address by its network."""
        return host in self.names or (address is not None and any(address in network for network in self.networks))


def allowed_of(texts: Iterable[str]) -> AllowedDestinations:
    """Reads names and networks, such as ``hooks.internal`` and ``10.0.0.0/8``; raises ValueError."""
    names: set[str] = set()
    networks: list[Network] = []
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text))
        except ValueError:
            name = text.lower().rstrip(".")
            if _name(name) is None or _looks_numeric(name):
                raise ValueError("must be names or networks such as hooks.internal, 10.0.0.0/8") from None
            names.add(name)
    return AllowedDestinations(frozenset(names), tuple(networks))


def require_destination(url: str, allowed: AllowedDestinations) -> None:
    """Raises DestinationError unless an address may be called, as far as its text shows.

    The addresses that a name leads to are checked whenever it is called.
    """
    parts = _parts(url)
    host = parts.hostname or ""
    address = literal_of(host)
    if address is None and (_name(host) is None or _looks_numeric(host)):
        raise DestinationError("must have a host name of letters, digits and hyphens")
    is_allowed = allowed.has(host, address)
    if parts.scheme != "https" and not is_allowed:
        raise DestinationError("must be an https address")
    if address is not None and not is_allowed and not is_public(address):
        raise DestinationError("must be a public address")
    port = parts.port or _USUAL_PORTS[parts.scheme]
    if port not in allowed.ports and not is_allowed:
        ports = ", ".join(map(str, sorted(allowed.ports)))
        raise DestinationError(f"must have one of the ports that the operator allows: {ports}")


def usual_spelling(url: str) -> str:
    """Gives one text for all spellings of an address: in small letters, and without a port that is the usual one."""
    parts = urlsplit(url)
    netloc = parts.netloc.lower().removesuffix(f":{_USUAL_PORTS.get(parts.scheme)}")
    return urlunsplit((parts.scheme, netloc, parts.path or "/", parts.query, ""))


def may_reach(host: str, text: str, allowed: AllowedDestinations) -> bool:
    """True where a host may be called at an address that its name leads to."""
    address = literal_of(text)
    return address is not None and (allowed.has(host, address) or is_public(address))


def literal_of(host: str) -> Address | None:
    """Gives the IP address that a host is written as; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _looks_numeric(host: str) -> bool:
    """True for a host that resolvers take for an IP address in an old notation, such as 127.1 or 0x7f000001."""
    last = host.rstrip(".").rpartition(".")[2]
    return last.isdigit() or last.startswith("0x")


def _parts(url: str) -> SplitResult:
    if len(url) > URL_LENGTH_MAX or not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        raise DestinationError(f"must be an absolute address of at most {URL_LENGTH_MAX} visible ASCII characters")
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in _USUAL_PORTS and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an IPv6 address that can't be read
        is_address = False
        parts = urlsplit("")
    if not is_address:
        raise DestinationError("must be an absolute https address")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise DestinationError("must have no user, password and fragment")
    if _host_and_port(parts.netloc.lower()) is None:
        raise DestinationError("must have a host name, or an IP address without a scope, and at most a port behind it")
    return parts
