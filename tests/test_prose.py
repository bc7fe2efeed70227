"""The sentences of pages and docstrings are short, and the counter that says so counts as a reader would."""

from pathlib import Path
from typing import Final

import pytest
from tests import prose
from tests.prose import AVERAGE_MAX, PAGE_AVERAGE_MAX, WORDS_MAX, Sentence, average, sentences

USER_PAGES: Final = prose.user_pages()
PAGES: Final = [*USER_PAGES, *prose.developer_pages()]
SOURCES: Final = sorted((prose.ROOT / "src").rglob("*.py"))
LONG: Final = " ".join(["word"] * (WORDS_MAX + 1))


def too_long(counted: list[Sentence]) -> str:
    """Names each sentence with more words than any may have, a line each."""
    return "\n".join(str(each) for each in counted if each.words > WORDS_MAX)


def too_long_on_average(counted: list[Sentence], limit: int) -> str:
    """Names the longest sentences where their average is over the limit; an empty text where it is not."""
    if not counted or average(counted) <= limit:
        return ""
    longest = sorted(counted, key=lambda each: each.words, reverse=True)[:10]
    head = f"{average(counted):.1f} words a sentence, and at most {limit} are allowed; the longest are"
    return "\n".join([head, *map(str, longest)])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(prose.ROOT)))
def test_no_sentence_of_a_page_is_long(page: Path) -> None:
    """Whoever reads in a second language has lost the beginning of a long sentence at its end."""
    long = too_long(prose.sentences_of_page(page))

    assert not long, long


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(prose.ROOT)))
def test_no_page_is_heavy(page: Path) -> None:
    """One page of long sentences is not made easier by short ones on another."""
    heavy = too_long_on_average(prose.sentences_of_page(page), PAGE_AVERAGE_MAX)

    assert not heavy, heavy


def test_sentences_are_short_on_average() -> None:
    """The pages are read by people whose second language is English, some of them while a payment is lost."""
    heavy = too_long_on_average([each for page in USER_PAGES for each in prose.sentences_of_page(page)], AVERAGE_MAX)

    assert not heavy, heavy


def test_every_docstring_stands_alone() -> None:
    """Who comes to a function by a search has not read the one above it, and can't know what "the same" is."""
    leaning = "\n".join(
        f"{each.where} {each.text.splitlines()[0]}"
        for source in SOURCES
        for each in prose.docstrings(source)
        if each.text.startswith("The same")
    )

    assert not leaning, leaning


def test_no_sentence_of_a_docstring_is_long() -> None:
    """A promise that nobody can hold in mind is not kept."""
    counted = (each for source in SOURCES for text in prose.docstrings(source) for each in text.sentences())
    long = too_long(list(counted))

    assert not long, long


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One two. Three four five! Six?", [2, 3, 1]),
        ("A paragraph\nthat wraps, without a stop\n\nAnother one", [7, 2]),
        ("- first item\n- second item, which\n  goes on. And on.\n", [2, 5, 2]),
        ("Before a list:\n1. one\n2. two three\n", [3, 1, 2]),
        ("> A quoted\n> sentence.", [3]),
        ('He said "no." Then (it is said.) he left.', [3, 4, 2]),
        ("**Bold.** Then plain.", [1, 2]),
    ],
)
def test_a_sentence_ends_with_its_stop_or_its_paragraph(text: str, expected: list[int]) -> None:
    """What runs over the end of a list item would be counted as long, and what is cut too early as short."""
    assert [each.words for each in sentences(text)] == expected


@pytest.mark.parametrize(
    "text",
    [
        "Use a database, e.g. SQLite, or another one.",
        "Use a database (e.g. SQLite), i.e. none of your own.",
        "Python 3.11 or v1.2.0 will do, and payrelay.toml too.",
        "It costs 99.50 vs. 100.00 rupees.",
        "He lives at No. 1 in Galle Road.",
        "Ids, keys, etc. are kept.",
        "It comes at 5 p.m. and not before.",
        "Wait for it... and go on.",
        "Ask `GET /events?after=1. Or not! ` at once.",
        "Read [the page](docs/api.md#a.b?c! d) at once.",
    ],
)
def test_a_stop_inside_a_sentence_does_not_end_it(text: str) -> None:
    """An abbreviation that ended a sentence would make two short ones of a long one."""
    assert len(sentences(text)) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The answer is no. The next one too.", 2),
        ("It is version 0.1.0. It is not released.", 2),
        ("Ids, keys, etc. Nothing else.", 2),
        ("Ask for `id`. `msg` is for people.", 2),
    ],
)
def test_a_stop_that_looks_like_an_abbreviation_ends_a_sentence(text: str, expected: int) -> None:
    """Two short sentences that count as one would make a good page fail."""
    assert len(sentences(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        f"```sh\n{LONG}\n```\n",
        f"- item:\n\n  ```\n  {LONG}\n  ```\n",
        f"~~~\n```\n{LONG}\n~~~\n",
        f"Run this:\n\n    {LONG}\n",
        f"| a | b |\n| --- | --- |\n| {LONG} | {LONG} |\n",
        f"## {LONG}\n",
        f"{LONG}\n---\n",
        f"<!-- {LONG}\n{LONG} -->\n",
        f"See [this](https://example.org/{LONG.replace(' ', '%20')} 'word').\n",
        f"![{LONG}](picture.png)\n",
        f"[name]: https://example.org '{LONG}'\n",
    ],
)
def test_what_is_no_prose_is_left_out(text: str) -> None:
    """A table, an example or an address is not read as a sentence is."""
    assert too_long(sentences(text)) == ""


@pytest.mark.parametrize(
    "text",
    [
        f"{LONG}.",
        f"A short one. {LONG}",
        f"- {LONG}",
        f"1. {LONG}",
        f"1. item\n\n   {LONG}",
        f"- item\n\n      code\n\n  {LONG}",
        f"```\ncode\n```\n{LONG}\n",
        f"| a |\n| --- |\n\n{LONG}\n",
        f"[{LONG}](page.md)",
        f"`{LONG}`",
        f"<b>{LONG}</b>",
    ],
)
def test_a_long_sentence_is_found_wherever_it_stands(text: str) -> None:
    """A counter that skips too much would pass any page."""
    assert too_long(sentences(text)) != ""


def test_forty_words_are_allowed_and_one_more_is_not() -> None:
    """The limit is the number that writers are told."""
    assert too_long(sentences(LONG.removesuffix(" word"))) == ""
    assert too_long(sentences(LONG)) != ""


def test_a_long_sentence_is_named_with_its_page_and_line() -> None:
    """Whoever has to shorten it finds it without counting."""
    page = f"# Head\n\nShort [one](a.md).\nAnd this.\n\n<!-- two\nlines -->\n- item. {LONG}\n"

    assert too_long(sentences(page, "docs/page.md")) == f"docs/page.md:8 ({WORDS_MAX + 1} words) {LONG}"


def test_a_sentence_begins_on_the_line_of_its_first_word() -> None:
    """A paragraph has several lines, and a link of several lines counts too."""
    counted = sentences("One.\nTwo [of\nthree](page.md). Three\nfour.\n\nFive.")

    assert [each.line for each in counted] == [1, 2, 3, 6]


def test_a_heavy_page_is_named_with_its_longest_sentences() -> None:
    """An average alone doesn't say what to shorten."""
    counted = sentences(f"Short.\n\n{LONG}", "docs/page.md")

    assert too_long_on_average(counted, PAGE_AVERAGE_MAX).splitlines()[1:] == [
        f"docs/page.md:3 ({WORDS_MAX + 1} words) {LONG}",
        "docs/page.md:1 (1 words) Short.",
    ]
    assert too_long_on_average(sentences("Short."), PAGE_AVERAGE_MAX) == ""
    assert too_long_on_average([], PAGE_AVERAGE_MAX) == ""


def test_docstrings_are_found_wherever_they_stand(tmp_path: Path) -> None:
    """A rule that looks at functions alone would pass the members of an enum."""
    source = tmp_path / "module.py"
    source.write_text(
        '"""A module."""\nclass A:\n    """A class.\n\n    It goes on.\n    """\n\n    B = 1\n    """A member."""\n\n'
        '    def c(self):\n        """A method."""\n        return """no docstring"""\n'
    )

    assert sorted((each.line, each.text.strip()) for each in prose.docstrings(source)) == [
        (1, "A module."),
        (3, "A class.\n\nIt goes on."),
        (9, "A member."),
        (12, "A method."),
    ]
