import uuid

from payrelay_simulator.draws import Draws


def test_same_seed_gives_the_same_sequence() -> None:
    """A failure found with a seed can be shown again."""
    assert [Draws(7).uuid("token") for _ in range(2)] == [Draws(7).uuid("token") for _ in range(2)]


def test_sequences_of_two_purposes_do_not_disturb_each_other() -> None:
    """One more call of one kind changes no identifier of another kind."""
    draws, other = Draws(7), Draws(7)
    other.uuid("another purpose")

    assert draws.uuid("token") == other.uuid("token")


def test_uuid_is_of_version_four() -> None:
    """Clients may check the form of a token."""
    assert uuid.UUID(Draws(1).uuid("token")).version == 4


def test_customer_token_has_the_gateways_form() -> None:
    """Thirty-two upper-case hexadecimal digits, as the notification brings them."""
    token = Draws(1).token("customer")

    assert len(token) == 32
    assert set(token) <= set("0123456789ABCDEF")


def test_fractions_lie_between_zero_and_one() -> None:
    """A probability of one always strikes and a probability of zero never."""
    draws = Draws(3)

    assert all(0 <= draws.fraction("fault") < 1 for _ in range(1000))
