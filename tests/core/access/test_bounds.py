"""What belongs to an app's credential, and what doesn't."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples import OPERATION

from payrelay.core.access.allowance import Allowance
from payrelay.core.access.bounds import (
    has_customer,
    has_operation,
    has_order,
    key_as_sent,
    key_of_bound,
    keys_of,
)
from payrelay.core.access.credential import Bound
from payrelay.core.access.person_names import PersonNames

NAMES = PersonNames(b"s" * 32)

ids = st.none() | st.sampled_from(["a", "b"])
bounds = st.builds(
    lambda customer_id, order_id, reference: (customer_id, order_id, reference), ids, ids, st.none() | st.just("user-1")
).filter(any)


def person(reference: str, order_id: str | None = None) -> Bound:
    """Gives what a person's token is bound to, as the identity provider's reader makes it."""
    return Bound(reference=reference, order_id=order_id, keys_of=NAMES.keys_of(reference))


def bound_to(customer_id: str | None, order_id: str | None, reference: str | None) -> Bound:
    """Gives a bound of a customer, an order or a person."""
    if reference is not None and customer_id is None:
        return person(reference, order_id)
    return Bound(customer_id=customer_id, order_id=order_id, reference=reference)


def test_a_bound_that_binds_nothing_is_none() -> None:
    """It would be a credential for everything."""
    with pytest.raises(ValueError, match="bound to"):
        Bound()
    with pytest.raises(ValueError, match="bound to"):
        Bound(allowance=Allowance(is_open=True, currency="LKR"))


def test_a_person_needs_a_name_that_may_be_stored() -> None:
    """Nobody can forget the digest: a credential without it would bring the person's own name into the database."""
    with pytest.raises(ValueError, match="keys_of"):
        Bound(reference="anna@example.org", order_id="A-1")


def test_everything_of_its_principal_belongs_to_a_key_that_is_not_bound() -> None:
    """A backend's key has no bounds, and may read all operations of its principal."""
    assert has_operation(None, OPERATION)


def test_an_order_binds_no_customer() -> None:
    """A token for an order pays it whoever the customer is; what is a customer's isn't touched by it."""
    assert has_customer(Bound(order_id="a"), "anybody")
    assert has_customer(Bound(order_id="a"), None)


@given(bounds, ids, ids)
def test_only_what_fits_all_its_bounds_is_its_own(
    members: tuple[str | None, str | None, str | None], customer_id: str | None, order_id: str | None
) -> None:
    """Customer and order must both fit where both are named; who isn't known yet owns nothing of a customer's."""
    bound = bound_to(*members)
    own = msgspec.structs.replace(OPERATION, order_id=order_id, customer_id=customer_id)

    assert has_operation(None, own)
    if has_operation(bound, own):
        assert bound.order_id in {None, order_id}
        assert bound.customer_id in {None, customer_id}
        assert bound.customer_id is not None or bound.order_id is not None
    else:
        assert not (has_order(bound, order_id) and has_customer(bound, customer_id))


@given(bounds, bounds, st.text(min_size=1), st.text(min_size=1))
def test_no_two_apps_share_a_key(
    one: tuple[str | None, str | None, str | None], other: tuple[str | None, str | None, str | None], k: str, m: str
) -> None:
    """Equal keys of two customers are two keys, and none of them is a key that a server would send by chance."""
    first = bound_to(one[0] and f"cus_{one[0]}", *one[1:])
    second = bound_to(other[0] and f"cus_{other[0]}", *other[1:])

    assert key_as_sent(first, key_of_bound(first, k)) == k
    if first.customer_id is not None and second.customer_id != first.customer_id:
        assert key_of_bound(first, k).partition("/")[0] != key_of_bound(second, m).partition("/")[0]


def test_no_name_passes_for_another_ones_key() -> None:
    """An app chooses its keys freely, and orders are called as shops like it; neither reaches another order's keys."""
    for short, long in ((Bound(order_id="A"), Bound(order_id="A/B")), (person("A"), person("A/B"))):
        assert key_of_bound(short, "B/k") != key_of_bound(long, "k")
        assert key_as_sent(long, key_of_bound(long, "k")) == "k"


def test_who_is_called_as_another_ones_digest_gets_nothing_of_it() -> None:
    """A shop sees the digests in its operations. Somebody may register under one: his keys are others still."""
    anna = person("anna@example.org")
    thief = person(keys_of(anna).removeprefix("person/"))

    assert key_of_bound(thief, "pay") != key_of_bound(anna, "pay")
    assert key_as_sent(thief, key_of_bound(anna, "pay")) == key_of_bound(anna, "pay")


def test_a_customer_keeps_the_keys_when_a_card_comes() -> None:
    """A repeat after a lost answer is known as one, although meanwhile there is a card, or another one."""
    before = person("user-1")
    first, second = (msgspec.structs.replace(before, customer_id=each, keys_of=keys_of(before)) for each in "12")

    assert key_of_bound(before, "k") == key_of_bound(first, "k") == key_of_bound(second, "k")
    assert key_as_sent(second, key_of_bound(first, "k")) == "k"


def test_an_app_gets_its_key_back_as_it_sent_it() -> None:
    """It compares the key with those of its own orders; how the service keeps it is no business of the app."""
    bound = person("anna@example.org")
    kept = key_of_bound(bound, "reference/pay")

    assert "anna" not in kept
    assert key_as_sent(bound, kept) == "reference/pay"


def test_a_key_is_shown_to_its_server_as_it_is_kept() -> None:
    """There it is one among many; and where there is none, none is shown."""
    bound = Bound(customer_id="cus_1")

    assert key_as_sent(None, key_of_bound(bound, "k")) == "cus_1/k"
    assert key_as_sent(bound, None) is None
    assert key_as_sent(bound, "another/k") == "another/k"
