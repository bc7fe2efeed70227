import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.api.fakes import MovableClock

from payrelay.api.auth.quota import CALLERS_MAX, MARKS_MAX, Quota
from payrelay.core.access.client_token import RATE, TOKENS_TOGETHER, shared_among_tokens
from payrelay.core.access.credential import DEFAULT_SCOPES, Bound, Credential, Rate, SharedRate
from payrelay.errors import Code, Refusal


def limited(count: int, window_s: int, credential_id: str = "abcdefghijkl") -> Credential:
    """Makes a credential with a rate."""
    return Credential(
        id=credential_id,
        principal="shop",
        key_hash=b"",
        scopes=DEFAULT_SCOPES,
        accounts=None,
        amount_max_minor=None,
        rate=Rate(count=count, window_s=window_s),
        created_at_ms=0,
        expires_at_ms=None,
        revoked_at_ms=None,
    )


def test_no_rate_is_no_limit(clock: MovableClock, credential: Credential) -> None:
    """Nothing is limited unless an operator set a limit, and no header mentions one."""
    quota = Quota(clock)
    assert {quota.take(credential) for _ in range(1000)} == {()}


def test_an_answer_shows_what_is_left(clock: MovableClock) -> None:
    """A client can slow down before it is refused."""
    quota, caller = Quota(clock), limited(3, 60)
    assert quota.take(caller) == ((b"ratelimit-policy", b'"default";q=3;w=60'), (b"ratelimit", b'"default";r=2;t=60'))
    clock.at_s += 10
    assert quota.take(caller)[1] == (b"ratelimit", b'"default";r=1;t=50')


def test_over_the_quota_is_refused_until_one_leaves_the_window(clock: MovableClock) -> None:
    """The announced wait is enough, and a refused request doesn't make it longer."""
    quota, caller = Quota(clock), limited(2, 10)
    quota.take(caller)
    clock.at_s += 4
    quota.take(caller)
    with pytest.raises(Refusal) as raised:
        quota.take(caller)
    with pytest.raises(Refusal):
        quota.take(caller)
    assert raised.value.code is Code.RATE_LIMITED
    assert raised.value.retry_after_s == 6
    assert ("RateLimit", '"default";r=0;t=6') in raised.value.headers
    clock.at_s += 6
    assert quota.take(caller)


@given(st.lists(st.floats(0, 3), max_size=200), st.integers(1, 20))
def test_no_window_ever_holds_more_than_the_quota(waits: list[float], count: int) -> None:
    """Wherever the window is laid, at most the quota was let through in it."""
    clock = MovableClock()
    quota, caller, admitted = Quota(clock), limited(count, 10), list[float]()
    for wait_s in waits:
        clock.at_s += wait_s
        try:
            quota.take(caller)
        except Refusal:
            continue
        admitted.append(clock.at_s)
    for start in admitted:
        assert sum(start <= at < start + 10 for at in admitted) <= count


def test_callers_do_not_share(clock: MovableClock) -> None:
    """One caller's haste is not another's wait."""
    quota = Quota(clock)
    quota.take(limited(1, 60))
    assert quota.take(limited(1, 60, "another00000"))


def test_a_changed_rate_counts_at_once(clock: MovableClock) -> None:
    """A raised limit lets a caller go on."""
    quota, caller = Quota(clock), limited(1, 60)
    quota.take(caller)
    assert quota.take(msgspec.structs.replace(caller, rate=Rate(count=2, window_s=60)))


def test_memory_is_bounded(clock: MovableClock) -> None:
    """A large quota and many callers cost a fixed amount."""
    quota, caller = Quota(clock), limited(1_000_000, 3600)
    for _ in range(5000):
        clock.at_s += 0.7
        quota.take(caller)
    assert len(quota._of_keys._windows[caller.id]._marks) <= MARKS_MAX + 1
    for number in range(CALLERS_MAX + 10):
        quota.take(limited(1, 60, f"{number:012d}"))
    assert len(quota._of_keys._windows) == CALLERS_MAX


def token(number: int, rate: Rate, parent: str = "abcdefghijkl", order_id: str | None = None) -> Credential:
    """Makes the credential of a token of a key, for an order of its own where none is named."""
    return msgspec.structs.replace(
        limited(rate.count, rate.window_s, f"ct_{number}"),
        bound=Bound(order_id=order_id or f"A-{number}"),
        shared_rate=shared_among_tokens(parent, rate),
    )


def takes(quota: Quota, credential: Credential) -> bool:
    """Tells whether the credential may make another request, and makes it."""
    try:
        quota.take(credential)
    except Refusal:
        return False
    return True


def test_tokens_together_have_a_limit_beside_their_keys(clock: MovableClock) -> None:
    """However many tokens somebody got hold of: the key goes on, and so do another key's tokens."""
    quota, rate = Quota(clock), Rate(count=2, window_s=60)
    shared = shared_among_tokens("abcdefghijkl", rate)
    taken = sum(takes(quota, token(number, rate)) for number in range(2 * shared.whole_count) for _ in range(2))

    assert taken == shared.whole_count
    with pytest.raises(Refusal, match=r"tokens of its key together may make 400 requests in 60 s$") as refused:
        quota.take(token(9_999, rate))
    assert ("RateLimit", '"client-tokens";r=0;t=60') in refused.value.headers
    assert [takes(quota, limited(2, 60)) for _ in range(3)] == [True, True, False]
    assert takes(quota, token(9_999, rate, parent="another00000"))
    clock.at_s += 60
    assert takes(quota, token(9_999, rate))


def test_a_hundred_orders_of_one_person_keep_no_other_phone_out(clock: MovableClock) -> None:
    """A shop that sells to guests can't tell them from a hundred customers. Every other phone still pays and looks."""
    quota = Quota(clock)
    assert all(takes(quota, token(number, RATE)) for number in range(100) for _ in range(RATE.count))
    clock.at_s += 20
    others = [[takes(quota, token(number, RATE)) for _ in range(13)] for number in range(100, 1_100)]

    assert others == [[*([True] * 12), False]] * 1_000


def test_the_announced_wait_is_enough_where_the_phones_have_used_up_what_they_share(clock: MovableClock) -> None:
    """A phone in the middle of a payment goes on as soon as its first requests of the last minute are over."""
    quota, rate = Quota(clock), Rate(count=20, window_s=60)
    phone = token(999, rate)
    assert [takes(quota, phone) for _ in range(2)] == [True, True]
    clock.at_s += 40
    assert all(takes(quota, token(number, rate)) for number in range(100) for _ in range(19))
    assert all(takes(quota, token(number, rate)) for number in range(98))
    with pytest.raises(
        Refusal, match=r"may make 2000 requests in 60 s, and beyond that each customer its first 2$"
    ) as refused:
        quota.take(phone)

    assert refused.value.retry_after_s == 20
    clock.at_s += 20
    assert takes(quota, phone)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=120),
    st.integers(1, 8),
    st.integers(1, 4),
    st.integers(0, 8),
)
def test_first_requests_are_refused_only_where_many_others_made_theirs(
    asked: list[tuple[int, int]], shared_count: int, first_count: int, more_count: int
) -> None:
    """The law of what phones share: all together have a limit, and only many can keep one from its first requests."""
    clock, rate = MovableClock(), Rate(count=6, window_s=10)
    whole_count = shared_count + more_count
    shared = SharedRate(
        name="tokens/k",
        rate=Rate(count=shared_count, window_s=rate.window_s),
        first_count=first_count,
        whole_count=whole_count,
    )
    quota, admitted = Quota(clock), list[tuple[float, int]]()
    for wait_s, number in asked:
        clock.at_s += wait_s
        last = [subject for at_s, subject in admitted if at_s > clock.at_s - rate.window_s]
        own = last.count(number)
        if takes(quota, msgspec.structs.replace(token(number, rate), shared_rate=shared)):
            assert len(last) < (whole_count if own < first_count else shared_count)
            assert own < rate.count
            admitted.append((clock.at_s, number))
        elif own < min(first_count, rate.count):
            assert len(last) == whole_count
            assert len(set(last)) >= more_count / first_count
        else:
            assert own == rate.count or len(last) >= shared_count


def test_a_hundred_tokens_of_one_order_are_as_one(clock: MovableClock) -> None:
    """An app fetches a token whenever it likes. With a hundred of them one customer used up what all phones share."""
    quota, rate = Quota(clock), Rate(count=2, window_s=60)
    assert [takes(quota, token(number, rate, order_id="A-1")) for number in range(100)].count(True) == 2

    assert takes(quota, token(101, rate, order_id="A-2"))
    assert takes(quota, token(102, rate, parent="another00000", order_id="A-1"))


def test_one_token_takes_its_own_rate_and_no_more_from_the_others(clock: MovableClock) -> None:
    """A phone in a hurry leaves ninety-nine hundredths of what phones share to the others."""
    quota, rate = Quota(clock), Rate(count=2, window_s=60)
    assert [takes(quota, token(1, rate)) for _ in range(10 * TOKENS_TOGETHER)].count(True) == 2

    assert all(takes(quota, token(number, rate)) for number in range(2, TOKENS_TOGETHER + 1) for _ in range(2))


def test_tokens_make_no_key_forgotten(clock: MovableClock) -> None:
    """A flood of tokens does not give a key its quota anew."""
    quota, key = Quota(clock), limited(1, 3600)
    quota.take(key)
    for number in range(CALLERS_MAX + 1):
        takes(quota, token(number, Rate(count=200, window_s=60)))

    assert not takes(quota, key)
