"""Where events may be sent: public addresses over https, and whatever else the operator allows by name.

A client that registers an address makes Payrelay call it, from inside the operator's network. So Payrelay calls no
private address, and no name that leads to one, unless the name or the network is allowed.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Final, TypeAlias
from urllib.parse import SplitResult, urlsplit

import msgspec

from payrelay.core.events.delivery import URL_LENGTH_MAX

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_name: Final = re.compile(
    r"(?=.{1,253}\Z)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
).fullmatch
_PROTOCOLS: Final = ipaddress.IPv4Network("192.0.0.0/24")
"""For protocols of the IETF (RFC 6890). Python before 3.11.10 and 3.12.4 calls most of it public (CVE-2024-4032)."""
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_NAT64_LOCAL: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
_IPV4_BITS: Final = 0xFFFFFFFF


class DestinationError(ValueError):
    """Events may not be sent to the address; the message says why and fits behind the field's name."""


class AllowedDestinations(msgspec.Struct, frozen=True):
    """Hosts and networks that are allowed beside public addresses over https."""

    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

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
    """Raises DestinationError unless events may be sent to an address, as far as its text shows.

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


def may_reach(host: str, text: str, allowed: AllowedDestinations) -> bool:
    """True where a host may be called at an address that its name leads to."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return allowed.has(host, address) or is_public(address)


def is_public(address: Address) -> bool:
    """True for an address on the open internet; an IPv6 address with an IPv4 address inside counts as the latter."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = _inside(address)
        if inner is not None:
            return is_public(inner)
        if address.is_site_local or address in _NAT64_LOCAL:
            return False
    if address in _PROTOCOLS:
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def literal_of(host: str) -> Address | None:
    """Gives the IP address that a host is written as; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _inside(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    # The IPv4 address is the last 32 bits of a NAT64 address, and of the old form ::1.2.3.4.
    if address in _NAT64 or (int(address) >> 32 == 0 and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & _IPV4_BITS)
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
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an IPv6 address that can't be read
        is_address = False
        parts = urlsplit("")
    if not is_address:
        raise DestinationError("must be an absolute https address")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise DestinationError("must have no user, password and fragment")
    return parts
