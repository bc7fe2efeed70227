import msgspec

from payrelay.api.connections.shares import APP_REQUESTS_MAX, shares_of
from payrelay.core.access.credential import Bound, Credential


def names(credential: Credential) -> list[str]:
    """Gives the names of the shares of a credential."""
    return [share.name for share in shares_of(credential, 512)]


def token(credential: Credential, token_id: str, bound: Bound) -> Credential:
    """Gives the credential of an app."""
    return msgspec.structs.replace(credential, id=token_id, bound=bound)


def test_a_phone_takes_nothing_from_its_shop(credential: Credential) -> None:
    """Phones count apart from the keys, and all of them together have half as much."""
    phone = token(credential, "ct_1", Bound(customer_id="cus_1"))

    assert set(names(phone)) & set(names(credential)) == set()
    assert [share.requests_max for share in shares_of(phone, 512)] == [256, APP_REQUESTS_MAX]
    assert shares_of(phone, 512)[0].whole_max == 512


def test_many_tokens_of_one_person_are_one(credential: Credential) -> None:
    """A customer who fetches a hundred tokens has no more than one who fetches one."""
    tokens = [token(credential, f"ct_{number}", Bound(order_id="A-1")) for number in range(3)]

    assert len({tuple(names(each)) for each in tokens}) == 1
    assert names(tokens[0])[1] != names(token(credential, "ct_9", Bound(order_id="A-2")))[1]
