from payrelay.api.public.refused_senders import ADDRESSES_MAX, OF_AN_ADDRESS_MAX, RefusedSenders
from payrelay.core.payments.schedules import DAY_MS


def test_one_address_does_not_hide_what_another_sends() -> None:
    """While the secret is wrong, the gateway's own notifications are refused too: an operator must still find them."""
    senders = RefusedSenders()
    forged = [senders.may_store("gateway", "192.0.2.7", 0) for _ in range(OF_AN_ADDRESS_MAX + 5)]

    assert forged == [True] * OF_AN_ADDRESS_MAX + [False] * 5
    assert senders.may_store("gateway", "198.51.100.1", 0)
    assert senders.may_store("another", "192.0.2.7", 0)


def test_each_day_begins_anew() -> None:
    """What goes on for days is seen each day."""
    senders = RefusedSenders(of_an_address_max=1)

    stored = [senders.may_store("gateway", "192.0.2.7", at_ms) for at_ms in (0, DAY_MS - 1, DAY_MS)]
    assert stored == [True, False, True]


def test_a_network_is_one_sender() -> None:
    """Whoever has an IPv6 network has any number of addresses in it."""
    senders = RefusedSenders(of_an_address_max=1)

    assert senders.may_store("gateway", "2001:db8::1", 0)
    assert not senders.may_store("gateway", "2001:db8::2", 0)


def test_very_many_addresses_share_what_is_left() -> None:
    """The count itself takes no more memory than that."""
    senders = RefusedSenders(of_an_address_max=1)
    for number in range(ADDRESSES_MAX):
        senders.may_store("gateway", f"10.0.{number // 256}.{number % 256}", 0)

    assert [senders.may_store("gateway", f"192.0.2.{last}", 0) for last in (1, 2)] == [True, False]
