"""Every sentence that denies an effect is true in each state in which it can be said.

A caller acts on such a sentence: it charges by another way, or tells a customer that nothing was taken. So each is
listed here with what makes it true. A new one fails the test until somebody has looked at where it is said.
"""

import ast
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import pytest
from tests.sources import PARTS, ROOT

from payrelay.core.operators.held_decisions import MEANINGS_OF_DECISIONS, HeldDecision
from payrelay.core.outcomes import CODES_OF_KIND, OutcomeKind
from payrelay.errors import MEANINGS, Code
from payrelay.flows.access.lost_owners import OWNER_SENTENCE
from payrelay.flows.requests.recovery_gate import UNRECOVERED_SENTENCE
from payrelay.runtime.database.lost_commits import BEHIND_SENTENCE, RETURNING_SENTENCE, SETTLING_SENTENCE

SOURCES: Final = (ROOT / "src" / "payrelay", ROOT / "tools" / "payrelay_tools")
ELSEWHERE: Final = ("api/public/", "store/", *(f"{part}/store/" for part in PARTS))
"""Customers' pages have a test of their own; what the store says is for the tests of its digests."""
DENIES: Final = re.compile(
    r"\bnothing (?:was|is|has)\b|\b(?:was|were|is|are) not (?:sent|charged|done|stored)\b|\bnot executed\b"
    r"|\bno (?:effect|money|byte)\b|\b(?:did|changed|took|moves) (?:nothing|no )|\bdid not (?:send|happen|reach)\b",
    re.IGNORECASE,
)


class Known(StrEnum):
    """What makes a denial true."""

    NEVER_SENT = "this request was never in ``sending``, and only its own attempt could have sent it"
    REJECTED = "no byte of the change left, or the gateway rejected it before it did anything"
    ANSWERED = "the gateway's own answer says so, and the state is stored for it alone"
    ESTABLISHED = "proof, or an operator on record, says so, and the state is stored for it alone"
    HERE = "it is about this command or this database, and is said before or after the one transaction"
    SHOWN = "it is about what is stored here, and the same statement has just read it"


DENIALS: Final[dict[str, Known]] = {
    # Commands about whole databases.
    "nothing was copied": Known.HERE,
    "nothing was restored": Known.HERE,
    " findings in the backup; nothing was restored": Known.HERE,
    "; nothing was touched": Known.HERE,
    # The console.
    "That was not done": Known.HERE,
    "It asks for something else than its page said. Nothing was done: begin again.": Known.HERE,
    # Commands about reports and about what is old.
    ": nothing is stored of a file with a wrong line": Known.HERE,
    "nothing is cleared while the database lacks commits or a recovery is under way": Known.HERE,
    "Nothing is kept.": Known.SHOWN,
    "Nothing is set here, so this is about the demo in ": Known.SHOWN,
    "nothing is known of an order ": Known.SHOWN,
    "nothing was closed": Known.HERE,
    "not compared yet, so that nothing is closed: ": Known.HERE,
    # Our books beside the gateway's and the bank's.
    " was not compared; nothing of it is known, and nothing is booked.": Known.SHOWN,
    "our books alone; nothing was read that could show it": Known.SHOWN,
    "Money was taken for what our books call failed: the customer heard that nothing was.": Known.SHOWN,
    "Your reason explains it. Nothing is changed in the books or at the gateway. It is open again only where a"
    " comparison finds that it says something else.": Known.HERE,
    " took no money, or are the fee of an approval that was given back: no sum has an amount of them": Known.SHOWN,
    "both sides say that no money was taken": Known.SHOWN,
    ": a fee, or a net, of what took no money": Known.SHOWN,
    # The money of an order and of a payment.
    "nothing was paid, and nothing is held": Known.SHOWN,
    "nothing is known here of this payment": Known.SHOWN,
    "nothing was refunded": Known.HERE,
    "An equal refund was asked for before, and nothing was sent now: this is what came of it.": Known.SHOWN,
    # What a shop had before.
    "nothing was imported": Known.HERE,
    "it was cancelled, and took no money": Known.ANSWERED,
    "it failed, and took no money": Known.ANSWERED,
    # Refusals of an effect.
    "the gateway's budget of calls is used up; this request was not sent": Known.NEVER_SENT,
    "the gateway is failing; this request was not sent": Known.NEVER_SENT,
    "the service is about to stop; this request was not sent": Known.NEVER_SENT,
    "the database may lack operations that were carried out, and an operator must start its recovery; this request was"
    " not sent": Known.NEVER_SENT,
    "new operations on this account are paused by an operator; this request was not sent": Known.NEVER_SENT,
    "; this request was not sent": Known.NEVER_SENT,
    "another refund of this payment came between; this request was not sent": Known.NEVER_SENT,
    "the payment's money is no more as it was shown to you; nothing was sent": Known.NEVER_SENT,
    "the subscription's payments could not be read, which a retry needs beforehand; the retry was not sent": (
        Known.NEVER_SENT
    ),
    "the account is another merchant's now; this request was not sent": Known.NEVER_SENT,
    UNRECOVERED_SENTENCE: Known.NEVER_SENT,
    BEHIND_SENTENCE: Known.NEVER_SENT,
    SETTLING_SENTENCE: Known.NEVER_SENT,
    OWNER_SENTENCE: Known.NEVER_SENT,
    "has no known owner, and may be another principal's whose record is among the commits that the database lost; this"
    " request was not sent": Known.NEVER_SENT,
    ", and the database lost its newest operations: an earlier try of this request may have been carried out before;"
    " this request was not sent": Known.NEVER_SENT,
    "the database lost its newest operations, and the gateway may not show yet whether an earlier try of this request"
    " was carried out; this request was not sent": Known.NEVER_SENT,
    "the database lost its newest operations, and the gateway does not show now whether an earlier try of this request"
    " was carried out; this request was not sent": Known.NEVER_SENT,
    "another operation on the same order, payment or subscription came while the service looked for an earlier try of"
    " this request; this request was not sent": Known.NEVER_SENT,
    RETURNING_SENTENCE: Known.NEVER_SENT,
    "a recovery of the database has just begun; this request was not sent": Known.NEVER_SENT,
    "another database took the place of this one; this request was not sent": Known.NEVER_SENT,
    # Outcomes of a call.
    "the gateway rejected the access token, and the service could not resend the request; nothing was executed": (
        Known.REJECTED
    ),
    "the gateway is failing, and is not called for a while; nothing was executed": Known.REJECTED,
    "the gateway's budget of calls is used up; nothing was executed": Known.REJECTED,
    "the budget of calls can't be looked up, because the store is down; nothing was executed": Known.REJECTED,
    "there is no connection to the gateway; nothing was executed": Known.REJECTED,
    "the gateway does not accept the access token that it gave us; nothing was executed": Known.REJECTED,
    "the gateway gave no access token in time; nothing was executed": Known.REJECTED,
    "the service could not send it to the gateway; nothing was executed": Known.REJECTED,
    "the gateway takes no more calls for now; nothing was executed": Known.REJECTED,
    "the gateway does not accept our API key for this call; nothing was executed": Known.REJECTED,
    "the gateway does not accept our domain or our server's address; nothing was executed": Known.REJECTED,
    "the gateway does not accept our App ID and secret; nothing was executed": Known.REJECTED,
    "the gateway gave no access token; nothing was executed": Known.REJECTED,
    # Codes.
    MEANINGS[Code.GATEWAY_REFUSED_US].sentence: Known.REJECTED,
    MEANINGS[Code.GATEWAY_BUSY].sentence: Known.REJECTED,
    MEANINGS[Code.GATEWAY_UNREACHABLE].sentence: Known.REJECTED,
    MEANINGS[Code.UNAVAILABLE].sentence: Known.REJECTED,
    # States and events of an operation.
    "The gateway or the bank declined it; no money was charged.": Known.ANSWERED,
    "The gateway refused the request, and did nothing for it.": Known.ANSWERED,
    "It took no effect; the client can make the same request again.": Known.REJECTED,
    "Evidence or an operator established that it did not happen.": Known.ESTABLISHED,
    "The service gave it up while it waited for a permit; it was not sent.": Known.NEVER_SENT,
    "The service did not send it; no byte of it left.": Known.REJECTED,
    "What the gateway shows proves that it did not happen.": Known.ESTABLISHED,
    "An operator decided that it did not happen.": Known.ESTABLISHED,
    "evidence or an operator established that it did not happen; to try again, use another Idempotency-Key": (
        Known.ESTABLISHED
    ),
    "An operator decided not to send it; no byte of it left.": Known.NEVER_SENT,
    MEANINGS_OF_DECISIONS[HeldDecision.REFUSE]: Known.NEVER_SENT,
    # The rest.
    "It did not happen": Known.HERE,  # what an operator is about to decide
    "It was withdrawn; nothing was done.": Known.HERE,
    "Optional for a preapproval; without it, nothing is charged now.": Known.HERE,
    " of the ids name no stored event; nothing was sent": Known.HERE,
    "Verified: nothing was changed or removed.": Known.SHOWN,
    "another process has just made a new key; nothing was changed": Known.HERE,
    "nothing was accepted": Known.HERE,
    "nothing was acknowledged": Known.HERE,
    "nothing was erased": Known.HERE,
    "; nothing was sent": Known.HERE,
    "nothing was charged": Known.HERE,
    "nothing was charged in this run": Known.HERE,
    "nothing was decided": Known.HERE,
    "Nothing is sealed yet.": Known.SHOWN,
    "nothing was found": Known.SHOWN,
    "it reports no effect, and changes nothing": Known.ANSWERED,
    "it is another payment than the order's, which was given back or took no money": Known.SHOWN,
    "nothing is known of such a subscription here; GET subscriptions asks the gateway": Known.SHOWN,
}


def _texts(tree: ast.Module) -> Iterator[str]:
    """Gives the texts of a module that are no docstrings."""
    documented = {id(each.value) for node in ast.walk(tree) for each in _body(node) if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield node.value


def _body(node: ast.AST) -> list[ast.stmt]:
    body = getattr(node, "body", None)
    return body if isinstance(body, list) else []


def _denials() -> dict[str, str]:
    """Gives each text of the program that denies an effect, with the module that has it."""
    found: dict[str, str] = {}
    for source in SOURCES:
        for path in sorted(source.rglob("*.py")):
            module = path.relative_to(source).as_posix()
            if module.startswith(ELSEWHERE):
                continue
            texts = _texts(ast.parse(path.read_text()))
            found |= {text: module for text in texts if DENIES.search(text)}
    return found


def test_every_denial_is_listed_with_what_makes_it_true() -> None:
    """Who adds one says why it can't be false; who removes one removes it here."""
    found = _denials()
    assert {text: module for text, module in found.items() if text not in DENIALS} == {}
    assert {text for text in DENIALS if text not in found} == set()


@pytest.mark.parametrize("kind", [OutcomeKind.UNKNOWN, OutcomeKind.DIFFERED, OutcomeKind.PENDING])
def test_an_effect_that_may_have_happened_is_never_answered_by_a_denial(kind: OutcomeKind) -> None:
    """A client that reads the code alone must not take a lost answer for a failure."""
    for code in CODES_OF_KIND[kind]:
        assert code is not None
        assert MEANINGS[code].http_status == 202
        assert not DENIES.search(MEANINGS[code].sentence)
