"""Files of statements: what is read, what is refused with its line, and what a profile must say."""

from collections.abc import Iterator
from datetime import date
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.reconciliation.worlds import COMPLETE, DAY, UNTIL_MS, ZONE, payment
from tests.draws import examples

from payrelay.core.money import AMOUNT_MINOR_MAX, AmountError, decimal_text
from payrelay.core.text.table_text import ROW_LINES_MAX
from payrelay.reconciliation.rules.entries import LineState, Movement, StatementLine
from payrelay.reconciliation.rules.files.amounts import AmountReader
from payrelay.reconciliation.rules.files.profiles import BUILT_IN, Profile, ProfileError, read_profile
from payrelay.reconciliation.rules.files.statement_files import (
    HEADER_WITHIN,
    StatementUnreadableError,
    read_statement,
)
from payrelay.reconciliation.rules.files.summary import REFUSED_MAX, FileSummary, PassedOver, Read, RefusedLine
from payrelay.reconciliation.rules.judging import judge

PAYMENTS = BUILT_IN["payments"]
BANK = BUILT_IN["bank"]
HEADER = "payment_id,order_id,amount,currency,status,date"
ROW = "320025000001,A-1,2510.00,LKR,RECEIVED,2026-11-22 15:11:00"


def read(*rows: str, profile: Profile = PAYMENTS) -> list[Read]:
    """Reads a file of these rows."""
    text = (f"{row}\n" for row in rows)
    return list(read_statement(text, profile, zone=ZONE, gateway_zone="Asia/Colombo", until_ms=UNTIL_MS))


def lines(*rows: str, profile: Profile = PAYMENTS) -> list[StatementLine]:
    """Reads a file, all of whose rows must be right."""
    found = read(*rows, profile=profile)
    assert all(isinstance(each, StatementLine) for each in found), found
    return [each for each in found if isinstance(each, StatementLine)]


def summary(*rows: str, profile: Profile = PAYMENTS) -> FileSummary:
    """Sums a file up."""
    made = FileSummary()
    for each in read(*rows, profile=profile):
        made.add(each)
    return made


@pytest.mark.parametrize(
    ("date", "is_read"),
    [
        ("2026-12-31 23:59:59", True),
        ("2026-12-31T23:59:59+05:30", True),
        ("2027-01-01 00:00:00", False),
        ("2027-01-01", False),
        ("2026-12-31T23:59:59+05:00", False),
        ("2099-05-05 10:00:00", False),
        ("9999-12-31T23:59:59-12:00", False),
    ],
)
def test_a_line_of_a_day_to_come_is_refused(date: str, *, is_read: bool) -> None:
    """A year with a wrong digit would be booked where nobody looks for it."""
    [found] = read(HEADER, ROW.replace("2026-11-22 15:11:00", date))
    why = f"date: {date} is later than tomorrow"
    assert isinstance(found, StatementLine) if is_read else found == RefusedLine(2, why)


def test_a_line_says_what_stands_in_it() -> None:
    """The amount to the hundredth, the day in the zone of the books."""
    [found] = lines(HEADER, ROW)
    assert (found.identity, found.order_id, found.amount_minor, found.currency) == (
        "320025000001",
        "A-1",
        251_000,
        "LKR",
    )
    assert (found.day, found.state, found.place) == (date(2026, 11, 22), LineState.TAKEN, "line 2")


@given(st.integers(1, AMOUNT_MINOR_MAX))
def test_no_amount_loses_a_hundredth(amount_minor: int) -> None:
    """A sum over a month shows each hundredth that a float would lose."""
    text = decimal_text(amount_minor)
    units, _, rest = text.partition(".")
    for written in (text, f'"{int(units):,}.{rest}"'):
        [found] = lines(HEADER, f"1,A-1,{written},LKR,RECEIVED,2026-11-22")
        assert found.amount_minor == amount_minor


def test_the_day_of_a_time_is_that_of_the_books() -> None:
    """A payment of 20:00 UTC is of the next day in Colombo."""
    [found] = lines(HEADER, "1,A-1,5,LKR,RECEIVED,2026-11-22T20:00:00Z")
    assert found.day == date(2026, 11, 23)
    [found] = lines(HEADER, "1,A-1,5,LKR,RECEIVED,2026-11-22")
    assert (found.day, found.at_ms) == (date(2026, 11, 22), None)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (",A-1,5,LKR,RECEIVED,2026-11-22", "payment_id: is missing"),
        ("x,A-1,5,LKR,RECEIVED,2026-11-22", "payment_id: must have 1 to 19 digits"),
        ("1,A-1,5.001,LKR,RECEIVED,2026-11-22", "amount: must have at most 2 decimals"),
        ("1,A-1,-5,LKR,RECEIVED,2026-11-22", "amount: is negative, and no payment is"),
        ("1,A-1,(5),LKR,RECEIVED,2026-11-22", "amount: is negative"),
        ("1,A-1,5e3,LKR,RECEIVED,2026-11-22", "amount: must be a number"),
        ("1,A-1,0,LKR,RECEIVED,2026-11-22", "amount: must be greater than 0"),
        ("1,A-1,5,Rs,RECEIVED,2026-11-22", "currency: must be three capital letters"),
        ("1,A-1,5,LKR,RECEIVED,22/11/2026", "date: must be in ISO 8601"),
        ("1,A-1,5,LKR,RECEIVED", "has 5 fields, and the header has 6"),
        ("1,A-1,1,250.00,LKR,RECEIVED,2026-11-22", "has 7 fields, and the header has 6: is an amount with a mark"),
        ("1,A-1,5,LKR,RECEIVED,2026-11-22,", "has 7 fields, and the header has 6"),
        ("1,A-1,(5,LKR,RECEIVED,2026-11-22", "amount: must be a number"),
        ("1,A-1,5),LKR,RECEIVED,2026-11-22", "amount: must be a number"),
        ("1,A-1,+-5,LKR,RECEIVED,2026-11-22", "amount: must be a number"),
        (f"1,A-1,5,LKR,{'R' * 251},2026-11-22", "state: must be printable, with at most 250"),
        (f"1,{'A' * 251},5,LKR,RECEIVED,2026-11-22", "order_id: must be printable, with at most 250"),
    ],
)
def test_a_wrong_line_is_refused_by_its_number(row: str, reason: str) -> None:
    """Whoever mends the file must find the line; the others are read."""
    first, refused, last = read(HEADER, ROW, row, ROW.replace("0001,", "0002,"))
    assert isinstance(refused, RefusedLine)
    assert refused.number == 3
    assert reason in refused.reason
    assert isinstance(first, StatementLine)
    assert isinstance(last, StatementLine)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ((), "the file is empty"),
        (("payment_id,amount", "1,5"), "line 1: the header lacks date"),
        ((f"{HEADER},date", ROW), "line 1: the header has date twice"),
        ((HEADER, '1,"A'), "^line 2: is not CSV"),
        ((HEADER, ROW, '1,"A', ROW, ROW), "^the row of the lines 3 to 5: is not CSV: .*; is a quote not closed"),
        ((HEADER, ROW, '1,"A', ROW, '1,"A",5'), "^the row of the lines 3 to 5: is not CSV: .*; is a quote not closed"),
    ],
)
def test_what_is_no_such_file_is_refused_as_a_whole(rows: tuple[str, ...], reason: str) -> None:
    """The wrong profile on a file must not give a hundred wrong lines."""
    with pytest.raises(StatementUnreadableError, match=reason):
        read(*rows)


@pytest.mark.parametrize("amount", ["1234,50", "12,34", "1,2345", "1,,234", ",234", "1,234,5", "0,99"])
def test_a_decimal_comma_is_no_mark_of_thousands(amount: str) -> None:
    """Somebody's spreadsheet writes 1234,50: read as 123450 it would be a hundred times the money."""
    [refused] = read(HEADER, f'1,A-1,"{amount}",LKR,RECEIVED,2026-11-22')
    assert refused == RefusedLine(2, "amount: must be a number, such as 2510.00")


@pytest.mark.parametrize(
    ("thousands", "decimal", "amount"),
    [
        (",", ".", "1,234,567.80"),
        (",", ".", "12,34,567.80"),
        (".", ",", "1.234.567,80"),
        (" \u00a0\u202f", ",", "1\u202f234\u00a0567,80"),
        ("'", ".", "1'234'567.80"),
        ("", ".", "1234567.80"),
    ],
)
def test_amounts_are_read_as_they_are_written_anywhere(thousands: str, decimal: str, amount: str) -> None:
    """Portals and banks of several countries write one amount in many ways; the profile says which."""
    profile = msgspec.structs.replace(PAYMENTS, thousands=thousands, decimal=decimal)
    [found] = lines(HEADER, f'1,A-1,"{amount}",LKR,RECEIVED,2026-11-22', profile=profile)
    assert found.amount_minor == 123_456_780


_NO_NUMBER, _TOO_LONG = "must be a number", "must have at most 2 decimals"


@pytest.mark.parametrize(
    ("thousands", "decimal", "amount", "reason"),
    [
        *(
            (thousands, ",", amount, "must be a number, such as 2510,00")
            for thousands in ("", " ", "'")
            for amount in ("1.250", "1.25", "1.250,00", "12.5", "1.250.000", ".5", "1.")
        ),
        (".", ",", "1.25", _NO_NUMBER),
        (".", ",", "1.250.5", _NO_NUMBER),
        (".", ",", "1,250", _TOO_LONG),
        *((thousands, ".", "1.250", _TOO_LONG) for thousands in ("", " ", "'", ",")),
        (",", ".", "2510.000", _TOO_LONG),
        (",", ".", "1,250.0000", _TOO_LONG),
        (",", ".", "0.000", _TOO_LONG),
        (",", ".", "1.250,00", _NO_NUMBER),
        (",", ".", "1.250.000", _NO_NUMBER),
        (",", ".", "1.2 5", _NO_NUMBER),
        (",", ".", "5.", _NO_NUMBER),
        (",", ".", ".5", _NO_NUMBER),
        (",", ".", "1.\u0662\u0665", _NO_NUMBER),
        ("'", ".", "1,250.00", _NO_NUMBER),
        ("", "-", "1.250", _NO_NUMBER),
    ],
)
@pytest.mark.parametrize("sign", ["", "-", "()"])
def test_only_the_profiles_own_marks_stand_between_digits(
    sign: str, thousands: str, decimal: str, amount: str, reason: str
) -> None:
    """Half of the world writes 1.250 for a thousand: as 1.25 the line would be agreed at a thousandth of its money."""
    profile = msgspec.structs.replace(BANK, thousands=thousands, decimal=decimal, movement=Movement.BANK)
    signed = f"({amount})" if sign == "()" else f"{sign}{amount}"
    [refused] = read("date,amount,currency,reference,text,payout_id", f'2026-11-22,"{signed}",LKR,r,,', profile=profile)
    assert isinstance(refused, RefusedLine)
    assert refused.number == 2
    assert refused.reason.startswith(f"amount: {reason}")


@given(st.sampled_from(",.'- \u00a0"), st.sampled_from(",."), st.text("0123456789,.' -()+\u00a0", max_size=12))
def test_an_amount_that_is_read_is_what_its_digits_say(thousands: str, decimal: str, text: str) -> None:
    """Written again with the profile's decimal mark alone, it has the same digits: none was dropped or moved."""
    reader = AmountReader("" if thousands == decimal else thousands, decimal)
    try:
        amount_minor = reader.minor(text, may_be_0=True)
    except AmountError:
        return
    whole, _, rest = text.strip("()+- ").partition(decimal)
    digits = "".join(filter(str.isdigit, whole)) + rest.strip().ljust(2, "0")
    assert amount_minor == int(digits)


def test_what_a_bank_writes_around_its_table_is_passed_over() -> None:
    """The account and the period stand above the header, and a line of thanks below."""
    profile = msgspec.structs.replace(BANK, skipped=("end of statement",))
    header, row = "date,amount,currency,reference,text,payout_id", "2026-11-22,5,LKR,r1,PayHere,"
    above = ("Account;1000 2000", "", "Period,2026-11-01,2026-11-30")
    kept, passed = read(*above, header, row, "End of statement", profile=profile)
    assert isinstance(kept, StatementLine)
    assert kept.place == "line 5"
    assert passed == PassedOver(6)


def test_a_file_with_another_delimiter_is_told_so() -> None:
    """A spreadsheet in a country with a decimal comma writes semicolons, and the error must help."""
    rows = ["Report of November", *(each.replace(",", ";") for each in (HEADER, ROW))]
    with pytest.raises(StatementUnreadableError, match=r"line 2: the header lacks .*; is its delimiter ';'\?"):
        read(*rows)
    profile = msgspec.structs.replace(PAYMENTS, delimiter=";")
    assert [each.amount_minor for each in lines(*rows, profile=profile)] == [251_000]


def test_a_file_without_a_header_is_not_searched_to_its_end() -> None:
    """Its first lines are all that is kept of it."""
    with pytest.raises(StatementUnreadableError, match=r"^line 1: the header lacks"):
        read(*[ROW] * (HEADER_WITHIN + 10))


def test_a_row_of_many_lines_is_refused() -> None:
    """A quote that isn't closed, or a file of nothing else, must not fill the memory."""
    assert len(read(HEADER, '"a\nb",' * 400, ROW)) == 2
    with pytest.raises(StatementUnreadableError, match=r"^line 2: a row has more than 1000 lines"):
        read(HEADER, '"', *['","'] * ROW_LINES_MAX)


@pytest.mark.parametrize("word", ["Erhalten", "SETTLED", ""])
def test_an_unknown_state_is_a_difference_and_no_guess(word: str) -> None:
    """A word that nobody mapped says neither that money was taken nor that it wasn't. It is kept, to be named."""
    [found] = lines(HEADER, ROW.replace("RECEIVED", word))
    assert (found.state, found.word) == (LineState.OTHER, word)


@pytest.mark.parametrize("word", ["RECEIVED", "received", "Received", "  rEcEiVeD ", "\uff32\uff45ceived"])
@pytest.mark.parametrize("own", ["RECEIVED", "received"])
def test_words_are_compared_without_regard_to_case(own: str, word: str) -> None:
    """Whoever writes a profile copies the word from the file, and the file writes it in capitals."""
    profile = msgspec.structs.replace(PAYMENTS, states={own: LineState.TAKEN})
    [found] = lines(HEADER, ROW.replace("RECEIVED", word), profile=profile)
    assert found.state is LineState.TAKEN


TYPED = msgspec.structs.replace(
    PAYMENTS,
    columns=msgspec.structs.replace(PAYMENTS.columns, movement="type"),
    movements={"Sale": Movement.PAYMENT, "Refund": Movement.REFUND},
    skipped=("Monthly  Fee",),
)


@pytest.mark.parametrize("word", ["Chargeback", "Payout", "Refund reversal", "Refunds", "payment", "adjustment", ""])
def test_a_kind_of_line_that_the_profile_lacks_is_refused(word: str) -> None:
    """Read as payments, a chargeback and a payout would both be money that came in."""
    [refused] = read(f"{HEADER},type", f"{ROW},{word}", profile=TYPED)
    assert isinstance(refused, RefusedLine)
    told = f'movement: "{word}" is no word' if word else "movement: is empty, which is no word"
    assert (refused.number, refused.reason.partition(" that")[0]) == (2, told)


@pytest.mark.parametrize("word", ["SALE", "sale ", "\uff33ale", "REFUND", "monthly fee", "MONTHLY FEE"])
def test_a_kind_of_line_is_known_without_regard_to_case(word: str) -> None:
    """A portal changes its capitals without notice."""
    [found] = read(f"{HEADER},TYPE", f"{ROW},{word}", profile=TYPED)
    assert isinstance(found, PassedOver) is word.casefold().startswith("monthly")
    assert not isinstance(found, RefusedLine)


def test_equal_lines_of_one_file_are_two_and_stay_two() -> None:
    """Two equal credits of a day are two; the file that is fed again has the same two."""
    header, row = "date,amount,currency,reference,text,payout_id", "2026-11-22,500.00,LKR,,PAYHERE,"
    first = [each.identity for each in lines(header, row, row, profile=BANK)]
    assert len(set(first)) == 2
    assert [each.identity for each in lines(header, row, row, profile=BANK)] == first


def test_lines_of_something_else_are_passed_over() -> None:
    """A bank's statement has the rent as well."""
    profile = msgspec.structs.replace(BANK, only="payhere")
    header = "date,amount,currency,reference,text,payout_id"
    rows = (header, "2026-11-22,5,LKR,r1,PayHere payout,", "2026-11-22,-9,LKR,r2,Rent,")
    kept, passed = read(*rows, profile=profile)
    assert isinstance(kept, StatementLine)
    assert isinstance(passed, PassedOver)
    assert summary(*rows, profile=profile).passed_over == 1


def test_refunds_stand_among_payments_where_a_column_says_so() -> None:
    """Many statements have one list of everything, refunds with a minus."""
    columns = msgspec.structs.replace(PAYMENTS.columns, movement="type", fee="fee", net="net")
    movements = {"sale": Movement.PAYMENT, "refund": Movement.REFUND, "chargeback": Movement.CHARGEBACK}
    profile = msgspec.structs.replace(PAYMENTS, columns=columns, movements=movements, skipped=("fee",))
    header = f"{HEADER},type,fee,net"
    paid, refunded, _, back = read(
        header,
        f"{ROW},sale,10.00,2500.00",
        f"{ROW.replace('2510', '-10')},refund,0,-10",
        f"{ROW},fee,,",
        f"{ROW.replace('2510', '-2510')},chargeback,,",
        profile=profile,
    )
    assert isinstance(paid, StatementLine)
    assert (paid.movement, paid.fee_minor, paid.net_minor) == (Movement.PAYMENT, 1_000, 250_000)
    assert isinstance(refunded, StatementLine)
    assert (refunded.movement, refunded.amount_minor) == (Movement.REFUND, 1_000)
    assert isinstance(back, StatementLine)
    assert back.identity == back.payment_id


def problem(of: FileSummary, said_minor: int | None = None, said_count: int | None = None) -> str | None:
    """Gives what doesn't fit."""
    return of.fitting(said_minor, said_count).problem


def test_the_files_own_sum_is_compared() -> None:
    """A file that was cut has lost its sum, or doesn't come to it."""
    profile = msgspec.structs.replace(PAYMENTS, total="Total")
    assert problem(summary(HEADER, ROW, "Total,,2510.00,,,", profile=profile)) is None
    assert problem(summary(HEADER, ROW, ",TOTAL,2510.00", profile=profile)) is None
    told = problem(summary(HEADER, ROW, "Total,,2511.00,,,", profile=profile))
    assert told == "the lines come to 2510.00, and 2511.00 was said"
    twice = summary(HEADER, ROW, *["Total,,2510.00,,,"] * 2, "Total,,2511.00,,,", profile=profile)
    assert problem(twice) == "the file says several sums: 2510.00, 2511.00"
    assert problem(twice, 251_000) is None


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("Total,,x,,,", "the sum: amount: must be a number"),
        ("Total", "the sum: amount: is missing"),
        ("Total,,,,,", "the sum: amount: is missing"),
        ("Total,,2,510.00,,,", "the sum: has 7 fields"),
    ],
)
def test_a_sum_that_cant_be_read_is_no_sum_of_nothing(row: str, reason: str) -> None:
    """A file whose sum is lost was compared with 0.00, and one whose sum was cut apart with 2.00."""
    profile = msgspec.structs.replace(PAYMENTS, total="Total")
    [refused] = summary(HEADER, ROW, row, profile=profile).refused
    assert refused.reason.startswith(reason)


def test_a_persons_sum_and_number_are_compared() -> None:
    """Whoever has the statement on paper reads the sum and the number from there."""
    two = summary(HEADER, ROW, ROW.replace("0001,", "0002,"))
    assert two.fitting(502_000, 2).checked == ("2 lines, as the statement says", "the sum 5020.00 agrees, of all lines")
    assert two.fitting().checked == ("2 lines", "no sum was compared")
    assert problem(two, None, 3) == "2 lines were read, and 3 were said"
    mixed = summary(HEADER, ROW, ROW.replace("LKR", "USD"))
    assert "which have no sum together" in str(problem(mixed, 1))


def test_a_sum_says_of_which_lines_it_is() -> None:
    """Some portals add up all lines at the foot, and others those that took money. Neither is taken for the other."""
    held, failed, odd = (ROW.replace("RECEIVED", each) for each in ("HELD", "FAILED", "SETTLED"))
    told = summary(HEADER, ROW, held, failed)
    assert told.fitting(753_000, 3).checked[-1] == "the sum 7530.00 agrees, of all lines"
    assert told.fitting(251_000, 1).checked == (
        "3 lines, of which 1 took money, as the statement says",
        "the sum 2510.00 agrees, of the 1 lines that took money",
    )
    assert problem(told, 5) == "the lines come to 7530.00, those that took money come to 2510.00, and 0.05 was said"
    unknown = summary(HEADER, ROW, odd)
    assert problem(unknown, 5) == (
        "the lines come to 5020.00, those that took money come to 2510.00, and 0.05 was said;"
        " of 1 lines the profile doesn't know the state"
    )
    assert problem(unknown, None, 5) == (
        "2 lines were read, 1 of them took money, and 5 were said; of 1 lines the profile doesn't know the state"
    )


def test_lines_of_several_kinds_have_a_sum_where_one_kind_alone_took_money() -> None:
    """A failed payment in dollars is no reason not to compare the rupees."""
    failed = ROW.replace("RECEIVED", "FAILED").replace("LKR", "USD")
    told = summary(HEADER, ROW, failed)
    assert told.fitting(251_000).problem is None
    assert problem(told, 5) == "those that took money come to 2510.00, and 0.05 was said"
    assert "no sum together" in str(problem(summary(HEADER, failed, ROW.replace("RECEIVED", "FAILED")), 5))


def test_files_that_are_one_statement_have_one_sum() -> None:
    """A month in two files is compared with the month's sum; what each says at its foot is of itself."""
    profile = msgspec.structs.replace(PAYMENTS, total="Total")
    first = summary(HEADER, ROW, "Total,,2510.00,,,", profile=profile)
    second = summary(HEADER, ROW.replace("RECEIVED", "SETTLED"), "x")
    whole = FileSummary.together([first, second])
    assert (whole.lines.count, whole.moved.count, whole.unknown_count, whole.refused_count) == (2, 1, 1, 1)
    assert (whole.first_day, whole.last_day, whole.totals_minor) == (DAY, DAY, [])
    assert FileSummary.together([first]).totals_minor == [251_000]
    assert FileSummary.together([FileSummary()]).first_day is None


def test_of_many_refused_lines_the_first_are_told() -> None:
    """A hundred wrong lines have one cause; all are counted."""
    made = summary(HEADER, *("x,A-1,5,LKR,RECEIVED,2026-11-22" for _ in range(REFUSED_MAX + 1)))
    assert (made.refused_count, len(made.refused)) == (REFUSED_MAX + 1, REFUSED_MAX)


def test_of_many_unknown_words_the_first_are_named() -> None:
    """A file with another column in the place of the state has as many words as lines; all are counted."""
    made = summary(HEADER, *(f"1,A-1,5,LKR,W{number % 101},2026-11-22" for number in range(202)))
    assert (made.unknown_count, len(made.unknown_words), made.unknown_words["W0"]) == (202, REFUSED_MAX, 2)


@settings(max_examples=examples(100))
@given(st.integers(1, 30), st.randoms(use_true_random=False), st.integers(1, 4))
def test_shuffled_doubled_and_cut_files_give_the_same_report(count: int, random: Random, parts: int) -> None:
    """Whoever exports a month in four files, one of them twice, must get the books of the month."""
    rows = [f"{n},A-{n},{decimal_text(100_000 + n)},LKR,RECEIVED,2026-11-22 10:00:00" for n in range(1, count + 1)]
    ours = [payment(number) for number in range(1, count + 2)]
    wanted = judge(ours, lines(HEADER, *rows), COMPLETE)
    random.shuffle(rows)
    cut = [rows[number::parts] for number in range(parts)]
    cut.append(cut[0])
    random.shuffle(cut)
    fed = [each for part in cut if part for each in lines(HEADER, *part)]
    found = judge(ours, fed, COMPLETE)
    assert [(each.id, each.content, each.day) for each in found] == [
        (each.id, each.content, each.day) for each in wanted
    ]


def test_a_fee_by_the_agreed_rate_is_expected() -> None:
    """The gateway's fee is the one amount that nobody checks by hand."""
    profile = read_profile(
        b"""
        name = "shop"
        movement = "payment"
        date_format = "%d/%m/%Y %H:%M"
        timezone = "Asia/Colombo"
        currency = "LKR"
        columns = {date = "When", amount = "Sum", payment_id = "No", fee = "Fee"}
        fees = {percent = "3.30", fixed = "1.00"}
        """,
        is_toml=True,
    )
    [found] = lines("No,When,Sum,Fee", "1,22/11/2026 23:59,1000.00,34.00", profile=profile)
    assert (found.day, found.fee_minor, found.expected_fee_minor) == (DAY, 3_400, 3_400)
    [dated] = lines(
        "No,When,Sum,Fee", "1,22/11/2026,1,1", profile=msgspec.structs.replace(profile, date_format="%d/%m/%Y")
    )
    assert (dated.day, dated.at_ms) == (DAY, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name = 1", "Expected `str`"),
        ("no toml", "Expected .=. after a key"),
        ('name="a"\nmovement="payment"\ncurrency="LKR"\ncolumns={date="d",amount="a"}', "payment_id is needed"),
        ('name="a"\nmovement="bank"\ncolumns={date="d",amount="a"}', "whose money"),
        (f'name="a"\nmovement="bank"\ndate_format="{"%d" * 51}"\ncolumns={{date="d",amount="a"}}', "length <= 100"),
        ("a = " + "[" * 2_000, "recursion"),
        ("\xff", "Invalid"),
    ],
)
def test_what_is_no_profile_is_refused(text: str, reason: str) -> None:
    """A mistyped file must not be read as one that says nothing."""
    with pytest.raises(ProfileError, match=reason):
        read_profile(text.encode(), is_toml=True)


_ZONE, _FORM = "it must be such as Asia/Colombo", "gives no day"


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ('only="x"', "only needs"),
        ('decimal=","', "the same mark"),
        ('thousands="1"', "no digits"),
        ('decimal="1"', "no digits"),
        ('what=","', "unknown field"),
        ('states={paid="taken"}', "states and columns.state need each other"),
        ('movements={fee="refund"}\ncolumns.payment_id="p"', "movements and columns.movement need each other"),
        ('columns.state="s"', "states and columns.state need each other"),
        ('columns.movement="m"', "movements and columns.movement need each other"),
        (
            'columns.state="s"\nstates={RECEIVED="taken", received="not_taken"}',
            "states has 'RECEIVED', and states has 'received': compared, they are one word",
        ),
        ('columns.state="s"\nstates={"re fund"="taken", " Re  Fund"="taken"}', "compared, they are one word"),
        ('columns.state="s"\nstates={"straße"="taken", "STRASSE"="taken"}', "compared, they are one word"),
        ('columns.state="s"\nstates={"\uff50aid"="taken", "Paid"="taken"}', "compared, they are one word"),
        ('columns.movement="m"\nmovements={Fee="bank"}\nskipped=["fee"]', "movements has 'Fee', and skipped has 'fee'"),
        ('skipped=["total"]\ntotal="Total"', "skipped has 'total', and total has 'Total'"),
        ('skipped=["a", "A"]', "skipped has 'a', and skipped has 'A'"),
        ('skipped=[" "]', "skipped and total must not be empty"),
        ('total=""', "skipped and total must not be empty"),
        ('currency="lkr"', "currency must be three capital letters"),
        *((f'timezone="{name}"', rf"timezone: .*{_ZONE}") for name in ("Mars/Base", "", "Asia", "../UTC", "a" * 5_000)),
        *(
            (f'date_format="{form}"', f"date_format: .*{_FORM}")
            for form in ("%Y%Y", "%d/%m", "%H:%M", "%Q", "%", "", "x", "%m/%Y", "%I:%M %d/%m/%Y", "%d/%m/%Y%", "%s")
        ),
        (r'delimiter="\""', "delimiter must be no quotation mark"),
        (r'delimiter="\n"', "delimiter must be no quotation mark"),
        *((f'fees={{percent="{number}"}}', "fees.percent must be") for number in ("NaN", "Infinity", "-1", "101")),
        *((f'fees={{percent="1", fixed="{number}"}}', "fees.fixed must be") for number in ("NaN", "-1", "1e30")),
    ],
)
def test_a_profile_that_would_be_misread_is_refused_by_its_member(members: str, reason: str) -> None:
    """Whoever wrote it reads one line, before any line of the file is read otherwise than it was meant."""
    text = f'name="a"\nmovement="bank"\ncolumns.date="d"\ncolumns.amount="a"\n{members}\n'
    if "currency" not in members:
        text += 'currency="LKR"\n'
    with pytest.raises(ProfileError, match=reason):
        read_profile(text.encode(), is_toml=True)


@pytest.mark.parametrize(
    "text", ['{"name": "a", "name": "b"', '{"name": "a", "states": {"paid": "taken", "paid": "not_taken"}']
)
def test_a_member_that_a_json_profile_has_twice_is_refused(text: str) -> None:
    """TOML refuses that by itself. Of two, the last would win in silence."""
    rest = ', "movement": "bank", "currency": "LKR", "columns": {"date": "d", "amount": "a", "state": "s"}}'
    with pytest.raises(ProfileError, match="is there twice"):
        read_profile((text + rest).encode(), is_toml=False)


@pytest.mark.parametrize(
    "form", ["%d/%m/%Y", "%d.%m.%y", "%Y%m%d", "%b %d, %Y %I:%M %p", "%Y-%m-%dT%H:%M:%S%z", "%j %Y"]
)
def test_forms_of_dates_that_name_a_day_are_taken(form: str) -> None:
    """The forms that portals and banks write."""
    text = f'name="a"\nmovement="bank"\ncurrency="LKR"\ncolumns={{date="d",amount="a"}}\ndate_format="{form}"'
    assert read_profile(text.encode(), is_toml=True).date_format == form


def test_the_portals_profile_is_a_guess() -> None:
    """Nobody of us has seen such a file; whoever uses the profile is told."""
    assert BUILT_IN["payhere-portal"].is_guess
    assert not any(each.is_guess for name, each in BUILT_IN.items() if name != "payhere-portal")


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_profile_can_be_written_down_and_read(name: str) -> None:
    """A profile of one's own begins as a copy of one that is there."""
    profile = BUILT_IN[name]
    assert read_profile(msgspec.json.encode(profile), is_toml=False) == profile


def test_a_large_file_is_read_line_by_line() -> None:
    """The reader asks for a line only when it has given the one before: a million lines take no more room."""
    asked = []

    def text() -> Iterator[str]:
        for number, row in enumerate((HEADER, ROW, ROW)):
            asked.append(number)
            yield f"{row}\n"

    reading = read_statement(text(), PAYMENTS, zone=ZONE, gateway_zone="Asia/Colombo", until_ms=UNTIL_MS)
    next(reading)
    assert asked == [0, 1]
