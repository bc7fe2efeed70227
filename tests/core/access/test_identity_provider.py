"""What an identity provider's claims must say, and what they allow."""

import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.access.allowance import Allowance
from payrelay.core.access.client_token import CLIENT_SCOPES, RATE, USUAL_SCOPES, shared_among_tokens
from payrelay.core.access.credential import Bound, Scope, is_usable
from payrelay.core.access.identity_provider import LEEWAY_S, IdentityClaimsError, IdentityProvider, bearer_of
from payrelay.core.access.person_names import PersonNames

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
NAMES = PersonNames(b"s" * 32)
CLAIMS: dict[str, Any] = {
    "iss": "https://login.example/",
    "aud": ["payrelay", "other"],
    "sub": "user-17",
    "iat": NOW_S - 60,
    "exp": NOW_S + 300,
}


def person(reference: str, order_id: str | None = None) -> Bound:
    """Gives what a token of this person is bound to."""
    return Bound(reference=reference, order_id=order_id, keys_of=NAMES.keys_of(reference))


def reason(claims: dict[str, Any], identity_provider: IdentityProvider = PROVIDER) -> str:
    """Gives why the claims are refused."""
    with pytest.raises(IdentityClaimsError) as raised:
        bearer_of(claims, identity_provider, NAMES, NOW_S * 1000)
    return raised.value.reason


def test_a_user_becomes_a_bound_credential() -> None:
    """The identity provider says who it is; what that allows are the settings."""
    made = bearer_of(CLAIMS, PROVIDER, NAMES, NOW_S * 1000)

    assert made.bound == person("user-17")
    assert (made.principal, made.scopes, made.accounts) == ("shop", USUAL_SCOPES, frozenset({"gateway"}))
    assert made.id.startswith("idp_")
    assert "user-17" not in made.id


def test_nobody_can_try_a_name_that_he_guesses() -> None:
    """What is logged, counted and kept of a person is no plain hash of the name, and another installation's differs."""
    made, others = (bearer_of(CLAIMS, PROVIDER, names, NOW_S * 1000) for names in (NAMES, PersonNames(b"o" * 32)))
    guesses = ("user-17", "reference/user-17", "https://login.example/\0user-17")
    hashes = {hashlib.sha256(guess.encode()).hexdigest() for guess in guesses}
    kept = (made.id.removeprefix("idp_"), made.counted_as.rpartition("/")[2], made.requester.app)

    assert not any(each in digest for each in kept for digest in hashes)
    assert made.requester.app not in {hashlib.sha256(guess.encode()).hexdigest()[:16] for guess in guesses}
    assert made.id != others.id
    assert made.counted_as != others.counted_as
    assert made.requester != others.requester


def test_the_claim_may_hold_the_customers_id() -> None:
    """Where the app keeps it at the identity provider; a name that only looks like an id stays a name."""
    claims = CLAIMS | {"sub": "cus_" + "a" * 32}

    assert bearer_of(claims, PROVIDER, NAMES, NOW_S * 1000).bound == person(claims["sub"])
    by_id = msgspec.structs.replace(PROVIDER, claim_is="customer")
    assert bearer_of(claims, by_id, NAMES, NOW_S * 1000).bound == Bound(customer_id=claims["sub"])


def test_a_name_in_the_place_of_a_customers_id_is_kept_nowhere() -> None:
    """A setting that names the wrong claim must not bring people's names into the log and the database."""
    by_id = msgspec.structs.replace(PROVIDER, claim_is="customer")
    made = bearer_of(CLAIMS | {"sub": "anna@example.org"}, by_id, NAMES, NOW_S * 1000)

    assert not any("anna" in text for text in (made.id, made.counted_as, made.requester.app))
    assert made.counted_as.endswith(NAMES.keys_of("anna@example.org"))


def test_an_order_may_be_named_too() -> None:
    """A token without it reads for its user, and pays nothing."""
    identity_provider = msgspec.structs.replace(PROVIDER, order_claim="https://shop.example/order")

    made = bearer_of(CLAIMS | {"https://shop.example/order": "A-1"}, identity_provider, NAMES, NOW_S * 1000)
    assert made.bound == person("user-17", order_id="A-1")
    assert bearer_of(CLAIMS, identity_provider, NAMES, NOW_S * 1000).bound == person("user-17")
    assert reason(CLAIMS | {"https://shop.example/order": 5}, identity_provider) == "claims"


PAYS = msgspec.structs.replace(PROVIDER, order_claim="order", amount_claim="amount", currency_claim="currency")
PRICE = {"order": "A-1", "amount": "345.67", "currency": "LKR"}


@pytest.mark.parametrize(
    ("amount", "minor"), [("345.67", 34_567), (345.67, 34_567), (345, 34_500), ("345.6", 34_560), ("0.01", 1)]
)
def test_an_amount_may_be_named_as_number_or_text(amount: object, minor: int) -> None:
    """Providers write claims in both ways; the hundredths are those that were written."""
    made = bearer_of(CLAIMS | PRICE | {"amount": amount}, PAYS, NAMES, NOW_S * 1000)

    assert made.bound is not None
    assert made.bound.allowance == Allowance(amount_minor=minor, currency="LKR")
    assert made.shared_rate == shared_among_tokens("identity-provider", RATE)


@pytest.mark.parametrize("missing", ["amount", "currency"])
def test_without_an_amount_nothing_is_paid(missing: str) -> None:
    """Such a token reads; a user can't choose what a bicycle costs."""
    claims = CLAIMS | {name: value for name, value in PRICE.items() if name != missing}
    for identity_provider in (PAYS, msgspec.structs.replace(PAYS, amount_claim=None)):
        made = bearer_of(claims, identity_provider, NAMES, NOW_S * 1000)
        assert made.bound == person("user-17", order_id="A-1")


@pytest.mark.parametrize(
    "changes",
    [
        *({"amount": amount} for amount in (0, -1, 1e-7, 10**20, True, [5])),
        *({"amount": text} for text in ("-1", "1e3", "1.005", "1.250", "", "x", "1,00")),
        *({"currency": currency} for currency in ("lkr", "", "RUPEES", 5, ["LKR"])),
    ],
    ids=str,
)
def test_an_amount_that_is_none_is_refused(changes: dict[str, object]) -> None:
    """What isn't an amount and a currency is a mistake of the provider's settings, and pays nothing."""
    assert reason(CLAIMS | PRICE | changes, PAYS) == "claims"


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
    assert is_usable(bearer_of(CLAIMS | changes, PROVIDER, NAMES, NOW_S * 1000), NOW_S * 1000)


@given(st.frozensets(st.sampled_from(Scope)))
def test_an_identity_provider_never_allows_what_apps_may_not(scopes: frozenset[Scope]) -> None:
    """Whatever the settings say, and the claims have no say at all."""
    identity_provider = msgspec.structs.replace(PROVIDER, scopes=scopes)
    claims = CLAIMS | {"scope": "payments:refund", "scopes": ["payments:refund"], "principal": "other"}

    made = bearer_of(claims, identity_provider, NAMES, NOW_S * 1000)
    assert made.scopes == scopes & CLIENT_SCOPES
    assert made.principal == "shop"


names = st.sampled_from([*CLAIMS, "nbf"])
values = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2)


@given(st.dictionaries(names, values))
def test_odd_claims_break_nothing(changes: dict[str, object]) -> None:
    """They allow what they should, or are refused with a reason."""
    try:
        made = bearer_of(CLAIMS | changes, PROVIDER, NAMES, NOW_S * 1000)
    except IdentityClaimsError:
        return
    assert made.bound == person(str((CLAIMS | changes)["sub"]))
    assert is_usable(made, NOW_S * 1000)
