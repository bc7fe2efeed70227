import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from payrelay.core.access.credential import (
    ALPHABET,
    DEFAULT_SCOPES,
    ID_LENGTH,
    SECRET_LENGTH,
    Credential,
    Scope,
    compose_key,
    hash_of,
    id_of_key,
    is_usable,
    require,
    require_amount,
)
from payrelay.errors import Code, Refusal

ids = st.text(ALPHABET, min_size=ID_LENGTH, max_size=ID_LENGTH)
secrets = st.text(ALPHABET, min_size=SECRET_LENGTH, max_size=SECRET_LENGTH)
environments = st.sampled_from(["sandbox", "live"])
composed = st.builds(compose_key, environments, ids, secrets)

CREDENTIAL = Credential(
    id="000000000001",
    principal="shop",
    key_hash=b"",
    scopes=DEFAULT_SCOPES,
    accounts=None,
    amount_max_minor=None,
    rate=None,
    created_at_ms=0,
    expires_at_ms=None,
    revoked_at_ms=None,
)


def made(**members: object) -> Credential:
    """Gives a credential without limits, but for what is named."""
    return msgspec.structs.replace(CREDENTIAL, **members)


@given(environment=environments, credential_id=ids, secret=secrets)
def test_a_key_tells_its_own_id(environment: str, credential_id: str, secret: str) -> None:
    """The store is asked by the id; the secret is compared by its hash."""
    assert id_of_key(compose_key(environment, credential_id, secret)) == credential_id


@given(key=composed, position=st.integers(0, 200), other=st.characters(max_codepoint=0x7F))
def test_a_key_with_any_one_character_changed_is_no_key(key: str, position: int, other: str) -> None:
    """A mistyped key is refused without a read of the store."""
    position %= len(key)
    assume(key[position] != other)
    assert id_of_key(key[:position] + other + key[position + 1 :]) is None


@given(key=composed, length=st.integers(0, 80))
def test_a_cut_key_is_no_key(key: str, length: int) -> None:
    """Copying often loses the end."""
    assume(length < len(key))
    assert id_of_key(key[:length]) is None
    assert id_of_key(key + "\n") is None


def test_a_key_is_written_as_it_always_was() -> None:
    """Keys that were given out must be read for ever; the digits of the checksum are part of the format."""
    key = compose_key("sandbox", "0" * ID_LENGTH, "0" * SECRET_LENGTH)
    assert key == "prk_sandbox_000000000000_0000000000000000000000000000000000000000000" + key[-6:]
    assert id_of_key(key) == "0" * ID_LENGTH
    assert len(key) == 74


def test_the_hash_covers_the_whole_key() -> None:
    """A sandbox key with the secret of a live one is another key."""
    sandbox, live = (compose_key(name, "0" * ID_LENGTH, "0" * SECRET_LENGTH) for name in ("sandbox", "live"))
    assert hash_of(sandbox) != hash_of(live)
    assert len(hash_of(live)) == 32


@pytest.mark.parametrize(
    ("members", "usable"),
    [
        ({}, True),
        ({"expires_at_ms": 1_001}, True),
        ({"expires_at_ms": 1_000}, False),
        ({"revoked_at_ms": 1_000}, False),
        ({"revoked_at_ms": 1_001}, False),
    ],
)
def test_a_credential_ends_at_its_time(members: dict[str, int], usable: bool) -> None:  # noqa: FBT001 - expected
    """At the very millisecond it is over, not one later; and no revocation is put off."""
    assert is_usable(made(**members), 1_000) is usable


@pytest.mark.parametrize("scope", Scope)
def test_a_scope_that_was_not_given_is_refused_by_name(scope: Scope) -> None:
    """Whoever set the key up can see what is missing."""
    with pytest.raises(Refusal, match=scope) as caught:
        require(made(scopes=frozenset()), scope, "gateway")
    assert caught.value.code is Code.FORBIDDEN


@pytest.mark.parametrize("scope", Scope)
def test_a_scope_allows_itself_and_reading_all_allows_reading(scope: Scope) -> None:
    """The wider scope of the two includes the narrower, and nothing else includes anything."""
    allowed = [other for other in Scope if _is_allowed(frozenset({scope}), other)]
    includes = {Scope.OPERATIONS_READ} if scope is Scope.OPERATIONS_READ_ALL else set()
    assert set(allowed) == {scope} | includes


def _is_allowed(scopes: frozenset[Scope], scope: Scope) -> bool:
    try:
        require(made(scopes=scopes), scope, "gateway")
    except Refusal:
        return False
    return True


def test_seeing_or_changing_everybodys_things_is_never_a_default() -> None:
    """A key made without thinking must not read what others did, and not act on what is theirs."""
    assert frozenset(Scope) - DEFAULT_SCOPES == {Scope.OPERATIONS_READ_ALL, Scope.ANY_PRINCIPAL}


def test_a_credential_works_on_its_accounts_only() -> None:
    """One merchant's key must not charge through another's account; None means all."""
    shop = made(accounts=frozenset({"shop"}))
    require(shop, Scope.PAYMENTS_CHARGE, "shop")
    require(made(), Scope.PAYMENTS_CHARGE, "other")
    with pytest.raises(Refusal, match="account other"):
        require(shop, Scope.PAYMENTS_CHARGE, "other")


@pytest.mark.parametrize("amount_minor", [10_001, None])
def test_an_amount_over_the_limit_or_not_named_is_refused(amount_minor: int | None) -> None:
    """A refund of the whole names no amount, so that a limit could not be held against it."""
    with pytest.raises(Refusal, match=r"100\.00") as caught:
        require_amount(made(amount_max_minor=10_000), amount_minor)
    assert caught.value.code is Code.FORBIDDEN


@pytest.mark.parametrize(("limit", "amount_minor"), [(10_000, 10_000), (None, 10**14), (None, None)])
def test_an_amount_up_to_the_limit_is_allowed(limit: int | None, amount_minor: int | None) -> None:
    """The limit itself is allowed; without one everything is."""
    require_amount(made(amount_max_minor=limit), amount_minor)
