"""The claims of a client token, and how it narrows the key that issued it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.access.allowance import PAYMENTS_MAX, Allowance, PlanTerms
from payrelay.core.access.client_token import (
    CLIENT_SCOPES,
    LEEWAY_MS,
    LIFE_MAX_S,
    PAYING,
    RATE,
    TOKENS_TOGETHER,
    USUAL_SCOPES,
    ClaimsError,
    ClientToken,
    claims_of,
    has_begun,
    narrowed,
    shared_among_tokens,
    token_of,
)
from payrelay.core.access.credential import DEFAULT_SCOPES, Credential, Rate, Scope, is_usable

NOW_MS = 1_800_000_000_000
TOKEN = ClientToken(
    id="ct_" + "0" * 32,
    principal="shop",
    credential_id="abcdefghijkl",
    account="gateway",
    customer_id="cus_" + "a" * 32,
    order_id="Order/1 é",
    allowance=Allowance(amount_minor=34_567, currency="LKR", payments_max=2),
    scopes=frozenset({Scope.PAYMENTS_CHARGE, Scope.PAYMENTS_READ}),
    issued_at_ms=NOW_MS,
    expires_at_ms=NOW_MS + 900_000,
)
PARENT = Credential(
    id="abcdefghijkl",
    principal="shop",
    key_hash=b"h" * 32,
    scopes=DEFAULT_SCOPES,
    accounts=None,
    amount_max_minor=None,
    rate=None,
    created_at_ms=0,
    expires_at_ms=None,
    revoked_at_ms=None,
)

limits = st.none() | st.integers(min_value=1, max_value=10**6)
moments = st.none() | st.integers(min_value=NOW_MS - 10**6, max_value=NOW_MS + 10**7)
parents = st.builds(
    lambda **members: msgspec.structs.replace(PARENT, **members),
    scopes=st.frozensets(st.sampled_from(Scope)),
    accounts=st.none() | st.frozensets(st.sampled_from(["gateway", "second"])),
    amount_max_minor=limits,
    rate=st.none() | st.builds(Rate, count=st.integers(1, 1000), window_s=st.integers(1, 1000)),
    expires_at_ms=moments,
    revoked_at_ms=moments,
)
orders = st.none() | st.text(min_size=1, max_size=255)
PLAN = PlanTerms(recurrence="1 Month", duration="1 Year", startup_fee_minor=-50)
allowances = st.builds(
    lambda limit, payments, members: Allowance(**({"currency": "USD", "payments_max": payments} | members(limit))),
    limit=st.integers(min_value=1, max_value=10**6),
    payments=st.integers(1, PAYMENTS_MAX),
    members=st.sampled_from(
        [
            lambda limit: {"amount_minor": limit},
            lambda limit: {"amount_minor": limit, "kind": "authorization"},
            lambda limit: {"amount_minor": limit, "kind": "recurring", "plan": PLAN},
            lambda _: {"kind": "preapproval"},
            lambda limit: {"is_open": True, "amount_max_minor": limit},
            lambda _: {"is_open": True, "kind": "recurring"},
        ]
    ),
)
tokens = st.builds(
    lambda allowance, **members: msgspec.structs.replace(
        TOKEN, allowance=allowance if members["scopes"] & PAYING else None, **members
    ),
    allowance=allowances,
    customer_id=st.none() | st.just(TOKEN.customer_id),
    order_id=orders,
    scopes=st.frozensets(st.sampled_from(sorted(CLIENT_SCOPES)), min_size=1),
    expires_at_ms=st.integers(1, LIFE_MAX_S).map(lambda life_s: NOW_MS + life_s * 1000),
).filter(lambda token: token.customer_id is not None or token.order_id is not None)


@given(tokens)
def test_what_is_written_is_read(token: ClientToken) -> None:
    """An app may do exactly what its token was made for."""
    assert token_of(claims_of(token)) == token


@pytest.mark.parametrize("claim", sorted(claims_of(TOKEN)))
@given(value=st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()))
def test_a_claim_of_another_type_is_refused_or_read_as_what_it_says(claim: str, value: object) -> None:
    """A token is never read as something that wasn't written in it."""
    claims = claims_of(TOKEN) | {claim: value}
    try:
        read = token_of(claims)
    except ClaimsError:
        return
    assert {name: member for name, member in claims.items() if member is not None} == claims_of(read)


@pytest.mark.parametrize("claim", sorted(set(claims_of(TOKEN)) - {"customer", "order"}))
def test_a_claim_that_is_missing_is_refused(claim: str) -> None:
    """A limit must not go away with its claim; of customer and order one is enough."""
    claims = claims_of(TOKEN)
    del claims[claim]

    with pytest.raises(ClaimsError):
        token_of(claims)


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "https://login.example"},
        {"jti": "ct_1"},
        {"jti": "op_" + "0" * 32},
        {"customer": "59AFEE022CC69CA39D325E1B59130862"},
        {"customer": "cus_" + "A" * 32},
        {"customer": None, "order": None},
        {"order": ""},
        {"amount": 0},
        {"amount": -5},
        {"amount": "all"},
        {"amount": "34567"},
        {"amount": None},
        {"amount": None, "type": "recurring"},
        {"amount": None, "amount_max": 5},
        {"amount": "open", "amount_max": 0},
        {"amount": "open", "amount_max": -5},
        {"amount": "open", "plan": {"recurrence": "1 Month", "duration": "1 Year"}},
        {"amount_max": 34_567},
        {"type": None},
        {"type": "AUTHORIZE"},
        {"type": "recurring"},
        {"type": None, "amount": None, "payments": None},
        {"type": None, "amount": None, "payments": None, "currency": None, "amount_max": 5},
        {"payments": None},
        {"payments": 0},
        {"payments": 101},
        {"payments": True},
        {"plan": {"recurrence": "1 Month", "duration": "1 Year"}},
        {"type": "recurring", "plan": {"recurrence": "1 Month"}},
        {"type": "recurring", "plan": {"recurrence": "1 Month", "duration": "1 Year", "starts": "2030-01-01"}},
        {"scope": "payments:read"},
        {"currency": None},
        {"currency": "lkr"},
        {"scope": ""},
        {"scope": "payments:refund"},
        {"scope": "payments:read  payments:charge"},
        {"scope": "payments:read operations:read-all"},
        {"scope": "payments:read client-tokens:create"},
        {"exp": NOW_MS // 1000},
        {"exp": NOW_MS // 1000 - 1},
        {"exp": NOW_MS // 1000 + LIFE_MAX_S + 1},
        {"iat": -1, "exp": 100},
        {"admin": True},
        {"bound": None},
    ],
)
def test_what_no_token_of_ours_says_is_refused(changes: dict[str, Any]) -> None:
    """Whoever signed it: a client token never lives for a day, refunds, or is for nobody."""
    claims = {name: value for name, value in (claims_of(TOKEN) | changes).items() if value is not None}
    if "bound" in changes:
        claims["bound"] = None

    with pytest.raises(ClaimsError):
        token_of(claims)


@given(parents, tokens)
def test_a_token_never_may_more_than_its_parent(parent: Credential, token: ClientToken) -> None:
    """Whatever the key lost since, its tokens have lost with it."""
    made = narrowed(parent, token)

    assert made.scopes <= parent.scopes & token.scopes
    assert made.accounts is not None
    assert made.accounts <= {token.account}
    assert parent.accounts is None or made.accounts <= parent.accounts
    chosen_max = None if token.allowance is None else token.allowance.amount_max_minor
    for limit in (parent.amount_max_minor, chosen_max):
        assert limit is None or (made.amount_max_minor is not None and made.amount_max_minor <= limit)
    for moment in (NOW_MS, NOW_MS + 60_000, NOW_MS + 3_600_000):
        assert not is_usable(made, moment) or (is_usable(parent, moment) and moment < token.expires_at_ms)
    assert made.rate is not None
    assert made.rate.count / made.rate.window_s <= RATE.count / RATE.window_s
    assert made.shared_rate == shared_among_tokens(parent.id, made.rate)
    assert made.shared_rate.rate.count == made.rate.count * TOKENS_TOGETHER
    assert made.bound is not None
    assert (made.bound.customer_id, made.bound.order_id) == (token.customer_id, token.order_id)
    assert made.bound.allowance == token.allowance
    assert (made.principal, made.id) == (parent.principal, token.id)


@pytest.mark.parametrize(
    "changes", [{"id": "000000000000"}, {"principal": "other"}, {"bound": narrowed(PARENT, TOKEN).bound}]
)
def test_a_token_is_its_own_parents_alone(changes: dict[str, Any]) -> None:
    """Another key's scopes are nothing to it, and a token has no children."""
    with pytest.raises(ClaimsError):
        narrowed(msgspec.structs.replace(PARENT, **changes), TOKEN)


@pytest.mark.parametrize(("early_ms", "is_good"), [(-1000, True), (0, True), (LEEWAY_MS, True), (LEEWAY_MS + 1, False)])
def test_a_token_of_a_clock_that_is_a_little_ahead_has_begun(early_ms: int, is_good: bool) -> None:  # noqa: FBT001
    """Two processes' clocks differ by some milliseconds; a token from next week is a mistake."""
    assert has_begun(TOKEN, NOW_MS - early_ms) is is_good


def test_a_token_without_scopes_in_its_request_only_reads() -> None:
    """Whoever forgets to say what it may do has not let it pay."""
    assert USUAL_SCOPES <= CLIENT_SCOPES
    assert all(scope.endswith(":read") for scope in USUAL_SCOPES)
    assert not USUAL_SCOPES & PAYING


def test_apps_never_issue_refund_or_see_all() -> None:
    """What moves money away, or opens others' books, is for servers."""
    assert not CLIENT_SCOPES & {
        Scope.CLIENT_TOKENS_CREATE,
        Scope.PAYMENTS_REFUND,
        Scope.PAYMENTS_CAPTURE,
        Scope.OPERATIONS_READ_ALL,
        Scope.ENDPOINTS_WRITE,
    }
