from collections.abc import Callable

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from payrelay.core.calls import Charge, Effect, Item, Refund, RetrySubscription, Void
from payrelay.core.payments.idempotency import Repeat, claim_of, decide_repeat, fingerprint_of, parse_key
from payrelay.core.payments.operation import Operation, State
from payrelay.core.secret import secret_hash
from payrelay.errors import Code, Refusal

MakeOperation = Callable[..., Operation]

CHARGE = Charge(
    authorize=False,
    order_id="A-1",
    items="Tea",
    currency="LKR",
    amount_minor=34_567,
    customer_token="token",
    custom_1="1",
    custom_2="2",
    notify_url="https://shop.example/n",
    item_list=(Item(name="Tea", number="1", quantity=1, unit_amount_minor=34_567),),
)
OTHER_VALUES: dict[str, object] = {
    "authorize": True,
    "order_id": "A-2",
    "items": "Tea ",
    "currency": "USD",
    "amount_minor": 34_568,
    "customer_token": "Token",
    "custom_1": None,
    "custom_2": "",
    "notify_url": None,
    "item_list": (),
}

visible = st.characters(min_codepoint=0x21, max_codepoint=0x7E)
keys = st.text(visible, min_size=1, max_size=255)


def refused(values: list[str]) -> str:
    """Gives the message with which a header is refused as malformed."""
    with pytest.raises(Refusal) as caught:
        parse_key(values)
    assert caught.value.code is Code.MALFORMED_REQUEST
    return caught.value.msg


def test_no_header_is_no_key() -> None:
    """Clients of the interface know no key."""
    assert parse_key([]) is None


@given(key=keys)
def test_the_quoted_form_means_the_same_as_the_bare_one(key: str) -> None:
    """Libraries of the IETF draft quote; most people do not. A repeat through the other must find the first."""
    assume(not key.startswith('"'))
    quoted = '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
    assert parse_key([key]) == parse_key([quoted]) == parse_key([f" {quoted}\t"]) == key


@pytest.mark.parametrize("text", ['"', '"a', '"a"b', '"a" ;x=1', '"a\\', '"a\\b"', '"a","b"'])
def test_a_badly_quoted_key_is_refused(text: str) -> None:
    """Guessing what was meant could join two requests, or part a request from its repeat."""
    assert "well-formed" in refused([text])


@pytest.mark.parametrize("text", ["", " ", '""', "a" * 256, '"' + "a" * 256 + '"'])
def test_a_key_has_1_to_255_characters(text: str) -> None:
    """An empty one would join all requests without one."""
    assert "1 to 255" in refused([text])


@pytest.mark.parametrize("text", ["a b", '"a b"', "kä", "a\x7f", "a\x00", "a\tb", "a, b"])
def test_a_key_is_visible_ascii(text: str) -> None:
    """What a proxy may change, or nobody can see, is no key."""
    assert "visible" in refused([text])


def test_two_headers_are_refused_even_when_they_agree() -> None:
    """Which one the repeat will carry can't be known."""
    assert "more than once" in refused(["a", "a"])


@pytest.mark.parametrize("name", OTHER_VALUES)
def test_the_fingerprint_feels_every_field_of_a_charge(name: str) -> None:
    """A request that differs in anything is another request, and must not get the first one's answer."""
    other = msgspec.structs.replace(CHARGE, **{name: OTHER_VALUES[name]})
    assert fingerprint_of("gateway", other) != fingerprint_of("gateway", CHARGE)


def test_no_field_of_a_charge_was_forgotten_above() -> None:
    """A field that is added later must be felt too."""
    assert set(OTHER_VALUES) == set(Charge.__struct_fields__)


def test_the_fingerprint_feels_the_account_and_the_kind_of_call() -> None:
    """Equal values on another account, or as a void in place of a refund, are another request."""
    calls: list[Effect] = [
        Refund(payment_id="1", description="d"),
        Void(authorization_token="1", description="d"),
        RetrySubscription(subscription_id=1),
    ]
    prints = {fingerprint_of(account, call) for call in calls for account in ("gateway", "gateway2")}
    assert len(prints) == 6


def test_equal_requests_have_equal_fingerprints() -> None:
    """Made anew from another body with the same values, it is the same: 64 hex digits that last."""
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(CHARGE), type=Charge)
    assert fingerprint_of("gateway", again) == fingerprint_of("gateway", CHARGE)
    assert len(fingerprint_of("gateway", CHARGE)) == 64


def test_the_hash_of_a_token_stands_for_it_and_does_not_show_it() -> None:
    """Guards and lookups name a token that must not lie in clear; the same one gives the same hash."""
    assert secret_hash("token") == secret_hash("token") != secret_hash("Token")
    assert "token" not in secret_hash("token")


def test_the_claim_is_the_key_or_else_the_fingerprint() -> None:
    """A key that looks like a fingerprint must not meet one."""
    assert claim_of("k", "f", is_unkeyed_claimed=True) == "key/k"
    assert claim_of("k", "f", is_unkeyed_claimed=False) == "key/k"
    assert claim_of(None, "f", is_unkeyed_claimed=True) == "fingerprint/f"
    assert claim_of(None, "f", is_unkeyed_claimed=False) is None


@pytest.mark.parametrize("state", State)
def test_another_request_under_the_same_key_is_refused_in_every_state(
    make_operation: MakeOperation, state: State
) -> None:
    """Neither the first answer nor its state is any business of another request."""
    with pytest.raises(Refusal) as caught:
        decide_repeat(make_operation(state=state, fingerprint="a"), "b")
    assert caught.value.code is Code.IDEMPOTENCY_MISMATCH


@pytest.mark.parametrize(
    ("states", "repeat"),
    [
        ({State.SUCCEEDED, State.DECLINED, State.REFUSED, State.FAILED}, Repeat.REPLAY),
        ({State.ACCEPTED, State.SENDING}, Repeat.IN_PROGRESS),
        ({State.PENDING, State.UNKNOWN, State.NEEDS_ATTENTION}, Repeat.STATE),
    ],
)
def test_a_repeat_gets_what_the_first_request_has_come_to(
    make_operation: MakeOperation, states: set[State], repeat: Repeat
) -> None:
    """The finished answer; while it runs, to wait; while it is open, the state as it now is."""
    assert {decide_repeat(make_operation(state=state), "f" * 64) for state in states} == {repeat}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["a", "a"], "Idempotency-Key was sent more than once"),
        (["a" * 256], "Idempotency-Key must have 1 to 255 characters"),
        (["a b"], "Idempotency-Key must be visible ASCII characters"),
        (['"a'], "Idempotency-Key is not a well-formed quoted string"),
        (['"a\\'], "Idempotency-Key is not a well-formed quoted string"),
    ],
)
def test_what_is_wrong_with_a_key_is_said_in_words(values: list[str], words: str) -> None:
    """Whoever writes the client reads this, and nothing else."""
    assert refused(values) == words


def test_the_longest_key_is_accepted_and_white_space_around_it_is_not_a_part_of_it() -> None:
    """HTTP allows blanks and tabs around a value, and nothing else; an X at the end is a letter of the key."""
    assert parse_key(["\t " + "X" * 255 + " \t"]) == "X" * 255
    with pytest.raises(Refusal):
        parse_key(["a\n"])


def test_another_request_under_a_key_is_refused_in_words(make_operation: MakeOperation) -> None:
    """The words say what to look for in the client."""
    with pytest.raises(Refusal) as caught:
        decide_repeat(make_operation(fingerprint="a" * 64), "b" * 64)
    assert caught.value.msg == "this Idempotency-Key was used with another request"


def test_what_is_stored_of_a_token_and_a_request_never_changes() -> None:
    """Both lie on disk: another formula would find no authorization and no repeat any more."""
    assert secret_hash("token") == "4a41b6f7a8e4302463cb0c9f0e3c62ea8f52c24697bdaa4fa509a249c875b8c9"
    print_of_retry = fingerprint_of("gateway", RetrySubscription(subscription_id=1))
    assert print_of_retry == "5b37e00447fed67d17b1160e54d71bf61195a554ba3096c6c2efaad24190f30a"
