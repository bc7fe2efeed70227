"""Which addresses are public: each block of the registries at its four edges, and laws about what is inside others."""

import ipaddress
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.events.public_addresses import (
    SPECIAL_IPV4,
    SPECIAL_IPV6,
    WITH_IPV4,
    Address,
    is_near,
    is_public,
)

EDGES: Final = """
0.0.0.0/8            none no   no   yes
0.0.0.0/32           none no   no   no
10.0.0.0/8           yes  no   no   yes
100.64.0.0/10        yes  no   no   yes
127.0.0.0/8          yes  no   no   yes
169.254.0.0/16       yes  no   no   yes
172.16.0.0/12        yes  no   no   yes
192.0.0.0/24         yes  no   no   yes
192.0.0.0/29         yes  no   no   no
192.0.0.8/32         no   no   no   no
192.0.0.9/32         no   no   no   no
192.0.0.10/32        no   no   no   no
192.0.0.170/32       no   no   no   no
192.0.0.171/32       no   no   no   no
192.0.2.0/24         yes  no   no   yes
192.31.196.0/24      yes  no   no   yes
192.52.193.0/24      yes  no   no   yes
192.88.99.0/24       yes  no   no   yes
192.88.99.2/32       no   no   no   no
192.168.0.0/16       yes  no   no   yes
192.175.48.0/24      yes  no   no   yes
198.18.0.0/15        yes  no   no   yes
198.51.100.0/24      yes  no   no   yes
203.0.113.0/24       yes  no   no   yes
224.0.0.0/4          yes  no   no   no
240.0.0.0/4          no   no   no   none
255.255.255.255/32   no   no   no   none
::/128               none no   no   no
::1/128              no   no   no   no
64:ff9b:1::/48       no   no   no   no
100::/64             no   no   no   no
100:0:0:1::/64       no   no   no   no
2001::/23            yes  no   no   yes
2001:1::1/128        no   no   no   no
2001:1::2/128        no   no   no   no
2001:1::3/128        no   no   no   no
2001:2::/48          no   no   no   no
2001:3::/32          no   no   no   no
2001:4:112::/48      no   no   no   no
2001:10::/28         no   no   no   no
2001:20::/28         no   no   no   no
2001:30::/28         no   no   no   no
2001:db8::/32        yes  no   no   yes
2620:4f:8000::/48    yes  no   no   yes
3fff::/20            yes  no   no   yes
5f00::/16            no   no   no   no
fc00::/7             no   no   no   no
fe80::/10            no   no   no   no
fec0::/10            no   no   no   no
ff00::/8             no   no   no   none
::ffff:0:0/96        no   no   no   no
64:ff9b::/96         no   no   no   no
2001::/32            yes  no   no   no
2002::/16            yes  no   no   yes
"""
"""Each block, and whether the address before it, its first, its last, and the one behind it are public."""
MAPPED: Final = 0xFFFF << 32
NAT64: Final = 0x64FF9B << 96
ANY4: Final = st.integers(0, 2**32 - 1).map(ipaddress.IPv4Address)
ANY6: Final = st.integers(0, 2**128 - 1).map(ipaddress.IPv6Address)


def edges(block: str) -> list[Address | None]:
    """Gives the addresses around the two ends of a block; None where there is none."""
    network = ipaddress.ip_network(block)
    first, last = network.network_address, network.broadcast_address
    return [
        first - 1 if int(first) else None,
        first,
        last,
        last + 1 if int(last) < 2**network.max_prefixlen - 1 else None,
    ]


def test_each_block_ends_where_the_registry_says() -> None:
    """One address too few is a door into somebody's network; one too many is a shop that hears of nothing."""
    words = {None: "none", True: "yes", False: "no"}
    ours = [
        [block, *(words[None if each is None else is_public(each)] for each in edges(block))]
        for block, *_ in (*SPECIAL_IPV4, *SPECIAL_IPV6, *WITH_IPV4)
    ]

    assert ours == [line.split() for line in EDGES.splitlines()[1:]]
    assert len(ours) == 26 + 25 + 3  # of IPv4 and of IPv6; multicast twice, and site-local


@given(ANY4)
def test_an_ipv4_address_counts_the_same_in_every_dress(address: ipaddress.IPv4Address) -> None:
    """The packets of all of them end at that one machine."""
    number = int(address)
    dresses = (MAPPED | number, NAT64 | number, 0x2002 << 112 | number << 80 | 1)

    assert {is_public(ipaddress.IPv6Address(each)) for each in dresses} == {is_public(address)}


@given(ANY4, ANY4, st.integers(0, 2**32 - 1))
def test_teredo_is_public_where_server_and_client_are(
    server: ipaddress.IPv4Address, client: ipaddress.IPv4Address, flags_and_port: int
) -> None:
    """A packet to such an address goes to the one or to the other."""
    hidden = int(client) ^ (2**32 - 1)
    teredo = ipaddress.IPv6Address(0x20010000 << 96 | int(server) << 64 | flags_and_port << 32 | hidden)

    assert is_public(teredo) is (is_public(server) and is_public(client))


def test_a_translation_prefix_of_ones_own_is_not_known() -> None:
    """A network may translate any prefix that it has to IPv4, and nothing in the address says so."""
    assert is_public(ipaddress.ip_address("2a00:1450:64::10.0.0.1"))


@given(ANY6, st.sampled_from(["eth0", "1"]))
def test_no_address_with_a_scope_is_public(address: ipaddress.IPv6Address, scope: str) -> None:
    """A scope chooses one of this machine's own networks."""
    assert not is_public(ipaddress.IPv6Address(f"{address}%{scope}"))


@given(ANY6)
def test_what_is_not_given_out_is_not_public(address: ipaddress.IPv6Address) -> None:
    """Whoever uses such an address uses it at home."""
    has_ipv4 = any(address in ipaddress.IPv6Network(block) for block, *_ in WITH_IPV4)
    is_given_out = address in ipaddress.IPv6Network("2000::/3")

    assert has_ipv4 or is_given_out or not is_public(address)


@given(st.one_of(ANY4, ANY6))
def test_what_is_near_is_never_public(address: Address) -> None:
    """The two words are used for opposite things: where secrets may go in clear, and where strangers may send us."""
    assert not (is_near(address) and is_public(address))


@pytest.mark.parametrize(
    ("text", "near"),
    [
        *((each, True) for each in ("10.0.0.1", "127.0.0.1", "192.168.1.5", "172.31.0.1", "169.254.1.1")),
        *((each, True) for each in ("::1", "fd00::1", "fe80::1")),
        *(
            (each, False)
            for each in ("0.0.0.1", "100.64.0.1", "192.0.2.1", "8.8.8.8", "224.0.0.1", "::", "2001:db8::1")
        ),
    ],
)
def test_near_is_a_machine_of_ones_own_network(text: str, *, near: bool) -> None:
    """Documentation, multicast and a carrier's shared space are not public, and nobody's own either."""
    assert is_near(ipaddress.ip_address(text)) is near
