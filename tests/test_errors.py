import pytest

from payrelay.errors import (
    MEANINGS,
    Code,
    IllegalTransition,
    Outdated,
    PayrelayError,
    Refusal,
    Retry,
    SettingsError,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
)

CODES_OF_STATUS = {
    202: {"outcome_unknown", "needs_attention", "pending"},
    400: {"malformed_request"},
    401: {"unauthenticated"},
    402: {"declined"},
    403: {"forbidden"},
    404: {"not_found"},
    405: {"method_not_allowed"},
    409: {"in_progress", "conflict"},
    410: {"position_lost"},
    413: {"too_large"},
    415: {"unsupported_media_type"},
    422: {"invalid_request", "idempotency_mismatch"},
    429: {"rate_limited"},
    500: {"internal"},
    501: {"not_configured"},
    502: {"gateway_refused_us", "gateway_bad_reply"},
    503: {"gateway_busy", "gateway_unreachable", "unavailable"},
}


def test_every_code_has_a_meaning() -> None:
    """An answer is made from the table alone; a code that it lacks would be an exception in place of an answer."""
    assert set(MEANINGS) == set(Code)


@pytest.mark.parametrize("http_status", CODES_OF_STATUS)
def test_each_http_status_has_exactly_its_codes(http_status: int) -> None:
    """The interface promises these numbers to its clients."""
    codes = {code for code, meaning in MEANINGS.items() if meaning.http_status == http_status}
    assert codes == CODES_OF_STATUS[http_status]


def test_every_code_has_one_of_these_statuses() -> None:
    """No number beyond those that are promised."""
    assert {meaning.http_status for meaning in MEANINGS.values()} == set(CODES_OF_STATUS)


@pytest.mark.parametrize("code", Code)
def test_a_wait_is_named_exactly_where_waiting_is_the_advice(code: Code) -> None:
    """``after`` without a Retry-After leaves a client guessing; a wait without the advice contradicts it."""
    meaning = MEANINGS[code]
    assert (meaning.retry_after_s is not None) == (meaning.retry is Retry.AFTER)


@pytest.mark.parametrize("code", Code)
def test_each_code_says_in_a_sentence_what_it_is_for(code: Code) -> None:
    """The sentences are the documentation of the errors."""
    assert MEANINGS[code].sentence[0].isupper()
    assert MEANINGS[code].sentence.endswith(".")


def test_a_refusal_takes_its_wait_from_the_table_unless_it_names_one() -> None:
    """Who knows better how long to wait says so; zero is a wait too."""
    assert Refusal(Code.RATE_LIMITED, "slow down").retry_after_s == 1
    assert Refusal(Code.RATE_LIMITED, "slow down", retry_after_s=0).retry_after_s == 0
    assert Refusal(Code.NOT_FOUND, "nothing here").retry_after_s is None


def test_a_refusal_reads_as_its_message() -> None:
    """A log line that prints the exception says what the client was told."""
    assert str(Refusal(Code.CONFLICT, "already captured")) == "already captured"


@pytest.mark.parametrize("kind", [Refusal, SettingsError, StoreError, IllegalTransition])
def test_everything_that_we_raise_has_one_root(kind: type[Exception]) -> None:
    """The edge can tell what we raised on purpose from what went wrong by itself."""
    assert issubclass(kind, PayrelayError)


@pytest.mark.parametrize("kind", [StoreUnavailable, StoreUnusable, Outdated])
def test_what_the_store_raises_can_be_caught_as_one(kind: type[Exception]) -> None:
    """An outcome that could not be stored is stored later, whatever the reason was."""
    assert issubclass(kind, StoreError)
