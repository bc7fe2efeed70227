"""The readers of files that a bank, a gateway or an old shop wrote, of profiles that tell of them, and of marks.

Most files may be of any size. What is tried of them is as long as a count of it allows. Settings and arguments are no
foreign text: who writes them starts the program.
"""

import asyncio
import base64
from collections.abc import Callable
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.readers.reader import Reader, Shape

from payrelay.core.database.marks import MARK_PURPOSE, read_mark
from payrelay.core.keyed_digest import DigestKey
from payrelay.core.secret import Secret
from payrelay.imports.commands.import_existing import KEY_FILE_BYTES_MAX
from payrelay.imports.flows.sources import csv_source
from payrelay.imports.rules.items import ImportUnreadableError, SourceRow
from payrelay.reconciliation.commands.files import LINE_LENGTH_MAX, file_to_import
from payrelay.reconciliation.commands.options import profile_of
from payrelay.reconciliation.rules.entries import Zone
from payrelay.reconciliation.rules.files.profiles import BUILT_IN, Profile
from payrelay.reconciliation.rules.files.statement_files import read_statement
from payrelay.recovery.rules.gateway_reports import read_report
from payrelay.runtime.database.mark_files import FILE_BYTES_MAX
from payrelay_tools.laravel.mysql_dump import dump_rows
from payrelay_tools.laravel.rows import items_of_laravel
from payrelay_tools.laravel.secrets import KEYS_MAX, VALUE_LENGTH_MAX, AppKeys, app_keys_in
from payrelay_tools.laravel.source import laravel_source

ROWS_BYTES: Final = 8_192
"""Of files that are read row by row, whose own limit, if they have one, would take minutes to count."""
PIECE_LENGTH: Final = 128
"""Characters of a piece of a dump: so that even a short text goes through many."""
_FOLDER: Final = TemporaryDirectory(prefix="payrelay-readers-")
_ZONE: Final = "Asia/Colombo"
_UNTIL_MS: Final = Zone(_ZONE).begins_ms(date(2100, 1, 1))
_APP_KEYS: Final = AppKeys([Secret(f"{number:016}") for number in range(KEYS_MAX)])
_DIGEST_KEY: Final = DigestKey(b"k" * 32, MARK_PURPOSE)


def in_file(read: Callable[[Path], object], name: str = "file.csv") -> Callable[[bytes], object]:
    """Gives the reader of a text that is in a file of this name."""

    def read_text(text: bytes) -> object:
        path = Path(_FOLDER.name) / name
        path.write_bytes(text)
        path.chmod(0o600)
        return read(path)

    return read_text


def statement(path: Path, profile: Profile = BUILT_IN["bank"]) -> int:
    """Reads the lines of a statement."""
    lines = file_to_import(path, profile).opened()
    return sum(1 for _ in read_statement(lines, profile, zone=Zone(_ZONE), gateway_zone=_ZONE, until_ms=_UNTIL_MS))


def by_profile(path: Path) -> int:
    """Reads a profile, and a line by it."""
    other = path.with_name("by-profile.csv")
    other.write_text('date,amount,currency,text\n2026-11-22,"1,000.00",LKR,a\n')
    return statement(other, profile_of(str(path)))


def imported(path: Path) -> int:
    """Reads the items of a shop's file."""

    async def count() -> int:
        try:
            source = csv_source(path, lambda _: None)
        except ImportUnreadableError:
            source = laravel_source(str(path), _APP_KEYS, lambda _: None)
        return sum([1 async for _ in source.items()])

    return asyncio.run(count())


def dumped(text: bytes) -> int:
    """Reads the items of a dump that comes in small pieces."""
    whole = text.decode()
    rows = dump_rows(whole[at : at + PIECE_LENGTH] for at in range(0, len(whole), PIECE_LENGTH))
    read = (items_of_laravel(row, _APP_KEYS, "UTC", lambda _: None) for row in rows if isinstance(row, SourceRow))
    return sum(len(list(items)) for items in read)


def in_base64(json: bytes) -> bytes:
    """Writes a part of a text in base64, with spaces before it so that others can follow."""
    return base64.b64encode(b" " * (-len(json) % 3) + json)


def in_envelope(json: bytes) -> bytes:
    """Writes the beginning of an encrypted value."""
    begun = b'{"iv":"","mac":"","tag":"",'
    return base64.b64encode(begun + b" " * (-len(begun + json) % 3) + json)


_BANK: Final = b"date,amount,currency,reference,text,payout_id\n"
_PAYMENTS: Final = b"payment_id,order_id,amount,currency\n"
_CARDS: Final = b"customer_token,card_expiry\n"
_PLANS: Final = b"subscription_id,order_id,next_on\n"
_REPORT: Final = b"order_id,payment_id,amount,currency,status,date"
_LARAVEL: Final = b"order_id,payhere_amount,payhere_currency,status_code"
_DUMP: Final = b"INSERT INTO p (" + _LARAVEL + b") VALUES "
_AMOUNT: Final = b'[{"order_id":"1","payment_id":"2","currency":"LKR","status":"received","date":"2026-11-22","amount":'
_PROFILE: Final = (
    b'name = "x"\nmovement = "bank"\ncurrency = "LKR"\ncolumns = {date = "date", amount = "amount", text = "text"}\n'
)

READERS: Final = (
    Reader(
        name="rows of a statement",
        read=in_file(statement),
        longest=ROWS_BYTES,
        shapes=(
            Shape("equal lines", b"2026-11-22,1.00,LKR,,a,\n", before=_BANK),
            Shape("lines of their own", lambda number: b"2026-11-22,1.00,LKR,%d,a,\n" % number, before=_BANK),
            Shape("refused lines", b"?,1.00,LKR,,,\n", before=_BANK),
            Shape("empty lines", b"\r\n", before=_BANK),
            Shape("no header", b"a,b,c\n"),
        ),
    ),
    Reader(
        name="line of a statement",
        read=in_file(statement),
        longest=LINE_LENGTH_MAX - 1,
        shapes=(
            Shape("columns", b"a,", before=_BANK[:-1] + b",", after=b"\n1\n"),
            Shape("one column again and again", b",date", before=_BANK[:-1], after=b"\n1\n"),
            Shape("columns of no header", b"date;"),
            Shape("quotes", b'""', before=_BANK + b'"', after=b'"\n'),
            Shape("quotes without an end", b'""\n', before=_BANK + b'"'),
            Shape("a row of lines", b'"\n",', before=_BANK),
            Shape("digits of an amount", b"9", before=_BANK + b"2026-11-22,", after=b",LKR,,,\n"),
            Shape("decimals", b"1", before=_BANK + b"2026-11-22,1.", after=b",LKR,,,\n"),
            Shape("thousands", b",22", before=_BANK + b'2026-11-22,"1', after=b',22",LKR,,,\n'),
            Shape("a date", b"1", before=_BANK + b"2026-11-22T10:00:00.", after=b",1.00,LKR,,,\n"),
            Shape("spaces", b" ", before=_BANK + b"2026-11-22,1", after=b"1,LKR,,,\n"),
            Shape("no end", b"a", before=_BANK),
        ),
    ),
    Reader(
        name="profile in TOML",
        read=in_file(by_profile, "profile.toml"),
        longest=2 * ROWS_BYTES,
        shapes=(
            Shape("words", b"a" * 100 + b".1 ", before=_PROFILE + b'only = "', after=b'"\n'),
            Shape("quotes of two kinds", b"\"'", before=_PROFILE + b"#"),
            Shape("lists within lists", b"[", before=b"x = "),
            Shape("tables within tables", b"{a=", before=b"x = "),
            Shape("names", lambda number: b"%d = 'taken'\n" % number, before=_PROFILE + b"[states]\n"),
            Shape("digits", b"1", before=b"x = "),
            Shape("escapes", rb"\n", before=_PROFILE + b'only = "', after=b'"\n'),
            Shape("thousands", b"1", before=_PROFILE + b'thousands = "', after=b'"\n'),
            Shape("the form of a date", b"%%", before=_PROFILE + b'date_format = "', after=b'"\n'),
            Shape("skipped words", b'"a",', before=_PROFILE + b"skipped = [", after=b"]\n"),
        ),
    ),
    Reader(
        name="profile in JSON",
        read=in_file(by_profile, "profile.json"),
        longest=2 * ROWS_BYTES,
        shapes=(
            Shape("lists within lists", b"[", before=b'{"skipped":'),
            Shape(
                "states",
                lambda number: b'"%d":"taken",' % number,
                before=b'{"name":"x","movement":"bank","states":{',
                after=b'"":"taken"}}',
            ),
        ),
    ),
    Reader(
        name="rows of a shop's table",
        read=in_file(imported),
        longest=ROWS_BYTES,
        shapes=(
            Shape("payments", b"1,2,3.00,LKR\n", before=_PAYMENTS),
            Shape("rows that are too long", b"1,2,3.00,LKR,\n", before=_PAYMENTS),
            Shape("empty rows", b"\n", before=_PAYMENTS),
        ),
    ),
    Reader(
        name="line of a shop's table",
        read=in_file(imported),
        longest=LINE_LENGTH_MAX - 1,
        shapes=(
            Shape("unknown columns", lambda number: b",a%d" % number, before=_PAYMENTS[:-1]),
            Shape("columns of Laravel", lambda number: b",a%d" % number, before=_LARAVEL),
            Shape("fields", b",", before=_PAYMENTS),
            Shape("quotes", b'""', before=_PAYMENTS + b'"'),
            Shape("an amount", b"9", before=_PAYMENTS + b"1,2,", after=b",LKR\n"),
            Shape("a card's expiry", b"1", before=_CARDS + b"59AFEE022CC69CA3,", after=b"\n"),
            Shape("a day", b"1", before=_PLANS + b"1,2,2026-11-25 ", after=b"\n"),
            Shape("spaces", b" ", before=_PAYMENTS + b"1,2", after=b"2,3.00,LKR\n"),
            Shape("no UTF-8", b"\xff", before=_PAYMENTS + b"1,", after=b",3.00,LKR\n"),
        ),
    ),
    Reader(
        name="rows of a dump",
        read=in_file(imported, "dump.sql"),
        longest=ROWS_BYTES // 2,
        shapes=(
            Shape("rows of one INSERT", b"(1,2,'LKR',2),", before=_DUMP, after=b"(1,2,3,4);"),
            Shape("statements", _DUMP + b"(1,2,'LKR',2);\n"),
            Shape("tables", lambda number: b"CREATE TABLE t%d (a int);" % number),
            Shape("brackets", b"(", before=b"CREATE TABLE t "),
            Shape("words without an end", b"a ", before=_DUMP[:12]),
            Shape("short comments", b"-- \n#\n/**//*!1*/", before=_DUMP),
        ),
    ),
    Reader(
        name="value of a dump",
        read=dumped,
        longest=2 * ROWS_BYTES,
        shapes=(
            Shape("a text", b"a", before=_DUMP + b"('", after=b"',2,3,2);"),
            Shape("a text without an end", b"a", before=_DUMP + b"('"),
            Shape("escapes", rb"\n''", before=_DUMP + b"('", after=b"',2,3,2);"),
            Shape("a quoted name", b"``", before=_DUMP + b"(`", after=b"`);"),
            Shape("a comment", b"*", before=_DUMP + b"/*", after=b"/(1,2,3,2);"),
            Shape("a comment without an end", b"a", before=_DUMP + b"/*"),
            Shape("a comment of a line", b"a", before=_DUMP + b"-- "),
            Shape("spaces", b" ", before=_DUMP, after=b"(1,2,3,2);"),
            Shape("digits", b"1", before=_DUMP + b"(", after=b",2,3,2);"),
            Shape("digits of base 16", b"0", before=_DUMP + b"(0x", after=b",2,3,2);"),
            Shape("no digit of base 16", b"0", before=_DUMP + b"(0x", after=b"g,2,3,2);"),
            Shape("a word", b"a", before=_DUMP + b"(", after=b",2,3,2);"),
        ),
    ),
    Reader(
        name="keys of a shop",
        read=lambda text: app_keys_in(text.decode()),
        longest=KEY_FILE_BYTES_MAX,
        refusals=(ValueError,),
        shapes=(
            Shape("empty lines before no key", b"\n", after=b"a"),
            Shape("spaces in a key", b" ", before=b"APP_KEY=a", after=b"b"),
            Shape("spaces behind keys", b"APP_KEY" + b" " * 100),
            Shape("lines with keys", b"APP_KEY=0123456789abcdef\n"),
            Shape("commas", b",", before=b"APP_PREVIOUS_KEYS=", after=b"a"),
            Shape("base64", b"AAAA", before=b"APP_KEY=base64:"),
        ),
    ),
    Reader(
        name="value that a shop encrypted",
        read=lambda text: _APP_KEYS.opened(text.decode()),
        longest=VALUE_LENGTH_MAX,
        shapes=(
            Shape("lists within lists", in_base64(b"[[["), before=in_envelope(b'"value":"","x":')),
            Shape("members", in_base64(b'"":"",'), before=in_envelope(b'"value":"",'), after=in_base64(b'"":""}')),
            Shape("a value", in_base64(b"AAA"), before=in_envelope(b'"value":"'), after=in_base64(b'"}')),
            Shape("escapes", in_base64(rb"\u0041"), before=in_envelope(b'"value":"'), after=in_base64(b'"}')),
        ),
    ),
    Reader(
        name="report of the gateway",
        read=lambda text: read_report(text, _ZONE),
        longest=ROWS_BYTES,
        shapes=(
            Shape("payments", lambda number: b"\n1,%d,3,LKR,received,2026-11-22" % number, before=_REPORT),
            Shape("columns of two names", b",a", before=_REPORT),
            Shape("columns of names of their own", lambda number: b",a%d" % number, before=_REPORT),
            Shape("empty lines", b"\n", before=_REPORT),
            Shape("lists within lists", b"["),
            Shape("members", lambda number: b'"a%d":1,' % number, before=b"[{", after=b'"":1}]'),
            Shape("no payments", b"{},", before=b"[", after=b"1]"),
            Shape("digits", b"9", before=_AMOUNT, after=b"}]"),
            Shape("decimals", b"1", before=_AMOUNT + b"1.", after=b"}]"),
            Shape("an exponent", b"9", before=_AMOUNT + b"1e", after=b"}]"),
            Shape("an exponent below 0", b"9", before=_AMOUNT + b"1e-", after=b"}]"),
            Shape("a date", b"1", before=_REPORT + b"\n1,2,3,LKR,received,2026-11-22T10:00:00."),
            Shape("no UTF-8", b"\n", after=b"\xff"),
        ),
    ),
    Reader(
        name="high-water mark",
        read=lambda text: read_mark(text, _DIGEST_KEY),
        longest=FILE_BYTES_MAX,
        shapes=(
            Shape("lists within lists", b"[", before=b'{"mark":{"x":'),
            Shape(
                "operations",
                b'["op",1,"",1],',
                before=b'{"mark":{"database":"d","incarnation":1,"written_at_ms":1,"operations":[',
                after=b'["op",1,"",1]]},"digest":""}',
            ),
            Shape("escapes", rb"\u0041", before=b'{"mark":{},"digest":"', after=b'"}'),
        ),
    ),
)
