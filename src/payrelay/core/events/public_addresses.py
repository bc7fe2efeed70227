"""Which addresses of the internet are public: a table of ours, and not that of the Python which happens to run.

The blocks are those of IANA's special-purpose address registries for IPv4 and IPv6, as copies of 2026-07-18 have them:
https://www.iana.org/assignments/iana-ipv4-special-registry and https://www.iana.org/assignments/iana-ipv6-special-registry.
The registries themselves were not asked. Multicast has registries of its own (RFC 5771, RFC 4291), and site-local
addresses are no longer in any (RFC 3879).

Rules:

1. Whatever a block is registered for, nobody's server is there. So a registered address isn't public, though the
   registry calls some of them globally reachable: those of AS112, AMT and ORCHID, for example.
2. An IPv6 address that leads to an IPv4 address counts as that one. Where it can't be told which one, it isn't public.
3. Of IPv6 only what is given out as global unicast (2000::/3) can be public, and no address with a scope.
"""

import ipaddress
from typing import Final, TypeAlias

IPv4: TypeAlias = ipaddress.IPv4Address
IPv6: TypeAlias = ipaddress.IPv6Address
Address: TypeAlias = IPv4 | IPv6

_NEAR: Final = frozenset({"Private-Use", "Loopback", "Link Local", "Unique-Local"})
"""What machines on the same network are called by."""
SPECIAL_IPV4: Final = (
    ("0.0.0.0/8", "This network"),
    ("0.0.0.0/32", "This host on this network"),
    ("10.0.0.0/8", "Private-Use"),
    ("100.64.0.0/10", "Shared Address Space"),
    ("127.0.0.0/8", "Loopback"),
    ("169.254.0.0/16", "Link Local"),
    ("172.16.0.0/12", "Private-Use"),
    ("192.0.0.0/24", "IETF Protocol Assignments"),
    ("192.0.0.0/29", "IPv4 Service Continuity Prefix"),
    ("192.0.0.8/32", "IPv4 dummy address"),
    ("192.0.0.9/32", "Port Control Protocol Anycast"),
    ("192.0.0.10/32", "Traversal Using Relays around NAT Anycast"),
    ("192.0.0.170/32", "NAT64/DNS64 Discovery"),
    ("192.0.0.171/32", "NAT64/DNS64 Discovery"),
    ("192.0.2.0/24", "Documentation (TEST-NET-1)"),
    ("192.31.196.0/24", "AS112-v4"),
    ("192.52.193.0/24", "AMT"),
    ("192.88.99.0/24", "Deprecated (6to4 Relay Anycast)"),
    ("192.88.99.2/32", "6a44-relay anycast address"),
    ("192.168.0.0/16", "Private-Use"),
    ("192.175.48.0/24", "Direct Delegation AS112 Service"),
    ("198.18.0.0/15", "Benchmarking"),
    ("198.51.100.0/24", "Documentation (TEST-NET-2)"),
    ("203.0.113.0/24", "Documentation (TEST-NET-3)"),
    ("224.0.0.0/4", "Multicast"),
    ("240.0.0.0/4", "Reserved"),
    ("255.255.255.255/32", "Limited Broadcast"),
)
SPECIAL_IPV6: Final = (
    ("::/128", "Unspecified Address"),
    ("::1/128", "Loopback"),
    ("64:ff9b:1::/48", "IPv4-IPv6 Translat."),
    ("100::/64", "Discard-Only Address Block"),
    ("100:0:0:1::/64", "Dummy IPv6 Prefix"),
    ("2001::/23", "IETF Protocol Assignments"),
    ("2001:1::1/128", "Port Control Protocol Anycast"),
    ("2001:1::2/128", "Traversal Using Relays around NAT Anycast"),
    ("2001:1::3/128", "DNS-SD Service Registration Protocol Anycast"),
    ("2001:2::/48", "Benchmarking"),
    ("2001:3::/32", "AMT"),
    ("2001:4:112::/48", "AS112-v6"),
    ("2001:10::/28", "Deprecated (previously ORCHID)"),
    ("2001:20::/28", "ORCHIDv2"),
    ("2001:30::/28", "Drone Remote ID Protocol Entity Tags (DETs) Prefix"),
    ("2001:db8::/32", "Documentation"),
    ("2620:4f:8000::/48", "Direct Delegation AS112 Service"),
    ("3fff::/20", "Documentation"),
    ("5f00::/16", "Segment Routing (SRv6) SIDs"),
    ("fc00::/7", "Unique-Local"),
    ("fe80::/10", "Link Local"),
    ("fec0::/10", "Site-Local"),
    ("ff00::/8", "Multicast"),
)
"""All but the blocks of which each address leads to an IPv4 address."""
WITH_IPV4: Final = (
    ("::ffff:0:0/96", "IPv4-mapped Address", (96,)),
    ("64:ff9b::/96", "IPv4-IPv6 Translat.", (96,)),
    ("2001::/32", "TEREDO", (32, 96)),
    ("2002::/16", "6to4", (16,)),
)
"""Blocks with the bits at which their IPv4 addresses begin: of Teredo those of the server and of the client."""

_special4: Final = tuple(ipaddress.IPv4Network(block) for block, _ in SPECIAL_IPV4)
_special6: Final = tuple(ipaddress.IPv6Network(block) for block, _ in SPECIAL_IPV6)
_near: Final = tuple(ipaddress.ip_network(block) for block, name in (*SPECIAL_IPV4, *SPECIAL_IPV6) if name in _NEAR)
_with_ipv4: Final = tuple((ipaddress.IPv6Network(block), starts) for block, _, starts in WITH_IPV4)
_teredo: Final = ipaddress.IPv6Network("2001::/32")
_global_unicast: Final = ipaddress.IPv6Network("2000::/3")
_IPV4_BITS: Final = 0xFFFFFFFF


def is_public(address: Address) -> bool:
    """True for an address on the open internet; where IPv4 addresses are inside, each of them must be public."""
    if isinstance(address, IPv4):
        return not any(address in block for block in _special4)
    if address.scope_id is not None:
        return False
    inside = _inside(address)
    if inside:
        return all(is_public(each) for each in inside)
    return address in _global_unicast and not any(address in block for block in _special6)


def is_near(address: Address) -> bool:
    """True for a machine on a private network, this one included."""
    return any(address in block for block in _near)


def _inside(address: IPv6) -> list[IPv4]:
    """Gives the IPv4 addresses that an address leads to; none for an address of IPv6 alone."""
    starts = next((starts for block, starts in _with_ipv4 if address in block), ())
    found = [int(address) >> (96 - start) & _IPV4_BITS for start in starts]
    if address in _teredo:
        found[-1] ^= _IPV4_BITS  # the client's has all its bits turned (RFC 4380)
    return [IPv4(each) for each in found]
