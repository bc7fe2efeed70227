"""What is told of a card: read in one way, whoever tells it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.api.routes.customers import CardExpiry
from payrelay.core.customers.customer import CARD_EXPIRY_PATTERN, masked, month_and_year
from payrelay.imports.rules.fields import Fields
from payrelay.imports.rules.items import ItemRefusedError


@pytest.mark.parametrize(
    ("text", "expiry"),
    [
        *((text, "0129") for text in ("0129", "129", "01/29", "1/29", "01-29", "1-29", "01 / 29", "01/2029", "1/2029")),
        *((text, "0129") for text in ("012029", "12029", "2029-01", "2029-1", "2029/01", "202901")),
        *((text, "1220") for text in ("1220", "12/20", "122020", "2020-12", "202012", "12-2020")),
        *((text, "0120") for text in ("120", "0120", "12020", "012020")),
        *((text, "0212") for text in ("212", "22012", "2012-2")),
        *((text, "1112") for text in ("1112", "112012", "201211")),
    ],
)
def test_a_month_and_a_year_are_read_where_there_is_one_way_to_read_them(text: str, expiry: str) -> None:
    """Spreadsheets drop the zero before a month; systems write the year first, or whole."""
    assert month_and_year(text) == expiry


@pytest.mark.parametrize(
    "text",
    [
        *("", "1", "29", "2901", "2020", "1329", "0029", "00/29", "13/29", "29/01", "20291", "2029", "2029-13", "1.29"),
        *(
            "Jan-29",
            "29-Jan",
            "2029-01-31",
            "01/29/30",
            "1//29",
            " 0129",
            "0129 ",
            "0129\n",
            "\u0660\u0661/29",
            "1/1929",
        ),
    ],
)
def test_what_can_be_read_in_two_ways_or_none_is_not_read(text: str) -> None:
    """A guess would show a card as expired that is none, or the other way round."""
    assert month_and_year(text) is None


def test_nothing_expires_in_no_month() -> None:
    """A gateway that tells none leaves it null."""
    assert month_and_year(None) is None


@given(st.integers(1, 12), st.integers(0, 99), st.sampled_from(["", "/", "-", " / "]), st.booleans(), st.booleans())
def test_every_month_of_the_century_has_one_reading(
    month: int,
    year: int,
    between: str,
    is_whole: bool,  # noqa: FBT001 - drawn
    is_bare: bool,  # noqa: FBT001 - drawn
) -> None:
    """However it is written: month first, its zero lost or not, and the year with its century or without."""
    text = f"{month if is_bare else f'{month:02}'}{between}{'20' if is_whole else ''}{year:02}"

    assert month_and_year(text) == month_and_year(f"20{year:02}-{month:02}") == f"{month:02}{year:02}"


@given(
    st.from_regex(CARD_EXPIRY_PATTERN, fullmatch=True) | st.from_regex(r"[0-9]{1,8}[-/ .]?[0-9]{0,4}", fullmatch=True)
)
def test_the_api_and_an_import_read_alike(text: str) -> None:
    """What one of them takes, the other one takes as the same month; else both say why."""
    fields = Fields({"card_expiry": text})
    expiry = month_and_year(text.strip())
    if expiry is None:
        with pytest.raises(ItemRefusedError, match="month and a year"):
            fields.card_expiry("card_expiry")
        with pytest.raises(ValueError, match="month and a year"):
            CardExpiry.read(text)
    else:
        assert fields.card_expiry("card_expiry") == expiry
        assert re.fullmatch(CARD_EXPIRY_PATTERN, text.strip())
        assert CardExpiry.read(text.strip()) == text.strip()


@pytest.mark.parametrize(
    ("card_no", "mask"),
    [
        ("************1292", "************1292"),
        ("4916217501611292", "************1292"),
        ("491621******1292", "************1292"),
        ("4916 2175 0161 1292", "***************1292"),
        ("1292", "1292"),
        ("", None),
        (None, None),
        ("4" * 33, None),
    ],
)
def test_four_digits_of_a_card_are_kept_whatever_comes(card_no: str | None, mask: str | None) -> None:
    """A gateway that forgot its mask must not put a whole card number into the database."""
    assert masked(card_no) == mask


@given(st.text(max_size=40))
def test_never_more_than_four_characters_are_shown(card_no: str) -> None:
    """Whatever it looks like."""
    assert len((masked(card_no) or "").replace("*", "")) <= 4
