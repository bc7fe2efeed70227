"""By what a caller on the network is counted, wherever callers are: the address, or for IPv6 the network around it."""

import ipaddress
from typing import Final

NETWORK_BITS: Final = 64
"""The prefix of an IPv6 address that counts: a customer of a network has at least that, and any address in it."""


def network_of(address: str) -> str:
    """Gives the key under which an address is counted: itself, or for IPv6 its network of NETWORK_BITS."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), NETWORK_BITS), strict=False))
