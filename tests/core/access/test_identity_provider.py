"""What an identity provider's claims must say, and what they allow."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.access.client_token import CLIENT_SCOPES, USUAL_SCOPES
from payrelay.core.access.credential import Bound, Scope, is_usable
from payrelay.core.access.identity_provider import LEEWAY_S, IdentityClaimsError, IdentityProvider, bearer_of

NOW_S = 1_800_000_000
PROVIDER = IdentityProvider(
    issuer="https://login.example/",
    audience="payrelay",
    customer_claim="sub",
    claim_is="reference",
    order_claim=None,
    principal="shop",
    scopes=USUAL_SCOPES,
    accounts=frozenset({"gateway"}),
)
CLAIMS: dict[str, Any] = {
    "iss": "https://login.example/",
    "aud": ["payrelay", "other"],
    "sub": "user-17",
    "iat": NOW_S - 60,
    "exp": NOW_S + 300,
}


def reason(claims: dict[str, Any], identity_provider: IdentityProvider = PROVIDER) -> str:
    """Gives why the claims are refused."""
    with pytest.raises(IdentityClaimsError) as raised:
        bearer_of(claims, identity_provider, NOW_S * 1000)
    return raised.value.reason


def test_a_user_becomes_a_bound_credential() -> None:
    """The identity provider says who it is; what that allows are the settings."""
    made = bearer_of(CLAIMS, PROVIDER, NOW_S * 1000)

    assert made.bound == Bound(reference="user-17")
    assert (made.principal, made.scopes, made.accounts) == ("shop", USUAL_SCOPES, frozenset({"gateway"}))
    assert made.id.startswith("idp_")
    assert "user-17" not in made.id


def test_the_claim_may_hold_the_customers_id() -> None:
    """Where the app keeps it at the identity provider; a name that only looks like an id stays a name."""
    claims = CLAIMS | {"sub": "cus_" + "a" * 32}

    assert bearer_of(claims, PROVIDER, NOW_S * 1000).bound == Bound(reference=claims["sub"])
    by_id = msgspec.structs.replace(PROVIDER, claim_is="customer")
    assert bearer_of(claims, by_id, NOW_S * 1000).bound == Bound(customer_id=claims["sub"])


def test_an_order_may_be_named_too() -> None:
    """Then it must be: a token without its order would be for all of them."""
    identity_provider = msgspec.structs.replace(PROVIDER, order_claim="https://shop.example/order")

    made = bearer_of(CLAIMS | {"https://shop.example/order": "A-1"}, identity_provider, NOW_S * 1000)
    assert made.bound == Bound(reference="user-17", order_id="A-1")
    assert reason(CLAIMS, identity_provider) == "claims"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"iss": None}, "issuer"),
        ({"iss": "https://login.example"}, "issuer"),
        ({"iss": "https://evil.example/"}, "issuer"),
        ({"iss": ["https://login.example/"]}, "issuer"),
        ({"aud": None}, "audience"),
        ({"aud": "other"}, "audience"),
        ({"aud": []}, "audience"),
        ({"aud": "payrelay2"}, "audience"),
        ({"aud": {"payrelay": True}}, "audience"),
        ({"exp": None}, "claims"),
        ({"exp": "1900000000"}, "claims"),
        ({"exp": True}, "claims"),
        ({"exp": float("nan")}, "claims"),
        ({"exp": float("inf")}, "claims"),
        ({"exp": -1}, "claims"),
        ({"exp": NOW_S - LEEWAY_S}, "expired"),
        ({"exp": 0}, "expired"),
        ({"nbf": NOW_S + LEEWAY_S + 1}, "early"),
        ({"iat": NOW_S + LEEWAY_S + 1}, "early"),
        ({"nbf": "now"}, "claims"),
        ({"sub": None}, "claims"),
        ({"sub": ""}, "claims"),
        ({"sub": 17}, "claims"),
        ({"sub": ["user-17"]}, "claims"),
        ({"sub": "user\0"}, "claims"),
        ({"sub": "x" * 256}, "claims"),
    ],
)
def test_what_is_not_meant_for_us_is_refused(changes: dict[str, Any], why: str) -> None:
    """A token for another service of the same identity provider opens nothing here, nor does one that is over."""
    claims = {name: value for name, value in (CLAIMS | changes).items() if value is not None}

    assert reason(claims) == why


@pytest.mark.parametrize("changes", [{"exp": NOW_S - LEEWAY_S + 1}, {"nbf": NOW_S + LEEWAY_S}, {"iat": NOW_S + 1.5}])
def test_clocks_may_differ_a_little(changes: dict[str, Any]) -> None:
    """No user is rejected because an identity provider's clock is some seconds off."""
    assert is_usable(bearer_of(CLAIMS | changes, PROVIDER, NOW_S * 1000), NOW_S * 1000)


@given(st.frozensets(st.sampled_from(Scope)))
def test_an_identity_provider_never_allows_what_apps_may_not(scopes: frozenset[Scope]) -> None:
    """Whatever the settings say, and the claims have no say at all."""
    identity_provider = msgspec.structs.replace(PROVIDER, scopes=scopes)
    claims = CLAIMS | {"scope": "payments:refund", "scopes": ["payments:refund"], "principal": "other"}

    made = bearer_of(claims, identity_provider, NOW_S * 1000)
    assert made.scopes == scopes & CLIENT_SCOPES
    assert made.principal == "shop"


names = st.sampled_from([*CLAIMS, "nbf"])
values = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2)


@given(st.dictionaries(names, values))
def test_odd_claims_break_nothing(changes: dict[str, object]) -> None:
    """They allow what they should, or are refused with a reason."""
    try:
        made = bearer_of(CLAIMS | changes, PROVIDER, NOW_S * 1000)
    except IdentityClaimsError:
        return
    assert made.bound == Bound(reference=str((CLAIMS | changes)["sub"]))
    assert is_usable(made, NOW_S * 1000)
