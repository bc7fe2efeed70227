"""What becomes of each operation under each fault: the table, to be read beside the rules in ``core.payments.proof``.

One row is a fault, one column an operation, one entry the end that it must come to. Written from the rules, not from
the program; ``test_table.py`` lives through every entry against the simulated gateway.
"""

from typing import Final, Literal

import msgspec

from payrelay.core.payments.operation import State
from payrelay.core.payments.proof import MatchResult
from payrelay.errors import Code
from payrelay_simulator.faults import Arguments

MINUTE_S: Final = 60
HOUR_S: Final = 3_600
DAY_S: Final = 24 * HOUR_S

OPERATIONS: Final = (
    "charge",
    "authorization",
    "capture",
    "refund_whole",
    "refund_part",
    "void",
    "retry",
    "cancel",
)

RESENT: Final = ("capture", "cancel")
"""Operations that are resent to resolve them; no other ever is."""

Killed = Literal["before", "after"]


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What befalls the call that carries the operation to the gateway.

    Attributes:
        words: for a reader.
        happens: whether the gateway carries it out all the same.
        struck: the simulated gateway's own fault, if it is one.
        arguments: of that fault.
        is_lost: the reply is lost on its way back.
        killed: our process is killed at that moment: before the gateway has the call, or after.
        hidden_s: how long the gateway doesn't show what it has done.
        twin: somebody else pays the same on the same order at the same time.
        older: an equal payment, made by somebody else a day before, is there.
        is_control_known: an order of the merchant's is known to be paid.
        down_s: how long the gateway can't be reached afterwards.
        times: how many sendings of it this befalls.
        is_search_blind: the gateway's searches find nothing afterwards, whatever is there.
    """

    words: str
    happens: bool
    struck: str | None = None
    arguments: Arguments = Arguments()
    is_lost: bool = False
    killed: Killed | None = None
    hidden_s: float | None = None
    twin: bool = False
    older: bool = False
    is_control_known: bool = True
    down_s: float = 0.0
    times: int = 1
    is_search_blind: bool = False


class End(msgspec.Struct, frozen=True, kw_only=True):
    """What an operation comes to, and how.

    Attributes:
        words: for a reader.
        state: its state in the end.
        http_status, code: what a repeat of the request is answered then; of what was not sent, the first answer.
        by_s: the latest moment after the sending at which it must have come there.
        not_before_s: the earliest.
        is_proved: the answer is composed from the request and from what was found.
        is_sent_again: the second sending has the effect that the first one hadn't.
        is_absent: established by observations of nothing alone.
        shown: what the operator is told was observed; None where the reply was what needed an operator.
    """

    words: str
    state: State
    http_status: int
    code: Code | None
    by_s: float
    not_before_s: float = 0.0
    is_proved: bool = False
    is_sent_again: bool = False
    is_absent: bool = False
    shown: MatchResult | None = None


class Senseless(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no such case."""

    words: str


FAULTS: Final[dict[str, Fault]] = {
    "refuse": Fault(words="no connection", happens=False, struck="refuse"),
    "hang_before": Fault(words="no reply, nothing done", happens=False, struck="hang_before"),
    "hang_after": Fault(words="no reply, done", happens=True, struck="hang_after"),
    "cut_before": Fault(words="connection cut, nothing done", happens=False, struck="cut_before"),
    "cut_after": Fault(words="connection cut, done", happens=True, struck="cut_after"),
    "half_body": Fault(words="half of the reply, done", happens=True, struck="half_body"),
    "truncated_json": Fault(words="a reply that ends too early, done", happens=True, struck="truncated_json"),
    "html_502_before": Fault(words="an HTML page with 502, nothing done", happens=False, struck="html_502_before"),
    "html_502_after": Fault(words="an HTML page with 502, done", happens=True, struck="html_502_after"),
    "domain_denied": Fault(words="domain denied (401)", happens=False, struck="domain_denied"),
    "authentication_error": Fault(words="authentication error (-2)", happens=False, struck="authentication_error"),
    "budget_block": Fault(words="blocked for too many calls (429)", happens=False, struck="budget_block"),
    "token_expired": Fault(words="access token expires in mid-call", happens=True, struck="token_expired"),
    "late_15_minutes": Fault(words="lost, shown 15 minutes later", happens=True, is_lost=True, hidden_s=15 * MINUTE_S),
    "late_72_hours": Fault(words="lost, shown 72 hours later", happens=True, is_lost=True, hidden_s=3 * DAY_S),
    "late_10_days": Fault(words="lost, shown 10 days later", happens=True, is_lost=True, hidden_s=10 * DAY_S),
    "pending_done": Fault(
        words="pending, done a minute later", happens=True, struck="pending", arguments=Arguments(wait_s=60)
    ),
    "pending_not_done": Fault(
        words="pending, never done", happens=False, struck="pending", arguments=Arguments(settles=False)
    ),
    "other_amount": Fault(words="another amount in the reply", happens=True, struck="other_amount"),
    "other_order": Fault(words="another order in the reply", happens=True, struck="other_order"),
    "two_candidates": Fault(
        words="lost, and an equal one made at the same time", happens=True, is_lost=True, twin=True
    ),
    "older_equal_done": Fault(words="lost, with an older equal payment", happens=True, is_lost=True, older=True),
    "older_equal_not_done": Fault(
        words="lost, nothing done, with an older equal payment", happens=False, struck="cut_before", older=True
    ),
    "no_control": Fault(
        words="lost, nothing done, no order known to be paid",
        happens=False,
        struck="cut_before",
        is_control_known=False,
    ),
    "down_3_hours": Fault(
        words="lost, done, and the gateway is down for 3 hours", happens=True, is_lost=True, down_s=3 * HOUR_S
    ),
    "lost_twice": Fault(
        words="lost, done, and lost once more where it is sent again", happens=True, is_lost=True, times=2
    ),
    "search_blind": Fault(
        words="lost, nothing done, and no search finds anything",
        happens=False,
        struck="cut_before",
        is_search_blind=True,
    ),
    "killed_before": Fault(words="Payrelay's process killed, nothing done", happens=False, killed="before"),
    "killed_after": Fault(words="Payrelay's process killed, done", happens=True, killed="after"),
}

UNSENT: Final = End(words="not sent", state=State.NOT_SENT, http_status=503, code=Code.GATEWAY_UNREACHABLE, by_s=0)
SHUT_OUT: Final = End(words="not executed", state=State.NOT_SENT, http_status=502, code=Code.GATEWAY_REFUSED_US, by_s=0)
BUSY: Final = End(words="not executed", state=State.NOT_SENT, http_status=503, code=Code.GATEWAY_BUSY, by_s=0)
DONE: Final = End(words="done at once", state=State.SUCCEEDED, http_status=200, code=None, by_s=0)
PROVED: Final = End(
    words="proved within a minute", state=State.SUCCEEDED, http_status=200, code=None, by_s=MINUTE_S, is_proved=True
)
PROVED_3M: Final = msgspec.structs.replace(PROVED, words="proved within 3 minutes", by_s=3 * MINUTE_S)
PROVED_1H: Final = msgspec.structs.replace(
    PROVED, words="proved within an hour, once shown", by_s=HOUR_S + MINUTE_S, not_before_s=15 * MINUTE_S
)
PROVED_4D: Final = msgspec.structs.replace(
    PROVED, words="proved within 96 hours, once shown", by_s=4 * DAY_S + MINUTE_S, not_before_s=3 * DAY_S
)
PROVED_UP: Final = msgspec.structs.replace(
    PROVED, words="proved once the gateway is back", by_s=3 * HOUR_S + 16 * MINUTE_S, not_before_s=3 * HOUR_S
)
AGAIN: Final = End(
    words="done by the second sending",
    state=State.SUCCEEDED,
    http_status=200,
    code=None,
    by_s=MINUTE_S,
    is_sent_again=True,
)
ABSENT: Final = End(
    words="failed after 96 hours",
    state=State.FAILED,
    http_status=402,
    code=Code.DECLINED,
    by_s=4 * DAY_S + HOUR_S,
    not_before_s=4 * DAY_S,
    is_absent=True,
)
NO_REFUND: Final = msgspec.structs.replace(ABSENT, http_status=409, code=Code.CONFLICT)
MANUAL: Final = End(
    words="to an operator at once",
    state=State.NEEDS_ATTENTION,
    http_status=202,
    code=Code.NEEDS_ATTENTION,
    by_s=MINUTE_S,
)
DARK: Final = msgspec.structs.replace(MANUAL, shown=MatchResult.NOTHING_TO_SEE)
SEVERAL: Final = msgspec.structs.replace(MANUAL, shown=MatchResult.SEVERAL_FIT)
LIKE_IT: Final = msgspec.structs.replace(MANUAL, shown=MatchResult.ONE_RESEMBLES)
HIDDEN: Final = msgspec.structs.replace(MANUAL, shown=MatchResult.NOTHING)
WEEK: Final = msgspec.structs.replace(
    DARK, words="to an operator after 7 days", by_s=7 * DAY_S + 2 * MINUTE_S, not_before_s=7 * DAY_S
)
BLIND: Final = msgspec.structs.replace(
    HIDDEN, words="to an operator after 96 hours", by_s=4 * DAY_S + HOUR_S, not_before_s=4 * DAY_S
)
REOPENED: Final = msgspec.structs.replace(
    MANUAL,
    words="failed after 96 hours, reopened once shown",
    by_s=11 * DAY_S + HOUR_S,
    not_before_s=10 * DAY_S,
    shown=MatchResult.ONE_FITS,
)
UNFOUND: Final = msgspec.structs.replace(
    HIDDEN, words="to an operator after 7 days", by_s=7 * DAY_S + HOUR_S, not_before_s=7 * DAY_S
)
UNREAD: Final = msgspec.structs.replace(UNFOUND, shown=MatchResult.UNSEEN)
REFUNDED: Final = msgspec.structs.replace(REOPENED, shown=MatchResult.REFUND_SHOWN)

UNSEEN: Final = Senseless(words="it is searched for in no record")
NO_MONEY: Final = Senseless(words="its reply names no amount and no order")
YES_OR_NO: Final = Senseless(words="the gateway answers it with yes or no")
ONCE: Final = Senseless(words="the gateway gives a payment back only once")

# fmt: off
TABLE: Final[dict[str, tuple[End | Senseless, ...]]] = {
    # fault                  charge     authoriz.  capture    whole ref. part ref.  void       retry      cancel
    "refuse":               (UNSENT,    UNSENT,    UNSENT,    UNSENT,    UNSENT,    UNSENT,    UNSENT,    UNSENT),
    "hang_before":          (ABSENT,    WEEK,      AGAIN,     NO_REFUND, DARK,      DARK,      ABSENT,    AGAIN),
    "hang_after":           (PROVED,    WEEK,      PROVED,    PROVED,    DARK,      DARK,      PROVED,    PROVED),
    "cut_before":           (ABSENT,    WEEK,      AGAIN,     NO_REFUND, DARK,      DARK,      ABSENT,    AGAIN),
    "cut_after":            (PROVED,    WEEK,      PROVED,    PROVED,    DARK,      DARK,      PROVED,    PROVED),
    "half_body":            (PROVED,    WEEK,      PROVED,    PROVED,    DARK,      DARK,      PROVED,    PROVED),
    "truncated_json":       (PROVED,    WEEK,      PROVED,    PROVED,    DARK,      DARK,      PROVED,    PROVED),
    "html_502_before":      (ABSENT,    WEEK,      AGAIN,     NO_REFUND, DARK,      DARK,      ABSENT,    AGAIN),
    "html_502_after":       (PROVED,    WEEK,      PROVED,    PROVED,    DARK,      DARK,      PROVED,    PROVED),
    "domain_denied":        (SHUT_OUT,  SHUT_OUT,  SHUT_OUT,  SHUT_OUT,  SHUT_OUT,  SHUT_OUT,  SHUT_OUT,  SHUT_OUT),
    "authentication_error": (SHUT_OUT,  SHUT_OUT,  SHUT_OUT,  SHUT_OUT,  SHUT_OUT,  SHUT_OUT,  SHUT_OUT,  SHUT_OUT),
    "budget_block":         (BUSY,      BUSY,      BUSY,      BUSY,      BUSY,      BUSY,      BUSY,      BUSY),
    "token_expired":        (DONE,      DONE,      DONE,      DONE,      DONE,      DONE,      DONE,      DONE),
    "late_15_minutes":      (PROVED_1H, WEEK,      HIDDEN,    PROVED_1H, DARK,      DARK,      PROVED_1H, PROVED),
    "late_72_hours":        (PROVED_4D, WEEK,      HIDDEN,    PROVED_4D, DARK,      DARK,      PROVED_4D, PROVED),
    "late_10_days":         (REOPENED,  WEEK,      HIDDEN,    REFUNDED,  DARK,      DARK,      REOPENED,  PROVED),
    "pending_done":         (PROVED_3M, WEEK,      YES_OR_NO, YES_OR_NO, YES_OR_NO, YES_OR_NO, YES_OR_NO, YES_OR_NO),
    "pending_not_done":     (ABSENT,    WEEK,      YES_OR_NO, YES_OR_NO, YES_OR_NO, YES_OR_NO, YES_OR_NO, YES_OR_NO),
    "other_amount":         (MANUAL,    MANUAL,    MANUAL,    NO_MONEY,  NO_MONEY,  NO_MONEY,  NO_MONEY,  NO_MONEY),
    "other_order":          (MANUAL,    MANUAL,    MANUAL,    NO_MONEY,  NO_MONEY,  NO_MONEY,  NO_MONEY,  NO_MONEY),
    "two_candidates":       (SEVERAL,   UNSEEN,    SEVERAL,   ONCE,      UNSEEN,    UNSEEN,    SEVERAL,   UNSEEN),
    "older_equal_done":     (PROVED,    UNSEEN,    SEVERAL,   PROVED,    UNSEEN,    UNSEEN,    PROVED,    UNSEEN),
    "older_equal_not_done": (LIKE_IT,   UNSEEN,    AGAIN,     NO_REFUND, UNSEEN,    UNSEEN,    ABSENT,    UNSEEN),
    "no_control":           (BLIND,     WEEK,      AGAIN,     NO_REFUND, DARK,      DARK,      ABSENT,    AGAIN),
    "down_3_hours":         (PROVED_UP, WEEK,      PROVED_UP, PROVED_UP, DARK,      DARK,      PROVED_UP, PROVED_UP),
    "lost_twice":           (PROVED,    WEEK,      MANUAL,    PROVED,    DARK,      DARK,      PROVED,    PROVED),
    "search_blind":         (UNFOUND,   WEEK,      AGAIN,     UNREAD,    DARK,      DARK,      UNFOUND,   AGAIN),
    "killed_before":        (ABSENT,    WEEK,      AGAIN,     NO_REFUND, DARK,      DARK,      ABSENT,    AGAIN),
    "killed_after":         (PROVED,    WEEK,      PROVED,    PROVED,    DARK,      DARK,      PROVED,    PROVED),
}
# fmt: on


LATER: Final[dict[tuple[str, str], float]] = {("cancel", "lost_twice"): 4 * MINUTE_S}
"""Entries that the program still comes to later than it must, and by when it does; the reason is that a resending
without a reply is taken for one that another process may be making. To be removed once it isn't."""


def end_of(operation: str, fault: str) -> End | Senseless:
    """Gives the end that an operation must come to under a fault."""
    return TABLE[fault][OPERATIONS.index(operation)]


def effects_of(fault: Fault, end: End) -> int:
    """Gives how often the gateway carries it out in all: never more than once."""
    return int(fault.happens or end.is_sent_again)


def sendings_of(operation: str, fault: str) -> int:
    """Gives how often it is sent in all: twice only where the gateway can't carry it out twice."""
    end = end_of(operation, fault)
    assert isinstance(end, End)
    befalls = FAULTS[fault]
    is_retried = befalls.struck == "token_expired"
    is_resent = operation in RESENT and end.by_s > 0 and not _is_shown_by_reply(befalls)
    if is_resent and operation == "cancel":
        return 1 + befalls.times
    return 2 if is_retried or is_resent else 1


def _is_shown_by_reply(befalls: Fault) -> bool:
    return befalls.struck in {"other_amount", "other_order"}


def drawn() -> str:
    """Writes the table for people, as Markdown."""
    names = [operation.replace("_", ", ") for operation in OPERATIONS]
    rows = [["fault", *names], ["---"] * (len(names) + 1)]
    for fault, ends in TABLE.items():
        entries = [
            _entry(end) + (", at present later" if (operation, fault) in LATER else "")
            for operation, end in zip(OPERATIONS, ends, strict=True)
        ]
        rows.append([FAULTS[fault].words, *entries])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _entry(end: End | Senseless) -> str:
    if isinstance(end, Senseless):
        return "-"
    return f"{end.words} ({end.http_status} `{end.code}`)" if end.code else f"{end.words} (200)"
