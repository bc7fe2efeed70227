import asyncio

import msgspec
import pytest
from tests.api.fakes import KEY, Keyring, MovableClock

from payrelay.api.auth.authentication import (
    CREDENTIALS_CACHED_MAX,
    AuthenticationFailure,
    Authenticator,
    Unauthenticated,
)
from payrelay.api.http.incoming_request import Headers
from payrelay.core.access.credential import Credential, compose_key, hash_of
from payrelay.errors import Code, Refusal, StoreUnavailable


def bearer(key: str) -> Headers:
    """Makes the header that brings a key."""
    return Headers([(b"authorization", f"Bearer {key}".encode())])


class HeldKeyring(Keyring):
    """A store whose answers are on their way until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.free = asyncio.Event()

    async def get(self, credential_id: str) -> Credential | None:
        """Reads one credential now, and gives it later."""
        try:
            return await super().get(credential_id)
        finally:
            await self.free.wait()


@pytest.fixture
def held(credential: Credential) -> HeldKeyring:
    """Gives a store with one key, whose answers aren't let go yet."""
    keyring = HeldKeyring()
    keyring.by_id[credential.id] = credential
    return keyring


async def begun(authenticator: Authenticator, number: int, key: str = KEY) -> "list[asyncio.Task[Credential]]":
    """Begins requests with one key at one moment."""
    asking = [asyncio.ensure_future(authenticator.admit(bearer(key))) for _ in range(number)]
    await asyncio.sleep(0)
    return asking


@pytest.fixture
def authenticator(keyring: Keyring, clock: MovableClock) -> Authenticator:
    """Gives a authenticator before the keyring."""
    return Authenticator(keyring, clock)


async def test_a_known_key_is_admitted(authenticator: Authenticator, credential: Credential) -> None:
    """The caller becomes its credential; the scheme's name may be written in any case."""
    assert await authenticator.admit(bearer(KEY)) == credential
    assert await authenticator.admit(Headers([(b"authorization", b"bearer  " + KEY.encode())])) == credential


@pytest.mark.parametrize(
    "value",
    ["", "Bearer", "Bearer ", "Basic " + KEY, KEY, "Bearer prk_sandbox_x", f"Bearer {KEY}x", f"Bearer {KEY}, {KEY}",
     "Bearer é", "Bearer " + KEY[:-1] + ("0" if KEY[-1] != "0" else "1")],
)  # fmt: skip
async def test_a_malformed_key_costs_no_look_into_the_store(
    authenticator: Authenticator, keyring: Keyring, value: str
) -> None:
    """Noise and mistyped keys are turned away by their form and checksum alone."""
    with pytest.raises(Refusal) as raised:
        await authenticator.admit(Headers([(b"authorization", value.encode("latin-1"))]))
    assert raised.value.code is Code.UNAUTHENTICATED
    assert raised.value.headers == (("WWW-Authenticate", 'Bearer realm="payrelay"'),)
    assert keyring.reads == 0


@pytest.mark.parametrize(
    ("given", "failure"),
    [
        (None, AuthenticationFailure.MISSING),
        ("Basic x", AuthenticationFailure.WRONG),
        ("Bearer x", AuthenticationFailure.WRONG),
    ],
)
async def test_reasons_of_refusals_are_counted_apart(
    authenticator: Authenticator, given: str | None, failure: AuthenticationFailure
) -> None:
    """Only who tries keys is slowed down."""
    headers = Headers([] if given is None else [(b"authorization", given.encode())])
    with pytest.raises(Unauthenticated) as raised:
        await authenticator.admit(headers)
    assert raised.value.failure is failure


async def test_two_authorization_headers_are_none(authenticator: Authenticator) -> None:
    """A proxy in between may have checked the other one."""
    pair = (b"authorization", f"Bearer {KEY}".encode())
    with pytest.raises(Refusal, match="more than one"):
        await authenticator.admit(Headers([pair, pair]))


async def test_another_secret_under_a_known_id_is_unknown(authenticator: Authenticator) -> None:
    """The id may be shown around; it opens nothing, also right after the true key was used."""
    await authenticator.admit(bearer(KEY))
    with pytest.raises(Refusal, match="not known"):
        await authenticator.admit(bearer(compose_key("sandbox", "abcdefghijkl", "t" * 43)))


async def test_a_credential_is_remembered_for_a_second(
    authenticator: Authenticator, keyring: Keyring, clock: MovableClock
) -> None:
    """One read of the store serves a second of requests, and no longer: then a revocation counts."""
    for _ in range(3):
        await authenticator.admit(bearer(KEY))
    assert keyring.reads == 1
    keyring.by_id["abcdefghijkl"] = msgspec.structs.replace(keyring.by_id["abcdefghijkl"], revoked_at_ms=0)
    clock.at_s += 1
    with pytest.raises(Refusal, match="expired or revoked"):
        await authenticator.admit(bearer(KEY))


async def test_requests_of_one_moment_share_one_read(
    held: HeldKeyring, clock: MovableClock, credential: Credential
) -> None:
    """Once a second each process reads a busy key again: once, and not once for each connection."""
    asking = await begun(Authenticator(held, clock), 20)
    held.free.set()
    assert await asyncio.gather(*asking) == [credential] * 20
    assert held.reads == 1


async def test_a_store_that_is_down_tells_all_who_wait_at_once(held: HeldKeyring, clock: MovableClock) -> None:
    """They must not ask one after the other a store that takes seconds to fail."""
    held.is_broken = True
    asking = await begun(Authenticator(held, clock), 20)
    held.free.set()
    got = await asyncio.gather(*asking, return_exceptions=True)
    assert {type(each) for each in got} == {StoreUnavailable}
    assert held.reads == 1


async def test_a_client_that_goes_away_refuses_nobody(
    held: HeldKeyring, clock: MovableClock, credential: Credential
) -> None:
    """Its read ends with it, and whoever waited for that reads by himself."""
    asking = await begun(Authenticator(held, clock), 3)
    asking[0].cancel()
    held.free.set()
    assert await asyncio.gather(*asking[1:]) == [credential] * 2


async def test_a_slow_read_is_not_shared_for_longer_than_a_second(
    held: HeldKeyring, clock: MovableClock, credential: Credential
) -> None:
    """A revocation counts within a second, however long the store takes."""
    asking = await begun(Authenticator(held, clock), 2)
    held.by_id[credential.id] = msgspec.structs.replace(credential, revoked_at_ms=0)
    clock.at_s += 1
    held.free.set()
    first, second = await asyncio.gather(*asking, return_exceptions=True)
    assert first == credential
    assert isinstance(second, Unauthenticated)


async def test_that_a_key_is_unknown_is_not_shared(
    held: HeldKeyring, clock: MovableClock, credential: Credential
) -> None:
    """A key that is made while somebody tries it works for whoever comes after that."""
    held.by_id.clear()
    asking = await begun(Authenticator(held, clock), 2)
    held.by_id[credential.id] = credential
    held.free.set()
    first, second = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(first, Unauthenticated)
    assert second == credential


async def test_an_expiry_counts_at_once(authenticator: Authenticator, keyring: Keyring, clock: MovableClock) -> None:
    """Expiry is checked at every request, whether the credential is cached or not."""
    keyring.by_id["abcdefghijkl"] = msgspec.structs.replace(
        keyring.by_id["abcdefghijkl"], expires_at_ms=clock.now_ms() + 500
    )
    await authenticator.admit(bearer(KEY))
    clock.at_s += 0.5
    with pytest.raises(Refusal, match="expired or revoked"):
        await authenticator.admit(bearer(KEY))


async def test_a_new_key_works_at_once(authenticator: Authenticator, keyring: Keyring, credential: Credential) -> None:
    """Unknown keys are not cached: a key that was just made is admitted after a failed attempt."""
    key = compose_key("sandbox", "000000000001", "n" * 43)
    with pytest.raises(Refusal):
        await authenticator.admit(bearer(key))
    keyring.by_id["000000000001"] = msgspec.structs.replace(credential, id="000000000001", key_hash=hash_of(key))
    assert (await authenticator.admit(bearer(key))).id == "000000000001"


async def test_wrong_keys_never_lock_out_a_valid_one(authenticator: Authenticator) -> None:
    """Guessing costs the guesser; who has the key doesn't notice."""
    for number in range(200):
        with pytest.raises(Refusal):
            await authenticator.admit(bearer(compose_key("sandbox", "abcdefghijkl", f"{number:043d}")))
    assert (await authenticator.admit(bearer(KEY))).principal == "shop"


async def test_a_store_that_is_down_is_not_a_wrong_key(authenticator: Authenticator, keyring: Keyring) -> None:
    """A client must not throw its key away because our store was restarted."""
    keyring.is_broken = True
    with pytest.raises(StoreUnavailable):
        await authenticator.admit(bearer(KEY))


async def test_what_is_remembered_has_a_bound(
    authenticator: Authenticator, keyring: Keyring, credential: Credential
) -> None:
    """However many keys are used within a second, memory stays bounded."""
    for number in range(CREDENTIALS_CACHED_MAX + 5):
        key = compose_key("sandbox", f"{number:012d}", "n" * 43)
        keyring.by_id[f"{number:012d}"] = msgspec.structs.replace(credential, key_hash=hash_of(key))
        await authenticator.admit(bearer(key))
    assert len(authenticator._cache) == CREDENTIALS_CACHED_MAX
