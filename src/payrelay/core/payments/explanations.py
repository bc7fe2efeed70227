"""Phrases, fit to be read out, for the short words that a history stores, and for why an operation is in its state.

To be changed together: the words in ``core.payments.proof``, the causes of the gateways' adapters, and the tables here;
a test compares them.
"""

from collections.abc import Sequence
from typing import Final

from payrelay.core.money import decimal_text, money_text
from payrelay.core.outcomes import Evidence
from payrelay.core.payments.operation import Event, JournalEntry, Kind, Operation
from payrelay.core.payments.proof import Control, MatchResult
from payrelay.core.payments.sentences import EVENT_SENTENCES, FIRST_ENTRY

CAUSE_PHRASES: Final[dict[str, str]] = {
    "rate_limited": "the gateway's budget of calls was used up",
    "authentication_error": "the gateway did not accept the service's credentials",
    "domain_denied": "the gateway did not accept the service's domain or address",
    "invalid_token": "the gateway did not accept the access token",
    "credentials_refused": "the gateway gave no access token for the service's credentials",
    "redirected": "the gateway pointed to another address",
    "server_error": "the gateway answered with an error of its own",
    "unexpected_status": "the gateway answered with a status that it does not document",
    "oauth_error": "the gateway answered with an error about the access token",
    "request_not_utf8": "the request had text that is not valid Unicode",
    "not_utf8": "the reply was not UTF-8",
    "not_json": "the reply was not JSON",
    "doubled_member": "the reply had one member twice",
    "other_shape": "the reply was not of the shape that the gateway documents",
    "token_echoed": "the reply held the service's access token",
    "unexpected_reply": "the service doesn't know what the reply means",
    "already_captured": "the gateway answered that the authorization is captured already",
    "already_released": "the gateway answered that the authorization was voided",
    "already_cancelled": "the gateway answered that the subscription is cancelled already",
    "no_such_hold": "the gateway answered that there is no such authorization",
    "other_order": "the reply was for another order than requested",
    "other_amount": "the reply was for another amount than requested",
    "other_currency": "the reply was for another currency than requested",
    "other_subscription": "the reply was for another subscription than requested",
    "no_place": "there was no permit in the gateway's budget of calls in time",
    "gateway_failing": "the gateway had failed again and again, and the service had stopped calling it for a while",
    "paused": "an operator paused the account while it waited for its permit",
    "store_down": "the service could not read the budget of calls from the database",
    "token_timeout": "no access token came in time",
    "name_not_found": "the gateway's host name could not be found",
    "no_connection": "the service could not connect to the gateway",
    "tls_failed": "no secure connection could be made",
    "connect_timeout": "no connection could be made in time",
    "too_late": "the time in which it may be sent was over",
    "stale_connection": "the connection had been closed before",
    "closed": "the service was being stopped",
    "timeout": "no reply came in time",
    "connection_lost": "the connection was lost before the reply",
    "half_reply": "only a part of the reply came",
    "not_http": "the reply was not HTTP that the service can read",
    "too_large": "the reply was larger than the service accepts",
    "internal_error": "the service failed by an internal error while the operation was under way",
    "process_ended": "the process that worked on it had ended",
    "intent_not_stored": "the service could not store it",
    "commits_lost": "the database lost commits, and an earlier try of it may have been carried out before",
    "grant_not_stored": "the service could not store the intent to send the operation",
}
"""Causes of a call's outcome."""

SEEN_PHRASES: Final[dict[str, str]] = {
    MatchResult.NOTHING: "the gateway shows no payment",
    MatchResult.ONLY_OTHERS: "the gateway shows only payments of other operations or other amounts",
    MatchResult.ONE_FITS: "exactly one payment fits in every part",
    MatchResult.SEVERAL_FIT: "several payments fit",
    MatchResult.ONE_RESEMBLES: "the gateway shows a payment of the same amount that does not fit otherwise",
    MatchResult.MAY_BE_ANOTHERS: "one payment fits, but may belong to another open operation on the order",
    MatchResult.MAY_BE_OF_A_FORM: (
        "one payment fits, but a customer may have made it with a form for the gateway's page, which can be paid again"
    ),
    MatchResult.REFUND_SHOWN: "the payment's record shows a refund",
    MatchResult.STILL_RECEIVED: "the payment's record shows no refund",
    MatchResult.OTHERWISE: "the payment's record shows something else",
    MatchResult.ALREADY_DONE: "it was done already",
    MatchResult.ALREADY_UNDONE: "the authorization does not exist or was voided",
    MatchResult.NOTIFIED: "the gateway reported it in a notification, with its authorization token",
    MatchResult.TEXT_OF_ANOTHER: (
        "the gateway reported an authorization in a notification, whose signature also fits another form or call"
    ),
    MatchResult.SIGNED_ELSEWHERE: (
        "the gateway reported an authorization in a notification, whose signature may be of a form that was signed"
        " elsewhere"
    ),
    MatchResult.UNSEEN: "every inquiry at the gateway failed for a week",
    MatchResult.NOTHING_TO_SEE: "the gateway has no way to show it",
}
"""What a status inquiry showed."""

CONTROL_PHRASES: Final[dict[str, str]] = {
    Control.FOUND: "a control query found what is known to be there",
    Control.NOT_FOUND: "a control query did not find what is known to be there, so this proves nothing",
    Control.NONE_KNOWN: "no order is known to be paid that a control query could look for",
}
"""The result of the control query beside a status inquiry."""

_KIND_NOUNS: Final = {
    Kind.CHARGE: "charge",
    Kind.AUTHORIZATION: "authorization",
    Kind.CAPTURE: "capture of an authorization",
    Kind.REFUND: "refund",
    Kind.VOID: "void of an authorization",
    Kind.RETRY: "retry",
    Kind.CANCEL: "cancellation",
}


def reason_phrase(history: Sequence[JournalEntry]) -> str:
    """Gives one phrase for why an operation is in its state: what led to the state, and the observations since.

    ``history`` is oldest first, and never empty.
    """
    state = history[-1].state
    entered = max((number for number, entry in enumerate(history) if entry.state is not state), default=-1) + 1
    observations = [
        entry.evidence.seen
        for entry in history[entered + 1 :]
        if entry.event is Event.INQUIRED_ABOUT and entry.evidence.seen
    ]
    phrase = _entry_phrase(history[entered])
    if history[entered].event is Event.UNCLEAR and entered > 0:
        phrase = f"{reason_phrase(history[:entered]).partition(';')[0]}; {phrase[:1].lower()}{phrase[1:]}"
    if observations:
        times = "once" if len(observations) == 1 else f"{len(observations)} times"
        phrase = f"{phrase}; inquired {times} since: {_phrase(SEEN_PHRASES, observations[-1])}"
    return phrase


def request_phrase(operation: Operation) -> str:
    """Gives one phrase for what an operation's request was, without opening anything that is sealed."""
    words = [_KIND_NOUNS[operation.kind]]
    if operation.amount_minor is not None:
        words.append(f"of {money_text(operation.amount_minor, operation.currency)}")
    elif operation.kind is Kind.REFUND:
        words.append("in full")  # it names no amount
    named = (
        ("order", operation.order_id),
        ("payment", operation.payment_id),
        ("subscription", operation.subscription_id),
    )
    things = [f"{noun} {name}" for noun, name in named if name is not None]
    if things:
        words.append("for")
    return " ".join([*words, ", ".join(things)]).rstrip()


def sentence_of(entry: JournalEntry) -> str:
    """Gives the sentence for what a journal entry records."""
    return FIRST_ENTRY if entry.event is None else EVENT_SENTENCES[entry.event]


def sentence_with_evidence(entry: JournalEntry) -> str:
    """Gives one sentence for what a journal entry records and its evidence, fit for support to read out."""
    phrases = _short_phrases(entry.evidence)
    sentence = sentence_of(entry)
    return f"{sentence.removesuffix('.')}: {'; '.join(phrases)}." if phrases else sentence


def phrases_of(evidence: Evidence) -> list[str]:
    """Gives a phrase for each piece of evidence; texts of the gateway and of operators are quoted."""
    phrases = _short_phrases(evidence)
    if evidence.answered is not None:
        phrases.append(f"it was {evidence.answered}")
    if evidence.gateway_msg is not None:
        phrases.append(f"the gateway's words: “{evidence.gateway_msg}”")
    if evidence.http_status is not None:
        phrases.append(f"HTTP {evidence.http_status}")
    if evidence.payment_ids:
        phrases.append(f"payment{'s' if len(evidence.payment_ids) > 1 else ''} {', '.join(evidence.payment_ids)}")
    if evidence.order_id is not None:
        phrases.append(f"all of order “{evidence.order_id}”")
    if evidence.notification_id is not None:
        phrases.append(f"notification {evidence.notification_id}")
    if evidence.authorized_minor is not None:
        phrases.append(f"authorized was {decimal_text(evidence.authorized_minor)}")
    if evidence.elapsed_ms is not None:
        phrases.append(f"after {evidence.elapsed_ms / 1000:.3g} s")
    if evidence.operator is not None:
        phrases.append(f"by {evidence.operator}")
    if evidence.reason is not None:
        phrases.append(f"because: “{evidence.reason}”")
    if evidence.insisted is not None:
        phrases.append(f"although: “{evidence.insisted}”")
    return phrases


def printable(text: str) -> str:
    """Gives a text without the characters that control a terminal; clients and the gateway choose such texts."""
    return "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in text)


def _short_phrases(evidence: Evidence) -> list[str]:
    tables = ((SEEN_PHRASES, evidence.seen), (CONTROL_PHRASES, evidence.control), (CAUSE_PHRASES, evidence.cause))
    return [_phrase(table, word) for table, word in tables if word is not None]


def _phrase(table: dict[str, str], word: str) -> str:
    return table.get(word, word)


def _entry_phrase(entry: JournalEntry) -> str:
    """Gives the phrase for what led an operation to a state: the evidence, where it says more than the event."""
    seen, cause = entry.evidence.seen, entry.evidence.cause
    if entry.event is Event.UNCLEAR and seen is not None:
        text = _phrase(SEEN_PHRASES, seen)
    elif cause is not None:
        text = _phrase(CAUSE_PHRASES, cause)
    else:
        text = sentence_of(entry).removesuffix(".")
    return text[:1].upper() + text[1:]
