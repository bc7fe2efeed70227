import msgspec
import pytest

from payrelay.core.outcomes import CODES_OF_KIND, Evidence, Outcome, OutcomeKind
from payrelay.core.payments.operation import EVENT_OF_OUTCOME, FINAL, TRANSITIONS, State
from payrelay.errors import MEANINGS, Code

ALL_CODES = [None, *Code]


@pytest.mark.parametrize("kind", OutcomeKind)
@pytest.mark.parametrize("code", ALL_CODES)
def test_an_effect_is_answered_with_a_code_of_its_verdict_or_not_at_all(kind: OutcomeKind, code: Code | None) -> None:
    """A mistake in an adapter must not become a false answer: it is an error, and the outcome then unknown."""
    if code in CODES_OF_KIND[kind]:
        assert Outcome(kind=kind, code=code, msg="").code is code
        return
    with pytest.raises(ValueError, match=f"{kind} can't be answered"):
        Outcome(kind=kind, code=code, msg="")


@pytest.mark.parametrize("kind", OutcomeKind)
def test_a_client_hears_202_exactly_while_the_operation_is_open(kind: OutcomeKind) -> None:
    """What the answer says and what the row says are one thing."""
    is_final = TRANSITIONS[State.SENDING, EVENT_OF_OUTCOME[kind]] in FINAL
    statuses = {200 if code is None else MEANINGS[code].http_status for code in CODES_OF_KIND[kind]}
    assert (202 in statuses) is not is_final
    assert (statuses == {200}) is (kind is OutcomeKind.SUCCEEDED)


def test_a_changed_outcome_is_checked_too() -> None:
    """A copy with another kind is as dangerous as a new one."""
    done = Outcome(kind=OutcomeKind.SUCCEEDED, code=None, msg="OK")
    with pytest.raises(ValueError, match="unknown can't be answered"):
        msgspec.structs.replace(done, kind=OutcomeKind.UNKNOWN)


def test_evidence_writes_only_what_was_seen() -> None:
    """Support reads it to customers; a row of nulls says nothing."""
    assert msgspec.json.encode(Evidence(cause="timeout")) == b'{"cause":"timeout"}'
