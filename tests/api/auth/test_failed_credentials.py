import pytest
from tests.api.fakes import MovableClock

from payrelay.api.auth.failed_credentials import ADDRESSES_MAX, FAILURES, FailedCredentials
from payrelay.core.access.networks import network_of
from payrelay.errors import Code, Refusal


def fail(failed: FailedCredentials, address: str, times: int) -> None:
    """Notes so many failures from an address."""
    for _ in range(times):
        failed.note(address)


def test_the_next_one_after_so_many_is_refused(clock: MovableClock) -> None:
    """With what a client needs to behave: when it may try again, and what the rule is."""
    failed = FailedCredentials(clock)
    fail(failed, "203.0.113.9", FAILURES.count)
    clock.at_s += 10
    with pytest.raises(Refusal) as raised:
        failed.note("203.0.113.9")
    assert (raised.value.code, raised.value.retry_after_s) == (Code.RATE_LIMITED, 50)
    assert ("RateLimit", '"failed-credentials";r=0;t=50') in raised.value.headers
    assert ("RateLimit-Policy", '"failed-credentials";q=20;w=60') in raised.value.headers


def test_a_minute_later_an_answer_says_again_what_was_wrong(clock: MovableClock) -> None:
    """Refused attempts don't count: no address is refused for longer than the window."""
    failed = FailedCredentials(clock)
    fail(failed, "203.0.113.9", FAILURES.count)
    clock.at_s += FAILURES.window_s / 2
    with pytest.raises(Refusal):
        failed.note("203.0.113.9")
    clock.at_s += FAILURES.window_s / 2
    fail(failed, "203.0.113.9", FAILURES.count)


def test_addresses_do_not_share(clock: MovableClock) -> None:
    """Guesses from one address slow down no other address."""
    failed = FailedCredentials(clock)
    fail(failed, "203.0.113.9", FAILURES.count)
    fail(failed, "203.0.113.10", FAILURES.count)


def test_a_network_of_addresses_is_one(clock: MovableClock) -> None:
    """Who has an IPv6 network has more addresses than we have memory."""
    failed = FailedCredentials(clock)
    for number in range(FAILURES.count):
        failed.note(f"2001:db8:1:2::{number:x}")
    with pytest.raises(Refusal):
        failed.note("2001:db8:1:2:ffff::1")
    failed.note("2001:db8:1:3::1")


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("unix:", ""),
    ],
)
def test_who_stands_for_whom(address: str, network: str) -> None:
    """One written in two ways is one; what is no address is one as well."""
    assert network_of(address) == network


def test_memory_is_bounded(clock: MovableClock) -> None:
    """Failures from everywhere cost a fixed amount; the one that failed longest ago is forgotten first."""
    failed = FailedCredentials(clock)
    fail(failed, "203.0.113.9", FAILURES.count)
    failed.note("203.0.113.10")
    for number in range(ADDRESSES_MAX - 1):
        failed.note(f"10.0.{number // 256}.{number % 256}")
    assert len(failed._windows._windows) == ADDRESSES_MAX
    failed.note("203.0.113.9")
