import msgspec
import pytest
from tests.flows.world import CREDENTIAL

from payrelay.core.access.credential import Bound, Scope
from payrelay.core.access.ownership import OrderOwners, acts_for_any, may_act

EVERYBODYS = msgspec.structs.replace(CREDENTIAL, scopes=frozenset({Scope.ANY_PRINCIPAL}))


@pytest.mark.parametrize(
    ("owners", "acts_for", "expected"),
    [
        (set(), set(), True),
        ({"shop"}, set(), True),
        ({"kiosk"}, set(), False),
        ({"kiosk", "shop"}, set(), True),
        ({"kiosk"}, {"kiosk"}, True),
        ({"kiosk"}, {"web"}, False),
    ],
)
def test_a_thing_is_foreign_where_all_its_owners_are_others(
    owners: set[str], acts_for: set[str], *, expected: bool
) -> None:
    """What nobody is known to own stays open; of several owners one's own is enough, and so is one of the group."""
    assert may_act(CREDENTIAL, frozenset(owners), frozenset(acts_for)) is expected


def test_the_scope_opens_everything() -> None:
    """Somebody must be able to help every shop of a merchant."""
    assert may_act(EVERYBODYS, frozenset({"kiosk"}))


def test_a_token_never_has_the_scope() -> None:
    """Whatever its issuer has: a stolen phone must not act for other shops."""
    phone = msgspec.structs.replace(EVERYBODYS, bound=Bound(order_id="A-1"))

    assert not acts_for_any(phone)
    assert not may_act(phone, frozenset({"kiosk"}))


def test_all_owners_of_an_order_are_those_of_both_kinds() -> None:
    """Who is charging it owns it like those who have paid it."""
    assert OrderOwners(settled=frozenset({"a"}), charging=frozenset({"b"})).all == {"a", "b"}
