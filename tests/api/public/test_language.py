"""The sentences of the pages in their languages: none is missing, none is stale, none loses a placeholder."""

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from io import BytesIO

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po
from tests.sources import ROOT

from payrelay.api.public.language import LANGUAGES, language

PAGES = ROOT / "src" / "payrelay" / "api" / "public"
CATALOGUES = PAGES / "hosted" / "languages"
TRANSLATED = LANGUAGES[1:]
SCRIPTS = {"si": re.compile(r"[\u0d80-\u0dff]"), "ta": re.compile(r"[\u0b80-\u0bff]")}
_placeholder = re.compile(r"%\(\w+\)\w|\{\w*\}|%\w")


def marked() -> set[str | tuple[str, ...]]:
    """Every sentence that the sources mark."""
    found = extract_from_dir(str(PAGES), [("**.py", "python")], keywords={"marked": None, "_pair": (1, 2)})
    return {message for _, _, message, _, _ in found}


def catalogue(tag: str) -> Catalog:
    """A catalogue as it lies there."""
    return read_po(BytesIO((CATALOGUES / f"{tag}.po").read_bytes()), locale=tag, abort_invalid=True)


def sentences(tag: str) -> list[Message]:
    """The messages of a catalogue, without its header."""
    return [message for message in catalogue(tag) if message.id]


def texts(value: str | tuple[str, ...] | list[str] | None) -> tuple[str, ...]:
    """One form, or several by number."""
    return (value,) if isinstance(value, str) else tuple(value or ())


def pieces(template: str) -> Iterator[str]:
    """What a template says itself: its text without tags and without what is filled in."""
    yield from re.findall(r"[A-Za-z]{2,}", re.sub(r"\{%.*?%\}|\{\{.*?\}\}|<[^>]*>", " ", template, flags=re.DOTALL))


@pytest.mark.parametrize("tag", TRANSLATED)
def test_every_sentence_is_translated_and_none_is_stale(tag: str) -> None:
    """A sentence that was changed has another translation, or none: both show here."""
    there = {message.id if isinstance(message.id, str) else tuple(message.id) for message in sentences(tag)}

    assert sorted(map(str, marked() - there)) == []
    assert sorted(map(str, there - marked())) == []
    assert not catalogue(tag).obsolete


@pytest.mark.parametrize("tag", TRANSLATED)
def test_every_translation_is_one(tag: str) -> None:
    """Written in its own script, not empty, and by nobody marked as a guess."""
    for message in sentences(tag):
        assert not message.fuzzy, message.id
        for text in texts(message.string):
            assert SCRIPTS[tag].search(text), message.id
            assert not re.search(r"[A-Za-z]{2,}", _placeholder.sub("", text)), message.id


@pytest.mark.parametrize("tag", TRANSLATED)
def test_no_translation_loses_a_placeholder(tag: str) -> None:
    """Nor adds one: the page would fail, or leave out a number."""
    for message in sentences(tag):
        wanted = {tuple(sorted(_placeholder.findall(text))) for text in texts(message.id)}
        assert {tuple(sorted(_placeholder.findall(text))) for text in texts(message.string)} == wanted, message.id


@pytest.mark.parametrize("path", sorted(PAGES.glob("hosted/*.html")), ids=lambda path: path.name)
def test_no_template_has_a_sentence_of_its_own(path: object) -> None:
    """It would be English in every language."""
    assert isinstance(path, type(PAGES))
    assert list(pieces(path.read_text())) == []


def test_amounts_days_and_spans_are_the_readers() -> None:
    """The code of the currency is in all languages the same: three countries call their money Rs."""
    amount, day = Decimal("1234567.5"), date(2027, 3, 9)
    written = {
        tag: (language(tag).amount("LKR", amount), language(tag).day(day), language(tag).span("2 Week"))
        for tag in LANGUAGES
    }

    assert written == {
        "en": ("LKR\u00a01,234,567.50", "9 March 2027", "2 weeks"),
        "si": ("LKR\u00a01,234,567.50", "2027 මාර්තු 9", "සති 2"),
        "ta": ("LKR\u00a01,234,567.50", "9 மார்ச், 2027", "2 வாரங்கள்"),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 Month", "1 month"),
        ("12 months", "12 months"),
        ("1 Year", "1 year"),
        ("3 Day", "3 days"),
        ("so long", "so long"),
    ],
)
def test_a_span_is_written_by_its_number(text: str, expected: str) -> None:
    """One that can't be read stays as the shop wrote it."""
    assert language("en").span(text) == expected
