"""Every standing of ours beside every word of theirs, in every shape of a row, against one table of what is right.

A word that nobody knows, and a row that isn't as the header says, are never agreed on, never left out, and never taken
for another word or another row.
"""

from collections.abc import Callable
from itertools import product
from typing import Final, NamedTuple

import msgspec
import pytest
from tests.core.reconciliation.worlds import COMPLETE, NOON_MS, UNTIL_MS, ZONE, payment, refund

from payrelay.reconciliation.rules.days import Tally
from payrelay.reconciliation.rules.entries import BooksEntry, EntryStanding, LineState, Movement, Source, StatementLine
from payrelay.reconciliation.rules.files.profiles import read_profile
from payrelay.reconciliation.rules.files.statement_files import read_statement
from payrelay.reconciliation.rules.judging import judge
from payrelay.reconciliation.rules.payouts_compared import compare_payouts
from payrelay.reconciliation.rules.sides import Known
from payrelay.reconciliation.rules.verdicts import Aspect, BooksFinding, BooksVerdict, Concern

PROFILE: Final = read_profile(
    b"""
    name = "table"
    movement = "payment"
    currency = "LKR"
    columns = {date = "Date", amount = "Amount", payment_id = "No", order_id = "Order", payout_id = "Payout", \
state = "Status", movement = "Type", reference = "Ref"}
    states = {received = "taken", held = "authorized", failed = "not_taken", "refund requested" = "refund_under_way", \
refunded = "refunded", chargebacked = "charged_back"}
    movements = {payment = "payment", refund = "refund", chargeback = "chargeback", payout = "payout", bank = "bank"}
    """,
    is_toml=True,
)
HEADER: Final = "Date,Amount,No,Order,Payout,Status,Type,Ref"
AMOUNT: Final = 100_001
"""Of ``payment(1)``, in hundredths."""
FAILED, OPEN, OFFERED = EntryStanding.FAILED, EntryStanding.OPEN, EntryStanding.OFFERED
KNOWN: Final = Known(coverage=COMPLETE.coverage, zone=ZONE, approval_fees=frozenset({("LKR", AMOUNT)}))


def page(standing: EntryStanding, **members: object) -> BooksEntry:
    """Makes a page that nobody paid, as far as our books know."""
    return payment(1, id="chk_1", standing=standing, payment_id=None, is_offer=True, **members)


def approval(standing: EntryStanding) -> BooksEntry:
    """Makes an approval that charges nothing."""
    return msgspec.structs.replace(page(standing, amount_minor=None, is_approval=True), id="chk_2")


CHARGED_BACK: Final = payment(1, id="chargeback/1", movement=Movement.CHARGEBACK)
OURS: Final[dict[str, tuple[BooksEntry, ...]]] = {
    "nobody's": (),
    "charged": (payment(1),),
    "charged, refunded": (payment(1), refund("r", None, 1)),
    "charged, charged back": (payment(1), CHARGED_BACK),
    "unknown": (payment(1, standing=OPEN, payment_id=None),),
    "declined": (payment(1, standing=FAILED),),
    "declined, no number": (payment(1, standing=FAILED, payment_id=None),),
    "page open": (page(OFFERED),),
    "page ended": (page(FAILED),),
    "imported": (payment(1, id="import/1", is_imported=True, from_ms=0),),
    "approved": (approval(EntryStanding.DONE),),
    "approval open": (approval(OFFERED),),
    "approval failed": (approval(FAILED),),
}
"""Our books, by the name in the table."""

TABLE: Final = """
                      | RECEIVED | HELD | FAILED | REFUND REQUESTED | REFUNDED | CHARGEBACKED | SETTLED | (empty)
nobody's              | alarm    | -    | -      | alarm            | alarm    | alarm        | theirs? | theirs?
charged               | booked   | state| state  | state            | state    | state        | state?  | state?
charged, refunded     | booked   | state| state  | booked           | booked   | state        | state?  | state?
charged, charged back | booked   | state| state  | state            | state    | booked       | state?  | state?
unknown               | state    | -    | -      | state            | state    | state        | state?  | state?
declined              | failed   | state| nothing| failed           | failed   | failed       | state?  | state?
declined, no number   | failed   | -    | -      | failed           | failed   | failed       | state?  | state?
page open             | state    | -    | -      | state            | state    | state        | state?  | state?
page ended            | failed   | -    | -      | failed           | failed   | failed       | state?  | state?
imported              | booked   | state| state  | booked           | booked   | booked       | state?  | state?
approved              | booked   | -    | -      | nothing          | nothing  | state        | state?  | state?
approval open         | state    | -    | -      | state            | state    | state        | state?  | state?
approval failed       | failed   | -    | -      | failed           | failed   | failed       | state?  | state?
"""
"""What is right of a payment, by our standing and the statement's word. The question mark: the word has to be named.

alarm: only theirs, and somebody must hear of it. theirs: only theirs. state: different in its state. failed: that too,
and somebody must hear that money was taken for what failed. booked: agreed, with its amount. nothing: agreed, and no
money. -: the line is told by nobody, as no money was taken, and our books have nothing for it.
"""


class Right(NamedTuple):
    """What is right: the verdict, whether the state differs, the concern, and whether the amount is booked."""

    verdict: BooksVerdict
    is_other_state: bool = False
    concern: Concern | None = None
    is_booked: bool = False


RIGHT: Final = {
    "alarm": Right(BooksVerdict.ONLY_THEIRS, concern=Concern.NOT_MADE_HERE),
    "theirs": Right(BooksVerdict.ONLY_THEIRS),
    "state": Right(BooksVerdict.DIFFERENT, is_other_state=True),
    "failed": Right(BooksVerdict.DIFFERENT, is_other_state=True, concern=Concern.TAKEN_THOUGH_FAILED),
    "booked": Right(BooksVerdict.AGREED, is_booked=True),
    "nothing": Right(BooksVerdict.AGREED),
}


def cells(table: str) -> list[tuple[str, str, str]]:
    """Gives our standing, the word and what is right for each cell of a table."""
    head, *rows = (
        [field.strip() for field in row.split("|")] for row in table.strip("\n").splitlines() if not row.isspace()
    )
    return [(name, word, right) for name, *told in rows for word, right in zip(head[1:], told, strict=True)]


def read(*rows: str) -> list[StatementLine | str]:
    """Reads a file: its lines, and why others were refused."""
    text = [f"{each}\n" for each in (HEADER, *rows)]
    found = read_statement(iter(text), PROFILE, zone=ZONE, gateway_zone="Asia/Colombo", until_ms=UNTIL_MS)
    return [each if isinstance(each, StatementLine) else getattr(each, "reason", "") for each in found]


def row_of(word: str, kind: str = "Payment", amount: str = "1000.01", ref: str = "") -> str:
    """Writes a row with a word for the state and one for the kind of line."""
    said = "" if word == "(empty)" else word
    return f"2026-11-22,{amount},1,A-1,,{said},{kind},{ref}"


def lines_of(*rows: str) -> list[StatementLine]:
    """Reads a file, all of whose rows must be right."""
    found = [each for each in read(*rows) if isinstance(each, StatementLine)]
    assert len(found) == len(rows)
    return found


def booked_minor(found: list[BooksFinding], movement: Movement = Movement.PAYMENT) -> int:
    """Gives the money of a movement that both sides agree on, as a journal books it."""
    tally = Tally()
    for each in found:
        tally.add(each)
    return sum(each.booked_minor for each in tally.sums() if each.movement is movement)


@pytest.mark.parametrize(("name", "word", "wanted"), cells(TABLE))
@pytest.mark.parametrize("written", [str.upper, str.lower, str.title])
def test_what_each_word_says_of_each_payment(name: str, word: str, wanted: str, written: Callable[[str], str]) -> None:
    """An accountant closes a month on these verdicts; the case of a word says nothing."""
    said = word if word == "(empty)" else written(word)
    found = judge(OURS[name], lines_of(row_of(said)), KNOWN)
    told = [each for each in found if each.movement is Movement.PAYMENT and each.theirs is not None]
    if wanted == "-":
        assert told == []
        assert booked_minor(found) == 0
        return
    [one] = told
    right = RIGHT[wanted.rstrip("?")]
    assert (one.verdict, one.concern) == (right.verdict, right.concern)
    assert one.aspects == ((Aspect.STATE,) if right.is_other_state else ())
    assert booked_minor(found) == (AMOUNT if right.is_booked else 0)
    if wanted.endswith("?"):
        assert (f'"{said}"' if word != "(empty)" else "says no state") in one.why


@pytest.mark.parametrize(("name", "word", "wanted"), cells(TABLE))
def test_another_amount_is_never_agreed_on(name: str, word: str, wanted: str) -> None:
    """Whatever the word: two sides that name different amounts say different things."""
    found = judge(OURS[name], lines_of(row_of(word, amount="999.00")), KNOWN)
    told = [each for each in found if each.movement is Movement.PAYMENT and each.theirs is not None]
    assert bool(told) is (wanted != "-")
    for each in told:
        is_alone = wanted.rstrip("?") in {"alarm", "theirs"}
        assert each.verdict is (BooksVerdict.ONLY_THEIRS if is_alone else BooksVerdict.DIFFERENT)
        assert is_alone or Aspect.AMOUNT in each.aspects
    assert booked_minor(found) == 0


@pytest.mark.parametrize("name", OURS)
def test_a_state_of_the_gateways_record_that_isnt_known_is_a_difference(name: str) -> None:
    """The record of a payment may get a state that the gateway doesn't document."""
    [shown] = lines_of(row_of("SETTLED"))
    record = msgspec.structs.replace(shown, source=Source.SEARCH, word=None)
    found = judge(OURS[name], [record], KNOWN)
    [told] = [each for each in found if each.movement is Movement.PAYMENT]
    assert told.is_difference
    assert told.why.endswith("the gateway's record has it in a state that isn't known here")
    assert booked_minor(found) == 0


SHAPES: Final = {
    "a mark of thousands without quotes": row_of("{}", amount="1,000.01"),
    "a field more": f"{row_of('{}')},",
    "a field less": row_of("{}").rpartition(",")[0],
    "fields of nothing": row_of("{}").replace(",Payment,", ",Payment,,,,"),
    "a kind of line that nobody knows": row_of("{}", kind="Refund reversal"),
    "a kind of line that isn't named": row_of("{}", kind=""),
}


@pytest.mark.parametrize(("name", "shape", "word"), list(product(OURS, SHAPES, ["RECEIVED", "FAILED", "SETTLED"])))
def test_a_row_of_another_shape_is_refused_and_says_nothing(name: str, shape: str, word: str) -> None:
    """Cut apart at its mark of thousands, 1,250.00 is 1.00 of another column."""
    [reason] = read(SHAPES[shape].format(word))
    assert isinstance(reason, str)
    assert reason
    assert booked_minor(judge(OURS[name], [], KNOWN)) == 0


RETURNED: Final[dict[str, tuple[BooksEntry, ...]]] = {
    "nobody's": (),
    "done": (refund("r", AMOUNT, 1),),
    "open": (refund("r", AMOUNT, 1, standing=OPEN),),
    "failed": (refund("r", AMOUNT, 1, standing=FAILED),),
}
RETURNS: Final = """
         | RECEIVED | REFUNDED | REFUND REQUESTED | FAILED  | HELD    | CHARGEBACKED | SETTLED | (empty)
nobody's | theirs   | theirs   | theirs           | -       | -       | theirs       | theirs? | theirs?
done     | booked   | booked   | booked           | state   | state   | state        | state?  | state?
open     | state    | state    | state            | state   | state   | state        | state?  | state?
failed   | state    | state    | state            | nothing | state   | state        | state?  | state?
"""
"""What is right of a refund, by our standing and the word of its own line."""
BACK: Final = """
         | RECEIVED | REFUNDED | REFUND REQUESTED | FAILED  | HELD    | CHARGEBACKED | SETTLED | (empty)
nobody's | theirs   | theirs   | theirs           | -       | -       | theirs       | theirs? | theirs?
done     | booked   | state    | state            | state   | state   | booked       | state?  | state?
"""
"""What is right of a chargeback."""


@pytest.mark.parametrize(
    ("movement", "cell"),
    [*product([Movement.REFUND], cells(RETURNS)), *product([Movement.CHARGEBACK], cells(BACK))],
)
def test_what_each_word_says_of_what_goes_back(movement: Movement, cell: tuple[str, str, str]) -> None:
    """A refund that the bank sent back is in the list of refunds too, and gave nothing back."""
    name, word, wanted = cell
    ours = OURS["charged"] + (RETURNED[name] if movement is Movement.REFUND or name == "nobody's" else (CHARGED_BACK,))
    found = judge(ours, lines_of(row_of("RECEIVED"), row_of(word, kind=movement.title(), ref="x1")), KNOWN)
    told = [each for each in found if each.movement is movement]
    if wanted == "-":
        assert told == []
        return
    [one] = told
    right = RIGHT[wanted.rstrip("?")]
    assert (one.verdict, Aspect.STATE in one.aspects) == (right.verdict, right.is_other_state)
    assert booked_minor(found, movement) == (AMOUNT if right.is_booked else 0)
    if wanted.endswith("?"):
        assert (f'"{word}"' if word != "(empty)" else "says no state") in one.why


def test_a_refund_that_failed_first_is_joined_with_the_one_that_was_done() -> None:
    """The first try came back, the second one was paid out: our one refund is that one."""
    rows = (row_of(word, kind="Refund", ref=ref) for word, ref in (("FAILED", "x1"), ("REFUNDED", "x2")))
    found = judge((payment(1), refund("r", AMOUNT, 1)), lines_of(row_of("RECEIVED"), *rows), KNOWN)
    [returned] = [each for each in found if each.movement is Movement.REFUND]
    assert (returned.verdict, returned.theirs and returned.theirs.identity) == (BooksVerdict.AGREED, "x2")


def test_a_refund_that_failed_explains_no_state_of_its_payment() -> None:
    """The payment is called refunded, and the only refund that anybody has was not paid out."""
    rows = (row_of("REFUNDED"), row_of("FAILED", kind="Refund", ref="x1"))
    [paid] = judge((payment(1),), lines_of(*rows), KNOWN)
    assert (paid.verdict, paid.aspects) == (BooksVerdict.DIFFERENT, (Aspect.STATE,))


def test_the_fee_of_an_approval_comes_and_goes() -> None:
    """The gateway takes it and gives it back by itself: two lines that our books explain, and that come to nothing."""
    rows = (row_of("RECEIVED"), row_of("REFUNDED", kind="Refund", ref="x1"))
    for ours, wanted in (
        ((approval(EntryStanding.DONE),), {BooksVerdict.AGREED}),
        ((), {BooksVerdict.ONLY_THEIRS}),
    ):
        found = judge(ours, lines_of(*rows), KNOWN)
        assert {each.verdict for each in found} == wanted
        assert booked_minor(found) == booked_minor(found, Movement.REFUND)
    [alone] = judge((approval(EntryStanding.DONE),), lines_of(row_of("REFUNDED")), KNOWN)
    assert alone.why == "it is the fee of an approval, which the gateway gave back"
    whole = judge((approval(EntryStanding.DONE),), lines_of(row_of("REFUNDED"), rows[1]), KNOWN)
    assert booked_minor(whole) == booked_minor(whole, Movement.REFUND) == AMOUNT


def test_a_fee_is_given_back_once() -> None:
    """A second refund of it, and a refund of a charge of the same order and amount, nobody here asked for."""
    twice = [row_of("REFUNDED", kind="Refund", ref=ref) for ref in ("x1", "x2")]
    found = judge((approval(EntryStanding.DONE),), lines_of(row_of("RECEIVED"), *twice), KNOWN)
    assert sorted(each.verdict for each in found if each.movement is Movement.REFUND) == [
        BooksVerdict.AGREED,
        BooksVerdict.ONLY_THEIRS,
    ]
    both = judge((approval(EntryStanding.DONE), payment(1)), lines_of(row_of("RECEIVED"), twice[0]), KNOWN)
    assert [each.verdict for each in both] == [BooksVerdict.AGREED, BooksVerdict.ONLY_THEIRS]


def test_no_statement_lacks_the_fee_of_an_approval() -> None:
    """Whether the gateway takes one, and shows it, is its own business."""
    assert judge((approval(EntryStanding.DONE),), (), KNOWN) == []


def test_an_approval_explains_no_other_amount_of_its_order() -> None:
    """A payment of thousands on the order of an approval is one that nobody here made for it."""
    [found] = judge((approval(EntryStanding.DONE),), lines_of(row_of("RECEIVED", amount="5000.00")), KNOWN)
    assert (found.verdict, found.aspects) == (BooksVerdict.DIFFERENT, (Aspect.AMOUNT,))
    assert found.why.endswith("an approval that charges nothing, and this is no fee of one")


def test_a_page_is_paid_before_an_approval_of_its_order_is() -> None:
    """One order may have both; the payment is what the page asked for."""
    paid = page(OFFERED)
    [found] = judge((approval(EntryStanding.DONE), paid), lines_of(row_of("RECEIVED")), KNOWN)
    assert found.ours == paid


def test_a_payment_that_is_known_to_be_taken_is_joined_before_one_that_isnt_known() -> None:
    """The open charge was paid by the one; the other is told by itself."""
    rows = (row_of("SETTLED"), row_of("RECEIVED").replace(",1,A-1", ",2,A-1"))
    found = {each.identity: each for each in judge(OURS["unknown"], lines_of(*rows), KNOWN)}
    assert found["2"].ours is not None
    assert found["1"].verdict is BooksVerdict.ONLY_THEIRS


def test_a_word_is_known_once_a_better_profile_has_read_it() -> None:
    """The file is read again, and its first lines are stored for good: they must not stay a difference."""
    [unknown] = lines_of(row_of("Settled"))
    known = msgspec.structs.replace(unknown, state=LineState.TAKEN, word="SETTLED", known_at_ms=NOON_MS)
    [agreed] = judge((payment(1),), [unknown, known], KNOWN)
    assert agreed.verdict is BooksVerdict.AGREED
    [paid] = lines_of(row_of("RECEIVED"))
    for lines in ([unknown, paid], [paid, unknown]):
        [other] = judge((payment(1),), lines, KNOWN)
        assert (other.verdict, other.aspects) == (BooksVerdict.DIFFERENT, (Aspect.STATE,))
        assert '"Settled"' in other.why


def test_a_difference_with_another_word_is_another_difference() -> None:
    """Somebody who has closed SETTLED has not seen DISPUTED."""
    [settled], [disputed] = (judge((payment(1),), lines_of(row_of(word)), KNOWN) for word in ("SETTLED", "DISPUTED"))
    assert settled.id == disputed.id
    assert settled.content != disputed.content


@pytest.mark.parametrize(
    ("fee_minor", "net_minor", "is_odd"),
    [(None, None, False), (0, 0, False), (0, AMOUNT, False), (500, None, True), (None, 7, True)],
)
def test_what_failed_costs_nothing(fee_minor: int | None, net_minor: int | None, *, is_odd: bool) -> None:
    """A fee for a payment that took no money is for the accountant to ask about."""
    [failed] = lines_of(row_of("FAILED"))
    told = msgspec.structs.replace(failed, fee_minor=fee_minor, net_minor=net_minor)
    [found] = judge(OURS["declined"], [told], KNOWN)
    assert found.aspects == ((Aspect.FEE,) if is_odd else ())
    assert not is_odd or found.why.endswith("a fee, or a net, of what took no money")


PAYOUTS: Final = """
           | RECEIVED | FAILED | HELD  | REFUNDED | SETTLED | (empty)
nothing    | ours     | -      | -     | state    | state?  | state?
by amount  | booked   | theirs | theirs| state    | state?  | state?
by name    | booked   | state  | state | state    | state?  | state?
"""
"""What is right of a payout, by the line of the bank's that it has, and by its word."""
CREDITS: Final = """
           | RECEIVED | FAILED | HELD  | REFUNDED | SETTLED | (empty)
nothing    | theirs   | -      | -     | theirs   | theirs? | theirs?
by amount  | booked   | ours   | ours  | state    | state?  | state?
by name    | booked   | ours   | ours  | state    | state?  | state?
"""
"""What is right of a line of the bank's, by the payout that explains it, and by its word."""
RIGHT_OF_PAYOUTS: Final = RIGHT | {"ours": Right(BooksVerdict.ONLY_OURS)}


@pytest.mark.parametrize(
    ("word_is_of", "cell"), [*product(["payout"], cells(PAYOUTS)), *product(["bank"], cells(CREDITS))]
)
def test_what_each_word_says_of_each_payout(word_is_of: str, cell: tuple[str, str, str]) -> None:
    """A transfer that the bank refused is in the list of payouts, and is no money on the account."""
    join, word, wanted = cell
    words = {"payout": "RECEIVED", "bank": "RECEIVED", word_is_of: "" if word == "(empty)" else word}
    payout = f"2026-11-22,1000.01,,,P1,{words['payout']},Payout,"
    credit = f"2026-11-22,1000.01,,,{'P1' if join == 'by name' else ''},{words['bank']},Bank,B1"
    rows = (payout, credit) if join != "nothing" else (payout if word_is_of == "payout" else credit,)
    found = compare_payouts(lines_of(*rows), {}, COMPLETE)
    if wanted == "-":
        assert found == []
        return
    [one] = found
    right = RIGHT_OF_PAYOUTS[wanted.rstrip("?")]
    assert (one.verdict, Aspect.STATE in one.aspects) == (right.verdict, right.is_other_state)
    assert booked_minor(found, Movement.PAYOUT) == (AMOUNT if right.is_booked else 0)
    if wanted.endswith("?"):
        assert (f'"{word}"' if word != "(empty)" else "says no state") in one.why
