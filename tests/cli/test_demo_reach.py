"""How a phone reaches the demo: by which address, and with which code."""

import ipaddress

import pytest

from payrelay.demo.reach import code_of, is_this_machines_usual, reached_at


@pytest.mark.parametrize("host", ["127.0.0.1", "192.168.1.5", "localhost", "::1", "shop.test"])
def test_a_host_that_is_named_is_the_one_that_is_opened(host: str) -> None:
    """Whoever names an address knows which of this machine's networks the phone is in."""
    assert reached_at(host) == host


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])  # noqa: S104 - every address of the machine is the case
def test_every_address_is_one_that_can_be_opened(host: str) -> None:
    """No browser opens 0.0.0.0: what is printed, signed and returned to must be an address of this machine."""
    assert not ipaddress.ip_address(reached_at(host)).is_unspecified


def test_only_an_address_that_a_phone_can_open_is_shown_as_a_code() -> None:
    """A code that leads a phone to itself would be the first thing that fails."""
    hosts = ["127.0.0.1", "::1", "localhost", "127.0.0.2", "192.168.1.5"]
    assert [is_this_machines_usual(host) for host in hosts] == [True, True, True, False, False]


def test_a_code_is_a_square_of_half_blocks_with_a_border() -> None:
    """A phone finds the code by its corners, and needs light around them."""
    lines = code_of("http://192.168.1.5:8090")
    width = len(lines[0])

    assert {len(line) for line in lines} == {width}
    assert set("".join(lines)) <= set(" \u2580\u2584\u2588")
    assert len(lines) == (width + 1) // 2
    assert set(lines[0]) == {"\u2588"}
    # The corner: a row of seven dark ones over a light inside.
    assert lines[1].startswith("\u2588\u2588 \u2584\u2584\u2584\u2584\u2584 ")
    assert code_of("http://192.168.1.6:8090") != lines
