import pytest

from payrelay.core.text.operator_text import (
    DESCRIPTION_LENGTH_MAX,
    NAME_LENGTH_MAX,
    REASON_LENGTH_MAX,
    WordsError,
    description_of,
    name_of,
    named,
    reason_of,
)


@pytest.mark.parametrize(
    "text", ["x", "  the bank's list says so  ", "ශ්‍රී".replace("\u200d", ""), "x" * REASON_LENGTH_MAX]
)
def test_a_reason_is_kept_as_it_was_given(text: str) -> None:
    """In any language, without the white space around it."""
    assert reason_of(text) == text.strip()


@pytest.mark.parametrize("text", ["", "   ", "two\nlines", "\x1b[2J", "x" * (REASON_LENGTH_MAX + 1)])
def test_what_can_not_be_read_is_no_reason(text: str) -> None:
    """It stands in a history for ever, and is printed on terminals."""
    with pytest.raises(WordsError, match="must have 1 to 500 printable characters"):
        reason_of(text)


def test_what_somebody_else_chose_is_no_more_of_the_sentence() -> None:
    """An order's id or a passkey's name may be anything: it looks like no further part of a line, and turns none."""
    expected = {
        "A-1": "A-1",
        "phone": "phone",
        "phone, from 10.1.2.3": "“phone, from 10.1.2.3”",
        "ada's phone": "“ada's phone”",
        "A”, payment 999, “": "“A\\u201d, payment 999, \\u201c”",
        "a\u202eb\n": "“a\\u202eb\\n”",
        "ශ": "“ශ”",
        "": "“”",
    }

    assert {text: named(text) for text in expected} == expected


def test_a_name_is_shorter() -> None:
    """It stands in lists."""
    assert name_of("ann") == "ann"
    with pytest.raises(WordsError, match="must have 1 to 100 printable characters"):
        name_of("x" * (NAME_LENGTH_MAX + 1))


def test_a_description_fits_into_the_gateways_record() -> None:
    """It is read in the gateway's portal."""
    assert description_of(" a broken cup ") == "a broken cup"
    with pytest.raises(WordsError, match="must have 1 to 200 printable characters"):
        description_of("x" * (DESCRIPTION_LENGTH_MAX + 1))
