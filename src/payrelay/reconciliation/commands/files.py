"""Opens the files of statements, line by line, whatever their size."""

import codecs
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from payrelay.cli.terminal.messages import UNUSABLE, CommandError

if TYPE_CHECKING:
    from payrelay.reconciliation.flows.import_statement import FileToImport
    from payrelay.reconciliation.rules.files.profiles import Profile

LINE_LENGTH_MAX: Final = 100_000
"""Characters of one line: a file without line breaks is no statement."""
_BEGINNING_BYTES: Final = 16
_OTHER_FILES: Final = (
    ((b"PK\x03\x04", b"PK\x05\x06"), "a workbook such as .xlsx, or another file of the zip kind"),
    (
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"\x09\x08\x10\x00\x00\x06", b"\x09\x08\x08\x00"),
        "a workbook of the old kind, .xls",
    ),
    ((b"%PDF-",), "a PDF"),
    ((b"<!DOCTYPE", b"<!doctype", b"<html", b"<HTML", b"<table", b"<TABLE", b"<?xml"), "a web page or XML"),
)
"""How files begin that portals give under the name of a statement, and what they are; many a .xls is a web page."""


def file_to_import(path: Path, profile: "Profile") -> "FileToImport":
    """Gives a file as the import reads it; raises CommandError where it can't be read."""
    from payrelay.reconciliation.flows.import_statement import FileToImport

    try:
        with path.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise CommandError(f"{path} can't be read: {error.strerror}") from None
    return FileToImport(name=path.name, digest=digest, profile=profile, opened=lambda: _lines(path, profile.encoding))


def _lines(path: Path, encoding: str) -> Iterator[str]:
    number, names_it = 0, "the profile names the encoding, such as"
    begins = _beginning(path)
    other = next((what for marks, what in _OTHER_FILES if begins.startswith(marks)), None)
    if other is not None:
        raise CommandError(f"{path} is {other}, and no CSV: open it, and save the table in it as CSV", UNUSABLE)
    try:
        if _is_utf_16(begins) and "utf" not in encoding.lower():
            raise CommandError(f'{path}: is UTF-16, and not {encoding}; {names_it} "utf-16"', UNUSABLE)
        if codecs.lookup(encoding).name == "utf-8":
            encoding = "utf-8-sig"  # a byte order mark is no part of the first column's name
        with path.open(encoding=encoding, newline="") as opened:
            while line := opened.readline(LINE_LENGTH_MAX):
                number += 1
                if len(line) == LINE_LENGTH_MAX:
                    raise CommandError(f"{path}: line {number} has more than {LINE_LENGTH_MAX} characters", UNUSABLE)
                yield line
    except UnicodeError as error:
        likely = "utf-16" if _is_utf_16(begins) else "cp1252"
        why = getattr(error, "reason", error)
        raise CommandError(
            f'{path}: behind line {number}: is not {encoding}: {why}; {names_it} "{likely}"', UNUSABLE
        ) from None
    except (LookupError, ValueError):  # of the encoding's name alone
        raise CommandError(f"--profile: encoding: {encoding!r} is none that is known", UNUSABLE) from None


def _beginning(path: Path) -> bytes:
    with path.open("rb") as opened:
        return opened.read(_BEGINNING_BYTES)


def _is_utf_16(begins: bytes) -> bool:
    return begins.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
