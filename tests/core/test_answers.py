import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.core.answers import (
    HIDDEN_FROM_APPS,
    HIDING_LEVELS_MAX,
    Answer,
    Trace,
    failed,
    found,
    of_outcome,
    of_reading,
    of_refusal,
    succeeded,
    with_member,
    without_signatures,
)
from payrelay.core.outcomes import CODES_OF_KIND, Outcome, OutcomeKind, Reading
from payrelay.errors import MEANINGS, Code, FieldError, Refusal

TRACE = Trace(request_id="req_1", operation_id="op_1")
RAW_MSG = b'"Said  by\\u0020the gateway"'
RAW_DATA = b'{ "amount":1000.0, "payment_id":320027150501,"new":[1E5,{}] }'
PAIRS = [(kind, code) for kind in OutcomeKind for code in sorted(CODES_OF_KIND[kind], key=str)]

numbers = st.from_regex(r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?", fullmatch=True)


def outcome(kind: OutcomeKind, code: Code | None) -> Outcome:
    """Gives an outcome that carries the gateway's own words."""
    return Outcome(kind=kind, code=code, msg="ours", raw_msg=RAW_MSG, raw_data=RAW_DATA)


def parsed(answer: Answer) -> dict[str, object]:
    """Reads a body with another JSON reader than the one that wrote it, without losing a digit."""
    body: dict[str, object] = json.loads(answer.body, parse_float=Decimal)
    return body


def test_a_success_is_the_gateways_words_byte_for_byte() -> None:
    """1000.0 stays 1000.0, and an unknown member stays where it was."""
    answer = succeeded(RAW_MSG, RAW_DATA)
    assert answer.body == b'{"status":1,"msg":' + RAW_MSG + b',"data":' + RAW_DATA + b"}"
    assert (answer.http_status, answer.code) == (200, None)


@given(number=numbers)
def test_no_digit_of_a_number_is_lost(number: str) -> None:
    """A float on the way would change amounts and ids of 17 digits and more."""
    raw = with_member(b'{"amount":%b}' % number.encode(), "payments", b"[]")
    assert succeeded(b'""', raw).body == b'{"status":1,"msg":"","data":{"amount":%b,"payments":[]}}' % number.encode()


def test_our_own_data_is_answered_in_the_same_envelope() -> None:
    """Operations are read by the same code that reads payments."""
    assert found({"a": 1}).body == b'{"status":1,"msg":"OK","data":{"a":1}}'


@pytest.mark.parametrize("code", Code)
def test_the_status_follows_from_the_http_status(code: Code) -> None:
    """1, 0, -2 and -1 mean the same on every route, whatever number the gateway used."""
    answer = failed(code, "why", TRACE)
    expected = {202: 0, 401: -2, 403: -2}.get(answer.http_status, -1)
    assert parsed(answer)["status"] == expected
    assert answer.http_status == MEANINGS[code].http_status


@pytest.mark.parametrize("code", Code)
def test_an_error_names_its_code_its_advice_and_its_ids(code: Code) -> None:
    """A program reads what to do next, an operator finds it again by the ids."""
    answer = failed(code, "why", TRACE)
    member = {"code": code, "retry": MEANINGS[code].retry, "request_id": "req_1", "operation_id": "op_1"}
    assert parsed(answer) == {"status": parsed(answer)["status"], "msg": "why", "data": None, "error": member}
    assert (answer.code, answer.retry_after_s) == (code, MEANINGS[code].retry_after_s)


def test_only_members_that_apply_are_present() -> None:
    """No operation, no fields: no members that say null."""
    body = parsed(failed(Code.NOT_FOUND, "nothing here", Trace(request_id="req_1")))
    assert body["error"] == {"code": "not_found", "retry": "never", "request_id": "req_1"}


def test_fields_that_are_wrong_are_named() -> None:
    """A form can show each complaint beside its field."""
    fields = (FieldError("amount", "must be greater than 0"),)
    body = parsed(failed(Code.INVALID_REQUEST, "no", TRACE, fields=fields))
    assert isinstance(body["error"], dict)
    assert body["error"]["fields"] == [{"path": "amount", "msg": "must be greater than 0"}]


@pytest.mark.parametrize(("kind", "code"), PAIRS)
def test_an_open_outcome_shows_no_data_and_no_words_of_the_gateways(kind: OutcomeKind, code: Code | None) -> None:
    """Half a success shown would be believed; a refusal of Payrelay must not read as one of the client."""
    answer = of_outcome(outcome(kind, code), TRACE)
    is_passed_on = kind in {OutcomeKind.SUCCEEDED, OutcomeKind.DECLINED, OutcomeKind.REFUSED}
    assert (RAW_DATA in answer.body) is is_passed_on
    assert (RAW_MSG in answer.body) is is_passed_on
    assert answer.code is code


@pytest.mark.parametrize(
    "code", sorted(CODES_OF_KIND[OutcomeKind.UNKNOWN] | CODES_OF_KIND[OutcomeKind.PENDING], key=str)
)
def test_a_202_carries_null_data(code: Code) -> None:
    """What isn't known is not shown."""
    kind = OutcomeKind.PENDING if code is Code.PENDING else OutcomeKind.UNKNOWN
    body = parsed(of_outcome(outcome(kind, code), TRACE))
    assert (body["status"], body["data"], body["msg"]) == (0, None, "ours")


def test_a_success_without_words_or_data_says_ours_and_null() -> None:
    """The cancellation of a subscription has no data; the envelope is whole all the same."""
    answer = of_outcome(Outcome(kind=OutcomeKind.SUCCEEDED, code=None, msg="done"), TRACE)
    assert answer.body == b'{"status":1,"msg":"done","data":null}'


def test_an_outcome_may_name_its_own_wait_and_field() -> None:
    """The gateway's own Retry-After is better than a guess."""
    busy = Outcome(kind=OutcomeKind.NOT_SENT, code=Code.GATEWAY_BUSY, msg="full", retry_after_s=7)
    wrong = Outcome(
        kind=OutcomeKind.REFUSED, code=Code.INVALID_REQUEST, msg="no", fields=(FieldError("currency", "unknown"),)
    )
    assert of_outcome(busy, TRACE).retry_after_s == 7
    assert b'"path":"currency"' in of_outcome(wrong, TRACE).body


def test_a_read_that_found_something_is_passed_on() -> None:
    """With the gateway's words where it had some, else Payrelay's."""
    given_words = of_reading(Reading(code=None, msg="ours", raw_msg=RAW_MSG, raw_data=RAW_DATA), TRACE)
    no_words = of_reading(Reading(code=None, msg="ours"), TRACE)
    assert given_words == succeeded(RAW_MSG, RAW_DATA)
    assert no_words == succeeded(b'"ours"', b"null")


def test_a_read_that_found_nothing_says_it_in_the_gateways_words() -> None:
    """404 with ``data`` as the route has it: an empty list of payments, null for a subscription."""
    missing = Reading(code=Code.NOT_FOUND, msg="ours", raw_msg=RAW_MSG, raw_data=RAW_DATA)
    listed = of_reading(missing, TRACE, data_when_missing=b"[]")
    assert (listed.http_status, parsed(listed)["data"]) == (404, [])
    assert parsed(of_reading(missing, TRACE))["data"] is None
    assert parsed(listed)["msg"] == json.loads(RAW_MSG)


def test_a_read_that_failed_hides_what_the_gateway_said() -> None:
    """Our own refused credentials are nothing that a client should read about in the gateway's words."""
    reading = Reading(code=Code.GATEWAY_REFUSED_US, msg="ours", raw_msg=RAW_MSG, raw_data=RAW_DATA, retry_after_s=3)
    answer = of_reading(reading, TRACE, data_when_missing=b"[]")
    body = parsed(answer)
    assert (answer.http_status, answer.retry_after_s, body["msg"], body["data"]) == (502, 3, "ours", None)


def test_a_refusal_carries_its_headers_fields_and_operation() -> None:
    """What was raised deep inside arrives whole."""
    refusal = Refusal(
        Code.METHOD_NOT_ALLOWED,
        "no",
        operation_id="op_9",
        checkout_id="chk_9",
        headers=(("Allow", "GET"),),
        fields=(FieldError("a", "b"),),
    )
    answer = of_refusal(refusal, "req_9")
    assert answer.headers == (("Allow", "GET"),)
    assert parsed(answer)["error"] == {
        "code": "method_not_allowed",
        "retry": "never",
        "request_id": "req_9",
        "operation_id": "op_9",
        "checkout_id": "chk_9",
        "fields": [{"path": "a", "msg": "b"}],
    }
    assert parsed(answer)["msg"] == "no"


def test_a_refusal_may_name_its_own_wait() -> None:
    """An operation that waits for an operator is not to be asked for every second."""
    assert of_refusal(Refusal(Code.IN_PROGRESS, "wait", retry_after_s=3_600), "req_9").retry_after_s == 3_600


def test_adding_a_member_leaves_every_other_value_as_it_was() -> None:
    """The subscription that gets its payments added is still the gateway's own text."""
    raw = with_member(b'{"amount": 1000.0, "odd": {"a" :1.10}}', "payments", b'[{"amount": 2.50}]')
    assert raw == b'{"amount":1000.0,"odd":{"a" :1.10},"payments":[{"amount": 2.50}]}'


def test_a_member_that_is_there_already_is_replaced() -> None:
    """Two members of one name would be read differently by different clients."""
    assert with_member(b'{"payments":null,"a":1}', "payments", b"[]") == b'{"payments":[],"a":1}'


def is_shown(value: object) -> bool:
    """Tells whether a hidden member has a value anywhere."""
    if isinstance(value, dict):
        return any(is_shown(each) or (name in HIDDEN_FROM_APPS and each is not None) for name, each in value.items())
    return isinstance(value, list) and any(map(is_shown, value))


names = st.sampled_from(["md5sig", "authorization_token", "data", "amount", "answer"])
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=20,
)


@given(documents)
def test_an_app_gets_no_signature_at_any_depth(document: object) -> None:
    """In a charge's data, in a stored answer inside an operation, in a list: it is null, and the member stays."""
    hidden = without_signatures(found(document))
    again = without_signatures(hidden)

    assert not is_shown(parsed(hidden))
    assert again.body == hidden.body
    if not is_shown(document):
        assert parsed(hidden)["data"] == document


@pytest.mark.parametrize(("begin", "end"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_an_app_gets_nothing_from_deeper_than_is_looked(begin: bytes, end: bytes) -> None:
    """Each level is read again inside of each around it, so there is an end; no signature hides behind it."""
    levels = HIDING_LEVELS_MAX - 1  # beside the envelope's own
    fitting = begin * (levels - 1) + b'{"amount":1000.0,"md5sig":null}' + end * (levels - 1)
    deeper = begin * levels + b'{"md5sig":"A0"}' + end * levels

    assert without_signatures(succeeded(RAW_MSG, fitting)).body == succeeded(RAW_MSG, fitting).body
    assert without_signatures(succeeded(RAW_MSG, deeper)).body == (
        succeeded(RAW_MSG, begin * levels + b"null" + end * levels).body
    )


def test_what_is_not_hidden_stays_byte_for_byte() -> None:
    """1000.0 stays 1000.0 for an app too, and so does a name that is written with an escape."""
    raw = b'{ "amount":1000.0, "md5\\u0073ig":"A0", "new":[1E5,{"authorization_token":"t"}],"msg":"md5sig" }'

    hidden = without_signatures(succeeded(RAW_MSG, raw))
    assert hidden.body == (
        b'{"status":1,"msg":'
        + RAW_MSG
        + b',"data":{"amount":1000.0,"md5sig":null,"new":[1E5,{"authorization_token":null}],"msg":"md5sig"}}'
    )
