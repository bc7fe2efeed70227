"""One reader of amounts: each member of each call that takes money reads the same spellings, and refuses the same."""

import re
from decimal import Decimal
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.api.members import Member, members, outcome
from tests.draws import examples

from payrelay.api.requests.amounts import Amount, StartupFee, UnitAmount, amount_in, startup_fee_minor
from payrelay.api.routes.client_tokens import ExactOrOpenAmount
from payrelay.core.calls import Call
from payrelay.core.money import AMOUNT_MINOR_MAX, decimal_text
from payrelay.core.payments.idempotency import fingerprint_of
from payrelay.errors import Code, Refusal

AMOUNTS = {Amount, UnitAmount, StartupFee, ExactOrOpenAmount}
MONEY = [member for member in members() if AMOUNTS & {*member.types}]
of_money = pytest.mark.parametrize("member", MONEY, ids=[f"{each.route}-{each.shown}" for each in MONEY])
SPELLINGS_OF_100 = ("100", "100.00", "1E+2", "1e2", "1.0E2", "10000e-2", "1e0000002", "0.1E3", "1" + "0" * 40 + "E-38")
WORDS = re.compile(
    r"must be a number, or a text with two decimals such as \"100\.50\"|must be greater than 0|must be 0 or greater"
    r"|must be at most 999999999999\.99|must have at most 2 decimals|has too many digits, or too large an exponent"
)


@cache
def fitting(member: Member) -> int:
    """Gives the number of the first example in which an amount of 100 may stand at this place."""
    return next(
        number for number, body in enumerate(member.bodies("100")) if not isinstance(outcome(member, body), dict)
    )


def called(member: Member, written: str) -> object:
    """Gives what becomes of a body with this JSON at the place of an amount."""
    return outcome(member, [*member.bodies(written)][fitting(member)])


def told(member: Member, written: str) -> dict[str, str]:
    """Gives what is wrong with such a body, by field."""
    found = called(member, written)
    assert isinstance(found, dict), found
    return found


def test_every_member_that_names_money_is_read_by_the_one_reader() -> None:
    """A new call is found here: a reader of its own would take other spellings, and lose digits in its own way."""
    named = {each.name for each in members() if re.search("amount|fee|price|total|sum", str(each.path[-1]))}

    assert {each.name for each in MONEY} == named
    assert {each.route for each in MONEY} >= {"charge", "capture", "refund", "openCheckout", "issueClientToken"}


@of_money
def test_all_spellings_of_an_amount_are_one_request(member: Member) -> None:
    """Jackson writes 1E+2, PHP "100.00" and JavaScript 100: a repeat through another library must not charge again."""
    calls = [called(member, written) for written in (*SPELLINGS_OF_100, '"100.00"', '"000100.00"')]

    assert all(call == calls[0] for call in calls)
    assert not isinstance(calls[0], dict)
    if isinstance(calls[0], Call):
        assert len({fingerprint_of("gateway", call) for call in calls}) == 1  # type: ignore[arg-type]


@st.composite
def spelled(draw: st.DrawFn, minor: int) -> str:
    """Draws one of the ways to write an amount."""
    zeros = draw(st.integers(0, 30))
    shift = draw(st.integers(0, 40))
    sign = draw(st.sampled_from(["e", "E"]))
    stripped = str(Decimal(minor).scaleb(-2).normalize())
    return draw(
        st.sampled_from([
            f'"{decimal_text(minor)}"',
            decimal_text(minor) + "0" * zeros,
            f"{minor}{sign}-2",
            f"{minor}{'0' * shift}{sign}-{shift + 2}",
            f"{minor}.{'0' * (zeros + 1)}{sign}-02",
            f"0.{minor:018d}{sign}+16",
            f"0.{'0' * shift}{minor}{sign}{shift + len(str(minor)) - 2}",
            stripped,
        ])
    )  # fmt: skip


@settings(max_examples=examples(200))
@given(st.data(), st.sampled_from(MONEY), st.integers(1, AMOUNT_MINOR_MAX))
def test_an_amount_is_one_value_however_it_is_spelled(data: st.DataObject, member: Member, minor: int) -> None:
    """At every call, to the last hundredth, for every amount: no float, no rounding, no context of Python's."""
    assert called(member, data.draw(spelled(minor))) == called(member, decimal_text(minor))


def json_text(text: str) -> str:
    """Writes a text as JSON, without what no body may have."""
    return '"' + re.sub(r'["\\\x00-\x1f\ud800-\udfff]', "x", text) + '"'


def minor_by_digits(written: str) -> int | None:
    """Gives the hundredths that a spelling says; None where it says no amount. Slow, and written another way."""
    if written.startswith('"'):
        match = re.fullmatch(r'"(-?)([0-9]{1,12})\.([0-9]{2})"', written)
        return None if match is None else int(f"{match[1]}{match[2]}{match[3]}")
    match = re.fullmatch(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]+))?", written)
    if match is None or abs(int(match[4] or 0)) > 999:
        return None
    digits, shift = int(match[2] + (match[3] or "")), int(match[4] or 0) - len(match[3] or "") + 2
    number, rest = (digits * 10**shift, 0) if shift >= 0 else divmod(digits, 10**-shift)
    return None if rest else (-number if match[1] else number)


@settings(max_examples=examples(300))
@given(
    st.sampled_from(MONEY),
    st.text(max_size=8).map(json_text)
    | st.from_regex(r'"[-+ ]?[0-9,._]{0,6}[eE]?[0-9]{0,3} ?"', fullmatch=True)
    | st.from_regex(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,5})?([eE][-+]?[0-9]{1,12})?", fullmatch=True)
    | st.sampled_from(["true", "false", "[]", "{}", "[1]"]),
)
def test_anything_is_exactly_one_amount_or_refused_by_its_field(member: Member, written: str) -> None:
    """What a person can't tell at a glance is 422; what is taken is what the digits say, by Python's own decimals."""
    minor = minor_by_digits(written)
    if minor is not None and is_amount_of(member, minor) and not (minor == 0 and written.startswith('"-')):
        assert called(member, written) == called(member, decimal_text(minor))
    else:
        assert set(told(member, written)) == {member.shown}


def is_amount_of(member: Member, minor: int) -> bool:
    """Tells whether so many hundredths are an amount there, whatever the rest of the body says."""
    if StartupFee in member.types:
        return 0 < abs(minor) <= AMOUNT_MINOR_MAX
    return (0 if UnitAmount in member.types else 1) <= minor <= AMOUNT_MINOR_MAX


@pytest.mark.parametrize(
    "written",
    [
        *('""', '"1e2"', '"1E+2"', '"1,000.00"', '" 100.00"', '"100.00 "', '"100.00\\n"', '"100"', '"100.0"'),
        *('"+100.00"', '".50"', '"1_00.00"', '"0x64.00"', '"NaN"', '"Infinity"', '"null"', '"100.000"'),
        *('"\u0661\u0660\u0660.\u0660\u0660"', '"\uff11\uff10\uff10.\uff10\uff10"', '"\\u0661.00"'),
        *('"1000000000000.00"', '"LKR 100.00"', '"100.00 LKR"', '"1.000,00"'),
        *("true", "false", "[]", "[100]", "{}", '{"value":100}'),
        *("1E+999999999", "1e-999999999", "1E+9999999999999999999", "1e1000", "-1E+999999999", "1e-3"),
        *("0.001", "100.005", "1000000000000", "1" + "0" * 5_000, "0." + "0" * 5_000 + "1", "1" + "0" * 200 + "e-200"),
    ],
)  # fmt: skip
@of_money
def test_what_is_no_amount_is_refused_at_every_call(member: Member, written: str) -> None:
    """In words that say what is taken; a reader that is more liberal at one call guesses somewhere."""
    (words,) = told(member, written).items()

    assert words[0] == member.shown
    assert WORDS.match(words[1]), words


@pytest.mark.parametrize("written", ["NaN", "Infinity", "-Infinity", "+1", "01.00", ".5", "1."])
@of_money
def test_what_is_no_number_of_json_is_no_json(member: Member, written: str) -> None:
    """Libraries that write NaN are told so: 400, before any field is read."""
    with pytest.raises(Refusal, match="the body is not JSON") as raised:
        called(member, written)
    assert raised.value.code is Code.MALFORMED_REQUEST


@of_money
def test_null_is_absence_where_an_amount_may_be_absent_and_else_refused(member: Member) -> None:
    """An empty text is neither: a form that lost its amount must not refund the whole."""
    if member.field.required:
        assert set(told(member, "null")) == {member.shown}
    else:
        for with_null, without in zip(member.bodies("null"), member.bodies_without(), strict=True):
            assert outcome(member, with_null) == outcome(member, without)
    assert set(told(member, '""')) == {member.shown}


@given(st.integers(1, AMOUNT_MINOR_MAX), st.integers(0, 60))
def test_a_fee_below_0_is_as_exact_as_one_above(minor: int, zeros: int) -> None:
    """To negate a long decimal rounds it: what has a third decimal far behind was taken without it."""
    text = f"-{decimal_text(minor)}" + "0" * zeros

    assert startup_fee_minor(Decimal(text)) == startup_fee_minor(f"-{decimal_text(minor)}") == -minor
    with pytest.raises(ValueError, match=r"2 decimals|at most"):
        startup_fee_minor(Decimal(text + "1"))


def test_an_amount_stays_the_number_that_was_sent() -> None:
    """Nothing is computed before the number is bounded: to multiply would round, or overflow."""
    assert amount_in(Decimal("1E+500")) == Decimal("1E+500")
