"""What a sign-in provider may answer, at a real address: right, wrong, late, too much, and not at all."""

import time
from collections.abc import AsyncIterator, Iterator
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest
import structlog
from joserfc.jwk import ECKey
from structlog.testing import LogCapture
from tests.flows.world import HandClock
from tests.openid_provider import CLIENT_ID, CLIENT_SECRET, OpenIdProvider

from payrelay.console.rules.sign_in.provider import ProviderRules, TryKeys, authorization_address
from payrelay.console.runtime.provider_calls import (
    ASKED_AGAIN_S,
    METADATA_KEPT_S,
    ProviderDown,
    ProviderRefused,
    SignInProvider,
)
from payrelay.core.secret import Secret
from payrelay.runtime.identity_provider_keys import ANSWER_BYTES_MAX
from payrelay.runtime.identity_provider_keys import ASKED_AGAIN_S as KEYS_ASKED_AGAIN_S

KEYS = TryKeys("state", "cookie")


class Line:
    """A provider, and what asks it."""

    def __init__(self, provider: OpenIdProvider, secret: str = CLIENT_SECRET) -> None:
        self.provider = provider
        self.clock = HandClock()
        self.log = LogCapture()
        rules = ProviderRules(issuer=provider.issuer, client_id=CLIENT_ID)
        log = structlog.wrap_logger(None, processors=[self.log])
        self.asked = SignInProvider(rules, Secret(secret), "https://console.example/back", self.clock, log)

    async def code(self) -> str:
        """Has a code made."""
        address = authorization_address(await self.asked.metadata(), self.asked.rules, self.asked.way_back, KEYS)
        return dict(parse_qsl(urlsplit(self.provider.approved(dict(parse_qsl(urlsplit(address).query)))).query))["code"]

    async def claims(self) -> dict[str, object]:
        """Has a code made, and exchanges it."""
        return await self.asked.claims(await self.code(), KEYS.code_verifier)

    def pass_s(self, seconds: float) -> None:
        """Has time pass."""
        self.clock.passed_ms += round(seconds * 1000)

    @property
    def reasons(self) -> list[str]:
        """What the log says."""
        return [entry["reason"] for entry in self.log.entries]


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    """Gives the provider."""
    with OpenIdProvider() as provider:
        yield provider


@pytest.fixture
async def line(provider: OpenIdProvider) -> AsyncIterator[Line]:
    """Gives what asks it."""
    line = Line(provider)
    yield line
    await line.asked.close()


@pytest.mark.parametrize("methods", [None, ["client_secret_post"]], ids=["in the header", "in the form"])
async def test_a_code_is_exchanged_for_who_somebody_is(line: Line, methods: list[str] | None) -> None:
    """The client shows its secret in the way that the provider names."""
    line.provider.published = {} if methods is None else {"token_endpoint_auth_methods_supported": methods}
    claims = await line.claims()

    assert (claims["sub"], claims["nonce"]) == ("u-1", KEYS.nonce)
    assert ("client_secret" in line.provider.forms[0]) is (methods is not None)
    assert line.reasons == []


async def test_a_key_that_the_provider_has_changed_is_fetched(line: Line) -> None:
    """A provider rotates its keys whenever it likes, and the next sign-in goes on."""
    await line.claims()
    line.provider.rotate("second")
    line.pass_s(KEYS_ASKED_AGAIN_S)

    assert (await line.claims())["sub"] == "u-1"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((200, b"{}"), "the provider's answer has no id token"),
        ((200, b"<html>"), "the provider's answer has no id token"),
        pytest.param((200, b'{"a":' + b"[" * 100_000), "the provider's answer has no id token", id="nested"),
        ((200, b'{"id_token": "x"}'), "no key of the provider has signed the id token"),
        ((200, b'{"id_token": "e30.e30.e30"}'), "no key of the provider has signed the id token"),
        ((400, b'{"error": "invalid_grant"}'), "the provider refuses the code"),
    ],
    ids=str,
)
async def test_an_answer_that_cannot_be_believed_names_nobody(
    line: Line, answer: tuple[int, bytes], reason: str
) -> None:
    """And the log says why, in our words."""
    line.provider.answer = answer
    with pytest.raises(ProviderRefused):
        await line.claims()
    assert line.reasons == [reason]


async def test_an_operator_of_the_service_reads_why_nobody_was_signed_in(line: Line) -> None:
    """A provider that leaves a claim out keeps everybody out, and its page says nothing of it."""
    line.clock.passed_ms += round(time.time() * 1000) - line.clock.now_ms()
    line.asked.rules = msgspec.structs.replace(line.asked.rules, second_factors=frozenset({"otp"}))
    line.provider.changes = {"amr": ["otp"], "auth_time": int(time.time()) - 3_600}
    with pytest.raises(ProviderRefused):
        await line.asked.person(await line.code(), KEYS)
    line.provider.changes = {"amr": ["otp"]}
    person = await line.asked.person(await line.code(), KEYS)

    assert (person.email, person.has_second_factor) == ("ada@shop.example", True)
    assert line.reasons == ["the second factor was shown some time ago, though it was to be asked for now"]


async def test_a_token_that_another_has_signed_names_nobody(line: Line) -> None:
    """Also under the id of a key that the provider has."""
    line.provider.signer = ECKey.generate_key("P-256", {"kid": "first"})
    with pytest.raises(ProviderRefused):
        await line.claims()
    assert line.reasons == ["the signature of the id token is wrong"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((401, b'{"error": "invalid_client"}'), "the provider's token endpoint answered with HTTP 401"),
        ((302, b""), "the provider's token endpoint answered with HTTP 302"),
        ((500, b"s3cret"), "the provider's token endpoint answered with HTTP 500"),
        ((200, b" " * (ANSWER_BYTES_MAX + 1)), "the answer of the provider's token endpoint is too long"),
    ],
    ids=["401", "302", "500", "too long"],
)
async def test_a_provider_that_does_not_serve_us_is_down(line: Line, answer: tuple[int, bytes], reason: str) -> None:
    """Nobody signs in then, and nothing of the answer is in the log."""
    line.provider.answer = answer
    with pytest.raises(ProviderDown):
        await line.claims()
    assert line.reasons == [reason]


async def test_a_wrong_client_secret_lets_nobody_in(provider: OpenIdProvider) -> None:
    """The log says what an administrator needs to know, and not the secret."""
    line = Line(provider, "wrong")
    with pytest.raises(ProviderDown):
        await line.claims()
    assert line.reasons == ["the provider's token endpoint answered with HTTP 401"]


async def test_a_provider_that_is_down_is_asked_again_after_a_while(line: Line) -> None:
    """Those who press the button over and over don't wait for it; what it published before still holds."""
    line.provider.is_up = False
    for _ in range(3):
        with pytest.raises(ProviderDown):
            await line.asked.metadata()
    assert line.reasons == ["the address answered with HTTP 503"]
    line.provider.is_up = True
    line.pass_s(ASKED_AGAIN_S)
    metadata = await line.asked.metadata()
    line.provider.is_up = False
    line.pass_s(METADATA_KEPT_S)

    assert await line.asked.metadata() is metadata


async def test_a_provider_whose_keys_cannot_be_had_is_down(line: Line) -> None:
    """It says who somebody is, and nobody can check it."""
    line.provider.published = {"jwks_uri": line.provider.issuer + "/nowhere"}
    with pytest.raises(ProviderDown):
        await line.claims()


async def test_an_address_where_nobody_is_is_down(line: Line) -> None:
    """A token endpoint that refuses the connection."""
    line.provider.published = {"token_endpoint": "http://127.0.0.1:9/token"}
    with pytest.raises(ProviderDown):
        await line.claims()
    assert line.reasons == ["the provider's token endpoint can't be reached"]
