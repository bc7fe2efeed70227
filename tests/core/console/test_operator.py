import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.store.console.samples import ADA, INVITATION, SESSION

from payrelay.console.rules.sign_in.second_factor import enrolment_address, step_of_code
from payrelay.console.rules.sign_in.tries import CODE, PASSWORD, Counted
from payrelay.core.operators.operator import (
    IDLE_MS,
    Operator,
    OperatorState,
    OperatorTextError,
    email_of,
    is_live,
    is_open,
    operator_name_of,
    require_password,
    token_hash,
)
from payrelay.core.secret import Secret

SECRET = Secret("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ")
"""That of RFC 6238's test vectors, 12345678901234567890 in base 32."""


@pytest.mark.parametrize(
    ("members", "operator", "now_ms", "expected"),
    [
        ({}, {}, 999, True),
        ({}, {}, 1_000, False),
        ({"ends_at_ms": 10**9}, {}, IDLE_MS, True),
        ({"ends_at_ms": 10**9}, {}, IDLE_MS + 1, False),
        ({"ended_at_ms": 5}, {}, 6, False),
        ({}, {"state": OperatorState.DISABLED}, 5, False),
        ({}, {"state": OperatorState.INVITED}, 5, False),
        ({}, {"id": "opr_2"}, 5, False),
    ],
)
def test_a_session_ends(
    members: dict[str, object], operator: dict[str, object], now_ms: int, *, expected: bool
) -> None:
    """By itself, by somebody, and with its operator."""
    session = msgspec.structs.replace(SESSION, **members)

    assert is_live(session, msgspec.structs.replace(ADA, **operator), now_ms) is expected


def test_an_invitation_ends() -> None:
    """Once it was used, or was too long on its way."""
    assert is_open(INVITATION, 99)
    assert not is_open(INVITATION, 100)
    assert not is_open(msgspec.structs.replace(INVITATION, ended_at_ms=5), 6)


@pytest.mark.parametrize(
    "text", ["", "ada", "a b@x.example", "a@x y", "@x", "a@", "<b>@x.example", "a\n@x", "a" * 250 + "@x.ex"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    """It is shown on pages, and compared as a whole."""
    with pytest.raises(OperatorTextError):
        email_of(text)


@given(st.text(min_size=1, max_size=8))
@example("\u212aate")
@example("\u0130da")
@example("\u00a0ada")
def test_no_other_letters_are_read_as_those_of_an_address(local: str) -> None:
    """A provider says who somebody is by an address: another one that looks or sounds like it is somebody else's."""
    try:
        email = email_of(f"{local}@shop.example")
    except OperatorTextError:
        return

    assert [each for each in email if each.isascii()] == [
        each.lower() for each in f"{local.lstrip(' ')}@shop.example" if each.isascii() and each not in "\t\r\n"
    ]
    assert [each for each in email if not each.isascii()] == [each for each in local if not each.isascii()]


def test_addresses_and_names_have_one_form() -> None:
    """Nobody gets a second account by a capital letter."""
    assert email_of(" Ada@Shop.Example\n") == "ada@shop.example"
    assert operator_name_of("  Ada   L. ") == "Ada L."
    for wrong in ("", " ", "a" * 101, "a\u202eb"):
        with pytest.raises(OperatorTextError):
            operator_name_of(wrong)


@pytest.mark.parametrize(
    "password", ["short", "a" * 12, "abababababab", "ada@shop.example", "Ada@Shop.Example2026", "x" * 257]
)
def test_a_password_that_is_quickly_guessed_is_refused(password: str) -> None:
    """Long enough, and more than what everybody knows of the person."""
    with pytest.raises(OperatorTextError):
        require_password(password, ADA)


def test_a_long_password_is_taken_as_it_is() -> None:
    """Whatever characters it has."""
    require_password("correct horse battery staple", ADA)
    require_password("සිංහල முக்கியம் ok", ADA)


def test_codes_are_those_of_the_standard() -> None:
    """RFC 6238, appendix B: any authenticator app shows these digits, here the last six of eight."""
    for at_s, code in ((59, "287082"), (1111111109, "081804"), (2000000000, "279037")):
        assert step_of_code(SECRET, code, at_s * 1000, 0) == at_s // 30
        assert step_of_code(SECRET, f"{code[:3]} {code[3:]}", at_s * 1000, 0) == at_s // 30


def test_a_code_counts_once_and_for_a_minute_and_a_half() -> None:
    """A phone's clock may be off by a step; what was looked at over a shoulder opens nothing."""
    at_ms, step = 59_000, 1
    assert [step_of_code(SECRET, "287082", at_ms + shift * 30_000, 0) for shift in (-1, 0, 1, 2)] == [
        step,
        step,
        step,
        None,
    ]
    assert step_of_code(SECRET, "279037", (2_000_000_000 - 60) * 1000, 0) is None
    assert step_of_code(SECRET, "287082", at_ms, step) is None
    for wrong in ("", "28708", "2870821", "aaaaaa", "\uff12\uff18\uff17\uff10\uff18\uff12", "287082\0"):
        assert step_of_code(SECRET, wrong, at_ms, 0) is None


def test_what_the_store_and_logs_have_shows_no_secret() -> None:
    """A token is kept as its hash, a counted name as its hash, and an operator prints without the password's hash."""
    assert "token" not in token_hash("token")
    assert token_hash("a") != token_hash("b")
    assert "ada" not in Counted(PASSWORD, "ada").subject
    assert Counted(PASSWORD, "ada").subject != Counted(CODE, "ada").subject
    assert "argon2" not in repr(ADA)
    assert "GEZD" not in repr(enrolment_address(SECRET, ADA.email))
    assert "secret=GEZD" in enrolment_address(SECRET, ADA.email).reveal()
    assert isinstance(ADA, Operator)
