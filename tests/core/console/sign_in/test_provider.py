"""What a provider's answers must say before anybody is believed to be somebody."""

import json
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from payrelay.console.rules.sign_in.provider import (
    ProviderAnswerError,
    ProviderRules,
    TryKeys,
    authorization_address,
    metadata_of,
    person_of,
)

ISSUER = "https://login.example/realms/shop"
RULES = ProviderRules(issuer=ISSUER, client_id="console")
NOW_MS = 1_800_000_000_000
NOW_S = NOW_MS // 1000
CLAIMS: dict[str, object] = {
    "iss": ISSUER,
    "aud": "console",
    "sub": "u-1",
    "nonce": "n",
    "iat": NOW_S - 5,
    "exp": NOW_S + 60,
    "email": "Ada@Shop.example",
    "email_verified": True,
}
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": "https://login.example/auth",
    "token_endpoint": "https://login.example/token",
    "jwks_uri": "https://login.example/keys",
}


def test_a_person_is_known_by_issuer_and_subject() -> None:
    """The address is read as an operator's address is; equal subjects of two issuers are two people."""
    person = person_of(CLAIMS, RULES, "n", NOW_MS)
    other = person_of(CLAIMS | {"iss": "https://b"}, msgspec.structs.replace(RULES, issuer="https://b"), "n", NOW_MS)

    assert (person.email, person.has_second_factor) == ("ada@shop.example", False)
    assert person.subject_hash != other.subject_hash
    assert "u-1" not in person.subject_hash


@pytest.mark.parametrize(
    "change",
    [
        {"iss": ISSUER + "/"},
        {"aud": "another"},
        {"aud": ["console", "another"]},
        {"aud": ["console", "another"], "azp": "another"},
        {"aud": "console", "azp": "another"},
        {"aud": None},
        {"nonce": "m"},
        {"nonce": None},
        {"nonce": ["n"]},
        {"sub": ""},
        {"sub": None},
        {"sub": "x" * 256},
        {"sub": 7},
        {"exp": NOW_S - 31},
        {"exp": True},
        {"exp": None},
        {"iat": NOW_S + 31},
        {"iat": NOW_S - 631},
        {"iat": "now"},
        {"nbf": NOW_S + 31},
        {"nbf": "now"},
        {"hd": "other.example"},
        {"hd": None},
    ],
    ids=str,
)
def test_a_claim_that_is_not_right_names_nobody(change: dict[str, object]) -> None:
    """Of another issuer, client, try or time, or without what the settings require; and no message quotes a claim."""
    rules = msgspec.structs.replace(RULES, requires=(("hd", "shop.example"),))
    right = CLAIMS | {"hd": "shop.example", "nbf": NOW_S + 30}
    person_of(right, rules, "n", NOW_MS)
    with pytest.raises(ProviderAnswerError) as raised:
        person_of({name: value for name, value in (right | change).items() if value is not None}, rules, "n", NOW_MS)
    assert "example" not in str(raised.value)


def test_a_token_for_several_clients_says_who_asked() -> None:
    """Only the client that the provider made it for takes it."""
    claims = CLAIMS | {"aud": ["console", "another"], "azp": "console"}

    assert person_of(claims, RULES, "n", NOW_MS).email == "ada@shop.example"


@pytest.mark.parametrize(
    "change",
    [
        *({"email_verified": False}, {"email_verified": "true"}, {"email_verified": 1}, {"email": "ada"}, {"email": 3}),
        {"email": "\u00a0ada@shop.example"},
    ],
    ids=str,
)
def test_an_address_counts_only_where_it_is_verified(change: dict[str, object]) -> None:
    """Whoever may type any address into their own account must not become its operator."""
    assert person_of(CLAIMS | change, RULES, "n", NOW_MS).email is None


def test_the_claims_of_the_address_are_settings() -> None:
    """Some providers name them otherwise; the usual ones don't count then."""
    rules = msgspec.structs.replace(RULES, email_claim="upn", verified_claim="xms_edov")

    assert person_of(CLAIMS, rules, "n", NOW_MS).email is None
    assert person_of(CLAIMS | {"upn": "b@c.example", "xms_edov": True}, rules, "n", NOW_MS).email == "b@c.example"


@pytest.mark.parametrize(
    ("told", "counts"),
    [
        ({"amr": ["pwd", "otp"]}, True),
        ({"acr": "gold"}, True),
        ({"amr": ["pwd"]}, False),
        ({"amr": "otp"}, False),
        ({"acr": ["gold"]}, False),
        ({}, False),
    ],
    ids=str,
)
def test_a_second_factor_is_what_the_settings_name(told: dict[str, object], *, counts: bool) -> None:
    """Where they name nothing, the provider's word counts for none."""
    rules = msgspec.structs.replace(RULES, second_factors=frozenset({"otp", "gold"}))

    assert person_of(CLAIMS | {"auth_time": NOW_S - 90} | told, rules, "n", NOW_MS).has_second_factor is counts
    assert not person_of(CLAIMS | told, RULES, "n", NOW_MS).has_second_factor


@pytest.mark.parametrize("told", [NOW_S - 91, NOW_S + 31, None, "now", True], ids=str)
def test_a_second_factor_of_some_time_ago_lets_nobody_in(told: object) -> None:
    """Whoever finds an open browser has a session at the provider too, and would be signed in anew by one click."""
    rules = msgspec.structs.replace(RULES, second_factors=frozenset({"otp"}))
    with pytest.raises(ProviderAnswerError):
        person_of(CLAIMS | {"amr": ["otp"], "auth_time": told}, rules, "n", NOW_MS)
    asked = parse_qs(
        urlsplit(
            authorization_address(metadata_of(json.dumps(METADATA).encode(), ISSUER), rules, "b", TryKeys("s", "c"))
        ).query
    )

    assert asked["max_age"] == ["60"]


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://login.example/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": "https://[x"},
        {"authorization_endpoint": "https://löschen.example"},
        {"token_endpoint": "https://169.254.169.254/token"},
        {"token_endpoint": "https://tokens.example:22/token"},
        {"jwks_uri": "https://[64:ff9b::a00:1]/keys"},
        {"jwks_uri": 7},
        {"jwks_uri": None},
    ],
    ids=str,
)
def test_what_a_provider_publishes_must_be_its_own_and_private(change: dict[str, object]) -> None:
    """No secret goes to an address without https, and no browser to one that isn't the provider's."""
    with pytest.raises(ProviderAnswerError):
        metadata_of(json.dumps(METADATA | change, ensure_ascii=False).encode(), ISSUER)


@pytest.mark.parametrize("issuer", ["https://10.0.0.7:8443/realms/shop", "https://login.internal:8443", ISSUER])
def test_a_provider_leads_to_its_own_host_or_to_the_public(issuer: str) -> None:
    """The settings name the provider's own host, which may be in the same network; others it can't open."""
    own = issuer.rpartition("/realms")[0] or issuer
    published = METADATA | {"issuer": issuer, "token_endpoint": f"{own}/token", "jwks_uri": "https://keys.example/keys"}

    assert metadata_of(json.dumps(published).encode(), issuer).token_endpoint == f"{own}/token"
    with pytest.raises(ProviderAnswerError, match="another host, whose address must be a public address"):
        metadata_of(json.dumps(published | {"jwks_uri": "https://10.0.0.8/keys"}).encode(), issuer)


def test_a_configuration_that_is_nested_too_deep_is_refused() -> None:
    """The decoder has an error of its own for it, which would end the request as a fault of ours."""
    with pytest.raises(ProviderAnswerError):
        metadata_of(b'{"a":' + b"[" * 100_000, ISSUER)


def test_the_way_to_the_provider_has_hashes_alone() -> None:
    """Who reads the address learns neither the cookie nor the verifier; the query of the provider's own stays."""
    keys = TryKeys("state", "cookie")
    metadata = metadata_of(
        json.dumps(METADATA | {"authorization_endpoint": "https://login.example/a?p=1"}).encode(), ISSUER
    )
    address = authorization_address(metadata, RULES, "https://console.example/back", keys)
    asked = parse_qs(urlsplit(address).query)

    assert address.startswith("https://login.example/a?p=1&")
    assert (asked["state"], asked["nonce"], asked["code_challenge"]) == (["state"], [keys.nonce], [keys.code_challenge])
    assert asked["scope"] == ["openid email"]
    assert keys.code_verifier.reveal() not in address
    assert "cookie" not in address
    assert "cookie" not in repr(keys)


def test_each_try_of_each_browser_has_its_own_keys() -> None:
    """Another state, or another cookie, makes another nonce and another verifier."""
    made = [TryKeys("a", "x"), TryKeys("b", "x"), TryKeys("a", "y")]

    assert len({keys.nonce for keys in made} | {keys.code_verifier.reveal() for keys in made}) == 6
