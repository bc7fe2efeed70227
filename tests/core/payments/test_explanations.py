from collections.abc import Mapping

import msgspec
import pytest
from tests.samples import OPERATION

from payrelay.core.outcomes import Evidence
from payrelay.core.payments.explanations import (
    CAUSE_PHRASES,
    CONTROL_PHRASES,
    SEEN_PHRASES,
    phrases_of,
    printable,
    reason_phrase,
    request_phrase,
    sentence_of,
    sentence_with_evidence,
)
from payrelay.core.payments.operation import Event, JournalEntry, Kind, State
from payrelay.core.payments.proof import Control, MatchResult
from payrelay.core.payments.sentences import FIRST_ENTRY
from payrelay.gateways.http.exchange import LossCause
from payrelay.gateways.payhere.wire.reply_shapes import Cause

NOT_YET = Evidence(seen=MatchResult.NOTHING, control=Control.FOUND)


def history_of(*lines: tuple[Event | None, State, Evidence]) -> list[JournalEntry]:
    """Gives a history."""
    return [
        JournalEntry(version=number, at_ms=number, event=event, state=state, evidence=evidence)
        for number, (event, state, evidence) in enumerate(lines, 1)
    ]


BEGUN = (None, State.SENDING, Evidence())
LOST = (Event.UNKNOWN, State.UNKNOWN, Evidence(cause="timeout", elapsed_ms=30_000))
INQUIRED_ABOUT = (Event.INQUIRED_ABOUT, State.UNKNOWN, NOT_YET)


def test_every_word_of_a_history_has_a_phrase() -> None:
    """An operator who decides about money must not have to guess what `other_shape` means."""
    assert CAUSE_PHRASES.keys() >= {*Cause, *LossCause}
    assert SEEN_PHRASES.keys() == set(MatchResult)
    assert CONTROL_PHRASES.keys() == set(Control)


@pytest.mark.parametrize("phrases", [CAUSE_PHRASES, SEEN_PHRASES, CONTROL_PHRASES])
def test_no_two_phrases_read_the_same(phrases: Mapping[str, str]) -> None:
    """What differs must be told apart by the operator who only reads."""
    assert len(set(phrases.values())) == len(phrases)


def test_the_reason_phrase_has_what_led_to_the_state() -> None:
    """A list has room for one phrase, and that is the one that counts."""
    assert reason_phrase(history_of(BEGUN)) == FIRST_ENTRY.removesuffix(".")
    assert reason_phrase(history_of(BEGUN, LOST)) == "No reply came in time"


@pytest.mark.parametrize(("inquiries", "times"), [(1, "once"), (4, "4 times")])
def test_the_reason_phrase_has_the_observations_since(inquiries: int, times: str) -> None:
    """An operator must know that the service inquired in vain."""
    assert reason_phrase(history_of(BEGUN, LOST, *[INQUIRED_ABOUT] * inquiries)) == (
        f"No reply came in time; inquired {times} since: the gateway shows no payment"
    )


def test_an_inquiry_without_an_observation_is_left_out() -> None:
    """A second sending that never left is no observation."""
    not_sent = (Event.INQUIRED_ABOUT, State.UNKNOWN, Evidence(cause="no_connection"))

    assert reason_phrase(history_of(BEGUN, LOST, not_sent)) == "No reply came in time"


@pytest.mark.parametrize(
    ("event", "evidence", "text"),
    [
        (Event.UNCLEAR, Evidence(seen=MatchResult.SEVERAL_FIT), "No reply came in time; several payments fit"),
        (Event.UNCLEAR, Evidence(seen="a_new_word"), "No reply came in time; a_new_word"),
        (Event.UNCLEAR, Evidence(), "No reply came in time; what the gateway shows can't resolve it"),
        (Event.DIFFERED, Evidence(cause="other_amount"), "The reply was for another amount than requested"),
        (
            Event.REAPPEARED,
            Evidence(seen=MatchResult.ONE_FITS),
            "After it had been called failed, evidence came that it may have been done",
        ),
        (Event.DIFFERED, Evidence(cause="a_new_word"), "A_new_word"),
    ],
)
def test_the_reason_phrase_has_why_an_operator_is_needed(event: Event, evidence: Evidence, text: str) -> None:
    """In the words of what was seen, where that says more than what happened."""
    assert reason_phrase(history_of(BEGUN, LOST, (event, State.NEEDS_ATTENTION, evidence))) == text


def test_all_evidence_has_a_phrase() -> None:
    """Each thing is a phrase of its own, and quotes mark the words of others."""
    evidence = Evidence(
        http_status=200,
        cause="other_amount",
        answered="500.00 LKR for order A-1",
        gateway_msg="Charged",
        elapsed_ms=9_990,
        seen=MatchResult.NOTHING,
        control=Control.NONE_KNOWN,
        payment_ids=("1", "2"),
        notification_id="ntf_1",
        operator="ann",
        reason="it is on the bank's list",
        insisted="this payment was charged back",
    )

    assert phrases_of(evidence) == [
        "the gateway shows no payment",
        "no order is known to be paid that a control query could look for",
        "the reply was for another amount than requested",
        "it was 500.00 LKR for order A-1",
        "the gateway's words: “Charged”",
        "HTTP 200",
        "payments 1, 2",
        "notification ntf_1",
        "after 9.99 s",
        "by ann",
        "because: “it is on the bank's list”",
        "although: “this payment was charged back”",
    ]


def test_no_evidence_has_no_phrase() -> None:
    """No empty words."""
    assert phrases_of(Evidence()) == []
    assert phrases_of(Evidence(payment_ids=("7",))) == ["payment 7"]
    assert phrases_of(Evidence(payment_ids=("7", "8"), order_id="A-1")) == ["payments 7, 8", "all of order “A-1”"]
    assert phrases_of(Evidence(authorized_minor=251_000)) == ["authorized was 2510.00"]


def test_an_entry_is_a_sentence() -> None:
    """The sentences are those of the API."""
    assert [sentence_of(entry) for entry in history_of(BEGUN, LOST)] == [
        FIRST_ENTRY,
        "No answer came that the service can rely on.",
    ]


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({"amount_minor": 123_456_700}, "charge of LKR 1,234,567.00 for order A-1"),
        ({"payment_id": "7"}, "charge of LKR 1,000.00 for order A-1, payment 7"),
        (
            {"kind": Kind.CAPTURE, "currency": None, "order_id": None, "amount_minor": 5},
            "capture of an authorization of 0.05",
        ),
        ({"kind": Kind.REFUND, "amount_minor": None, "payment_id": "7"}, "refund in full for order A-1, payment 7"),
        ({"kind": Kind.REFUND, "amount_minor": 5}, "refund of LKR 0.05 for order A-1"),
        ({"kind": Kind.VOID, "currency": None, "order_id": None, "amount_minor": None}, "void of an authorization"),
        (
            {"kind": Kind.CANCEL, "order_id": None, "amount_minor": None, "subscription_id": "42"},
            "cancellation for subscription 42",
        ),
    ],
)
def test_a_request_is_a_phrase(members: dict[str, object], text: str) -> None:
    """What it is, how much, and of what: all that a list has room for."""
    assert request_phrase(msgspec.structs.replace(OPERATION, **members)) == text


@pytest.mark.parametrize(("text", "shown"), [("Tee für 2 €", "Tee für 2 €"), ("\x1b[2Jx\n", "\\x1b[2Jx\\x0a")])
def test_a_text_of_others_does_not_steer_a_terminal(text: str, shown: str) -> None:
    """An order id could clear the screen, and write another amount on it."""
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (BEGUN, FIRST_ENTRY),
        (LOST, "No answer came that the service can rely on: no reply came in time."),
        (
            INQUIRED_ABOUT,
            (
                "The service inquired at the gateway, and that did not resolve it: the gateway shows no payment; a"
                " control query found what is known to be there."
            ),
        ),
    ],
)
def test_an_entry_is_a_sentence_with_its_evidence(entry: tuple[Event | None, State, Evidence], words: str) -> None:
    """Support reads it to the customer as it stands."""
    assert sentence_with_evidence(history_of(entry)[0]) == words


def test_words_that_have_no_phrase_are_shown_as_they_are() -> None:
    """A history that a newer version wrote is read by an older one while they are exchanged."""
    evidence = Evidence(seen="new_sight", control="new_control", cause="new_cause")
    entry = (Event.INQUIRED_ABOUT, State.UNKNOWN, evidence)

    assert phrases_of(evidence) == ["new_sight", "new_control", "new_cause"]
    assert sentence_with_evidence(history_of(entry)[0]).endswith(": new_sight; new_control; new_cause.")
    assert reason_phrase(history_of(BEGUN, LOST, entry)) == "No reply came in time; inquired once since: new_sight"


def test_inquiries_before_an_operator_was_called_are_not_counted_as_inquiries_since() -> None:
    """What called the operator says what was seen in the end; the inquiries before led there."""
    unclear = (Event.UNCLEAR, State.NEEDS_ATTENTION, Evidence(seen=MatchResult.SEVERAL_FIT))

    assert (
        reason_phrase(history_of(BEGUN, LOST, INQUIRED_ABOUT, unclear)) == "No reply came in time; several payments fit"
    )


def test_a_step_within_a_state_did_not_bring_it_there() -> None:
    """An operation that is sent again with another access token is where it was."""
    assert reason_phrase(history_of(BEGUN, (Event.RESENT, State.SENDING, Evidence()))) == FIRST_ENTRY.removesuffix(".")
