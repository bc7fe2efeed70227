"""Where events may be sent, and where never."""

import ipaddress
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from yarl import URL

from payrelay.core.events.destinations import (
    AllowedDestinations,
    DestinationError,
    allowed_of,
    literal_of,
    may_reach,
    require_destination,
    usual_spelling,
)
from payrelay.core.events.public_addresses import is_public

NOWHERE = AllowedDestinations()
PRIVATE = (
    "0.0.0.0",  # noqa: S104 - an address to be refused
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.8.8.8",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "239.1.1.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::7f00:1",
    "192.0.0.8",
    "192.0.0.192",
    "::ffff:192.0.0.192",
    "2002:7f00:1::",
    "2001:0:4136:e378:8000:63bf:80ff:fffe",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
)
PIECES = (
    *(
        "shop",
        ".",
        "-",
        "_",
        "8.8.8.8",
        "[2606:4700::1111]",
        "[",
        "]",
        "::1",
        "2606:4700::1111",
        "v1.x",
        "%25eth0",
        "%2e",
    ),
    *(
        ":443",
        ":0443",
        ":4_43",
        ":+443",
        ":",
        "@",
        "/",
        "\\",
        "?",
        "#",
        ";",
        ",",
        "0x7f",
        "xn--",
        "127.1",
        "~",
        "!",
        "&",
    ),
)
PUBLIC = ("1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808")


@pytest.mark.parametrize("text", PRIVATE)
def test_a_private_address_is_not_public_in_any_dress(text: str) -> None:
    """Our own network, this machine and the cloud's metadata are nobody's to call."""
    assert not is_public(ipaddress.ip_address(text))
    assert not may_reach("shop.example", text, NOWHERE)
    written = f"[{text}]" if ":" in text else text
    with pytest.raises(DestinationError, match="public"):
        require_destination(f"https://{written}/events", NOWHERE)


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_is_public(text: str) -> None:
    """Shops live there."""
    assert is_public(ipaddress.ip_address(text))
    assert may_reach("shop.example", text, NOWHERE)


@pytest.mark.parametrize("text", ["fe80::1%eth0", "nonsense", ""])
def test_what_is_no_address_is_not_called(text: str) -> None:
    """A resolver that says something odd is not believed."""
    assert not may_reach("shop.example", text, NOWHERE)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://shop.example/events", "https"),
        ("ftp://shop.example/", "https"),
        ("shop.example/events", "https"),
        ("https://", "https"),
        ("https://shop.example:0/", "https"),
        ("https://shop.example:99999/", "https"),
        ("https://shop.example:" + "9" * 1000 + "/", "https"),
        ("https://[::1/", "https"),
        ("https://user:word@shop.example/", "user"),
        ("https://shop.example/#part", "fragment"),
        ("https://shop.example/ x", "ASCII"),
        ("https://shop.example\\@10.0.0.1/", "ASCII"),
        ("https://sh\u00f6p.example/", "ASCII"),
        ("https://" + "a" * 2000 + ".example/", "ASCII"),
        ("https://2130706433/", "host name"),
        ("https://0x7f.1/", "host name"),
        ("https://127.1/", "host name"),
        ("https://017700000001/", "host name"),
        ("https://shop..example/", "host name"),
        ("https://sh%6fp.example/", "host name"),
        ("https://[2606:4700::1111].internal.example/", "host name"),
        ("https://[v1.internal]/", "host name"),
        ("https://[2606:4700::1111%25eth0]/", "scope"),
        ("https://[2606:4700::1111%eth0]/", "scope"),
        ("https://shop.example:8443/", "ports that the operator allows: 443"),
        ("https://shop.example:22/", "ports"),
        ("https://8.8.8.8:25/", "ports"),
    ],
)
def test_what_is_no_good_address_is_refused_with_its_reason(url: str, words: str) -> None:
    """At registration, where somebody can mend it."""
    with pytest.raises(DestinationError, match=words):
        require_destination(url, NOWHERE)


@pytest.mark.parametrize(
    "url",
    ["https://shop.example/events", "https://shop.example:443/e?key=1", "https://8.8.8.8/", "https://SHOP.example"],
)
def test_a_public_address_over_https_is_taken(url: str) -> None:
    """The usual case."""
    require_destination(url, NOWHERE)


def test_an_address_is_the_same_in_all_its_spellings() -> None:
    """Else one receiver is registered twice, and gets each event twice."""
    one = ["https://shop.example/", "HTTPS://Shop.Example", "https://shop.example:443", "https://SHOP.example:443/"]
    others = [
        "https://shop.example:8443/",
        "https://shop.example/E",
        "https://shop.example/e",
        "https://shop.example/?",
    ]
    others += ["https://shop.example/?a=1", "http://shop.example/", "http://shop.example:443/"]

    assert {usual_spelling(url) for url in one} == {"https://shop.example/"}
    assert len({usual_spelling(url) for url in [*one, *others]}) == 1 + len(others) - 1  # a bare ? asks for nothing


def test_the_operator_chooses_the_ports_of_public_addresses() -> None:
    """At other ports there is no receiver of events, but somebody's mail server or database."""
    allowed = AllowedDestinations(ports=frozenset({443, 8443}))

    require_destination("https://shop.example:8443/", allowed)
    with pytest.raises(DestinationError, match="443, 8443"):
        require_destination("https://shop.example:444/", allowed)
    with pytest.raises(DestinationError, match="ports"):
        require_destination("https://shop.example/", AllowedDestinations(ports=frozenset({8443})))


@given(st.lists(st.sampled_from(PIECES), max_size=6).map(lambda pieces: f"https://{''.join(pieces)}/"))
@example("https://[2606:4700::1111].internal.example/")
@example("https://shop.example:4_43/")
def test_what_is_taken_is_read_by_the_client_as_it_was_checked(url: str) -> None:
    """What was checked must be what is called, and two programs read an address: this one, and the client's library."""
    try:
        require_destination(url, AllowedDestinations(ports=frozenset(range(1, 65_536))))
    except DestinationError:
        return
    ours, theirs = urlsplit(url), URL(url)

    assert (literal_of(theirs.host or "") or theirs.host) == (literal_of(ours.hostname or "") or ours.hostname)
    assert theirs.port == (ours.port or 443)


def test_what_is_allowed_by_name_or_network_is_taken() -> None:
    """The operator says so, and nobody else."""
    allowed = allowed_of(["Hooks.Internal.", "localhost", "10.1.0.0/16", "::1"])

    for url in ("http://hooks.internal/x", "http://localhost:8000/", "http://10.1.2.3/", "https://[::1]:9/"):
        require_destination(url, allowed)
    for url in ("http://other.internal/", "https://10.2.0.1/", "http://8.8.8.8/"):
        with pytest.raises(DestinationError):
            require_destination(url, allowed)
    assert may_reach("hooks.internal", "10.9.9.9", allowed)
    assert may_reach("any.example", "10.1.9.9", allowed)
    assert not may_reach("any.example", "10.9.9.9", allowed)


@pytest.mark.parametrize("text", ["", "10.0.0.0/99", "a b", "*.internal", "127.1", "http://x"])
def test_what_can_not_be_allowed_is_refused(text: str) -> None:
    """A mistyped setting must not pass in silence."""
    with pytest.raises(ValueError, match="names or networks"):
        allowed_of([text])
