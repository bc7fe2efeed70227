"""No table that is saved has a formula, in whatever country it is opened: clients and statements choose its texts."""

import csv
import io
import sys
import unicodedata
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sources import OURS

from payrelay.core.text.csv_text import csv_text, plain

DELIMITERS: Final = ",;\t|"
SHAPELESS: Final = frozenset({"Zs", "Zl", "Zp", "Cc", "Cf"})
FORMULAS: Final = "=+-@\uff1d\uff0b\uff0d\uff20"
TEXTS: Final = st.text(st.sampled_from(f"{DELIMITERS}{FORMULAS}\"' ax1\n\r\x0b\x0c\x85\u2028\u3000\u200b"), max_size=12)


def begins(cell: str) -> str:
    """Gives the first character of a cell that has a shape, and isn't a quote."""
    return next((each for each in cell if each != '"' and unicodedata.category(each) not in SHAPELESS), "")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("|x", "'|x"),
        ("\uff1d1", "'\uff1d1"),
        ("\u22121", "'\u22121"),
        ("x,=1,y", "x,'=1,y"),
        ("x;=HYPERLINK(1);y", "x;'=HYPERLINK(1);y"),
        ("x;;-1;@y", "x;;'-1;'@y"),
        ("x|+1", "x|'+1"),
        ("line\n=1+1", "line\n'=1+1"),
        ("line\r\n=1", "line\r\n'=1"),
        ("\t=1", "\t'=1"),
        ("\r=1", "\r'=1"),
        ("\x0b=1", "\x0b'=1"),
        ("x\u2028=1", "x\u2028'=1"),
        ("  =1", "'  =1"),
        ("\u3000=1", "'\u3000=1"),
        ("\u2003=1", "'\u2003=1"),
        ("\u200b=1", "'\u200b=1"),
        ("x; \u200b=1", "x;' \u200b=1"),
        ('x;"=1"', 'x;\'"=1"'),
        ("A-1", "A-1"),
        ("a=b; c", "a=b; c"),
        ("ann@shop.example", "ann@shop.example"),
        ("1000.00", "1000.00"),
        ("", ""),
    ],
)
def test_no_cell_is_a_formula_whatever_separates_cells(text: str, written: str) -> None:
    """Much of Europe opens a table with semicolons as its separators, and a user may choose another one."""
    assert plain(text) == written


@given(st.lists(st.lists(TEXTS, min_size=2, max_size=2), max_size=3))
def test_no_table_has_a_formula_by_any_separator(rows: list[list[str]]) -> None:
    """The writer's own quotes and separators don't make one either. By a comma all texts are there, but apostrophes."""
    written = csv_text(["a", "b"], rows)
    for delimiter in DELIMITERS:
        for row in csv.reader(io.StringIO(written, newline=""), delimiter=delimiter):
            assert not [cell for cell in row if begins(cell) and begins(cell) in FORMULAS], (delimiter, row)
    read = list(csv.reader(io.StringIO(written, newline="")))[1:]
    assert [[cell.replace("'", "") for cell in row] for row in read] == [
        [cell.replace("'", "") for cell in row] for row in rows
    ]


def test_whatever_has_no_shape_hides_no_formula() -> None:
    """Programs differ in what they pass over in front of a cell: all spaces, controls and formats count."""
    unseen = [each for each in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(each) in SHAPELESS]
    assert [hex(ord(each)) for each in unseen if "'" not in plain(f"{each}=1")] == []


def test_one_place_writes_tables() -> None:
    """A second writer would have to know all of this again."""
    assert [each.name for each in OURS if "csv.writer" in each.text or "DictWriter" in each.text] == []
