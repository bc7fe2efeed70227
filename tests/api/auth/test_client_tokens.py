"""Which client tokens the service admits, and why it refuses others."""

from typing import Any

import msgspec
import pytest
from tests.api.fakes import Keyring, MovableClock
from tests.core.access.test_client_token import PARENT, TOKEN

from payrelay.api.auth.authentication import (
    CREDENTIAL_CACHED_MS,
    AuthenticationFailure,
    Authenticator,
    TokenReaders,
    Unauthenticated,
)
from payrelay.api.auth.client_tokens import ClientTokenReader, Reason, TokenSources
from payrelay.api.http.incoming_request import Headers
from payrelay.core.access.client_token import LEEWAY_MS, ClientToken, Parentage
from payrelay.core.access.credential import Credential
from payrelay.core.access.signatures import SigningKey, signed
from payrelay.errors import StoreUnavailable

KEY = SigningKey(id="k1", secret=b"s" * 32, made_at_ms=0)
OTHER = SigningKey(id="k1", secret=b"o" * 32, made_at_ms=0)


class TokenStore:
    """Signing keys and issued tokens in dictionaries; counts the reads, and can be out of order."""

    def __init__(self) -> None:
        self.keys = {KEY.id: KEY}
        self.parents = {TOKEN.id: Parentage(revoked_at_ms=None, parent=PARENT)}
        self.reads = 0
        self.is_broken = False

    async def find(self, key_id: str) -> SigningKey | None:
        """Gives a key."""
        return self.keys.get(key_id)

    async def parentage(self, token_id: str) -> Parentage | None:
        """Gives what decides about a token."""
        self.reads += 1
        if self.is_broken:
            raise StoreUnavailable("the store is closed")
        return self.parents.get(token_id)


@pytest.fixture
def store() -> TokenStore:
    """Gives the store with one token in it."""
    return TokenStore()


@pytest.fixture
def authenticator(store: TokenStore, keyring: Keyring, clock: MovableClock) -> Authenticator:
    """Gives a authenticator who knows client tokens."""
    return Authenticator(
        keyring, clock, TokenReaders(client_tokens=ClientTokenReader(TokenSources(store, store), clock))
    )


async def admitted(authenticator: Authenticator, token: ClientToken = TOKEN, key: SigningKey = KEY) -> Credential:
    """Authenticates with a token."""
    return await authenticator.admit(Headers([(b"authorization", f"Bearer {signed(token, key)}".encode())]))


async def refusal(authenticator: Authenticator, token: ClientToken = TOKEN, key: SigningKey = KEY) -> Unauthenticated:
    """Authenticates with a token that is refused."""
    with pytest.raises(Unauthenticated) as raised:
        await admitted(authenticator, token, key)
    return raised.value


async def test_a_token_gives_its_bound_credential(authenticator: Authenticator, store: TokenStore) -> None:
    """It is bound, under its parent's name; within a second, one read of the store serves all its requests."""
    credential = await admitted(authenticator)
    await admitted(authenticator)

    assert credential.bound is not None
    assert (credential.id, credential.principal, credential.bound.order_id) == (TOKEN.id, "shop", TOKEN.order_id)
    assert store.reads == 1


@pytest.mark.parametrize(
    ("changes", "key", "reason"),
    [
        ({}, OTHER, Reason.SIGNATURE),
        ({}, SigningKey(id="gone", secret=b"s" * 32, made_at_ms=0), Reason.KEY),
        ({"id": "ct_1"}, KEY, Reason.CLAIMS),
        ({"principal": "other"}, KEY, Reason.CLAIMS),
        ({"credential_id": "000000000000"}, KEY, Reason.CLAIMS),
        ({"id": "ct_" + "f" * 32}, KEY, Reason.UNKNOWN),
    ],
)
async def test_what_is_wrong_with_a_token_is_counted(
    authenticator: Authenticator, changes: dict[str, Any], key: SigningKey, reason: Reason
) -> None:
    """Those who guess are slowed down as they are with keys; who held a good one is not."""
    refused = await refusal(authenticator, msgspec.structs.replace(TOKEN, **changes), key)

    assert refused.reason == reason
    assert refused.failure is (AuthenticationFailure.ENDED if reason is Reason.UNKNOWN else AuthenticationFailure.WRONG)


async def test_a_token_ends_to_the_second(authenticator: Authenticator, clock: MovableClock) -> None:
    """Its times are checked at every request, whether the token is cached or not."""
    clock.at_s = TOKEN.expires_at_ms / 1000 - 0.5
    await admitted(authenticator)
    clock.at_s += 0.5

    for _ in range(2):
        refused = await refusal(authenticator)
        assert (refused.reason, refused.failure) == (Reason.EXPIRED, AuthenticationFailure.ENDED)
        clock.at_s += 10


async def test_a_token_from_the_future_is_early(authenticator: Authenticator, clock: MovableClock) -> None:
    """Our processes' clocks differ by less."""
    clock.at_s = (TOKEN.issued_at_ms - LEEWAY_MS) / 1000 - 2
    assert (await refusal(authenticator)).reason == Reason.EARLY

    clock.at_s += 2
    await admitted(authenticator)


@pytest.mark.parametrize(
    ("parentage", "reason"),
    [
        (Parentage(revoked_at_ms=1, parent=PARENT), Reason.REVOKED),
        (Parentage(revoked_at_ms=None, parent=msgspec.structs.replace(PARENT, revoked_at_ms=1)), Reason.PARENT),
        (Parentage(revoked_at_ms=None, parent=msgspec.structs.replace(PARENT, expires_at_ms=1)), Reason.PARENT),
    ],
)
async def test_a_revocation_counts_within_a_second(
    authenticator: Authenticator, store: TokenStore, clock: MovableClock, parentage: Parentage, reason: Reason
) -> None:
    """Of the token or of its key; what is remembered is forgotten by then."""
    await admitted(authenticator)
    store.parents[TOKEN.id] = parentage
    clock.at_s += CREDENTIAL_CACHED_MS / 1000

    refused = await refusal(authenticator)
    assert (refused.reason, refused.failure) == (reason, AuthenticationFailure.ENDED)


async def test_the_texts_of_tokens_are_refused_by_form(authenticator: Authenticator, store: TokenStore) -> None:
    """Without a read of the store, however long they are."""
    for text in ("prt_", "prt_a.b", "prt_a.b.", f"prt_{'x' * 3000}.y.{'z' * 3000}", "prt_é.b.c", "prt_a.b.c.d"):
        with pytest.raises(Unauthenticated) as raised:
            await authenticator.admit(Headers([(b"authorization", f"Bearer {text}".encode("latin-1"))]))
        assert raised.value.reason == Reason.FORM
        assert raised.value.failure is AuthenticationFailure.WRONG
    assert store.reads == 0


async def test_a_store_that_is_down_is_not_a_wrong_token(authenticator: Authenticator, store: TokenStore) -> None:
    """An app must not throw its token away because our store was restarted."""
    store.is_broken = True
    with pytest.raises(StoreUnavailable):
        await admitted(authenticator)


async def test_where_there_are_no_tokens_there_are_none(keyring: Keyring, clock: MovableClock) -> None:
    """A program without client tokens admits nobody by one."""
    with pytest.raises(Unauthenticated) as raised:
        await admitted(Authenticator(keyring, clock))
    assert raised.value.failure is AuthenticationFailure.WRONG
