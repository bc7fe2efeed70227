"""Opens the files of statements, line by line, whatever their size."""

import codecs
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from payrelay.cli.terminal.messages import UNUSABLE, CommandError

if TYPE_CHECKING:
    from payrelay.core.reconciliation.files.profiles import Profile
    from payrelay.flows.reconciliation.import_statement import FileToImport

LINE_LENGTH_MAX: Final = 100_000
"""Characters of one line: a file without line breaks is no statement."""


def file_to_import(path: Path, profile: "Profile") -> "FileToImport":
    """Gives a file as the import reads it; raises CommandError where it can't be read."""
    from payrelay.flows.reconciliation.import_statement import FileToImport

    try:
        with path.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise CommandError(f"{path} can't be read: {error.strerror}") from None
    return FileToImport(name=path.name, digest=digest, profile=profile, opened=lambda: _lines(path, profile.encoding))


def _lines(path: Path, encoding: str) -> Iterator[str]:
    number, names_it = 0, "the profile names the encoding, such as"
    try:
        if _begins_as_utf_16(path) and "utf" not in encoding.lower():
            raise CommandError(f'{path}: is UTF-16, and not {encoding}; {names_it} "utf-16"', UNUSABLE)
        with path.open(encoding=encoding, newline="") as opened:
            while line := opened.readline(LINE_LENGTH_MAX):
                number += 1
                if len(line) == LINE_LENGTH_MAX:
                    raise CommandError(f"{path}: line {number} has more than {LINE_LENGTH_MAX} characters", UNUSABLE)
                yield line
    except UnicodeError as error:
        likely = "utf-16" if _begins_as_utf_16(path) else "cp1252"
        why = getattr(error, "reason", error)
        raise CommandError(
            f'{path}: behind line {number}: is not {encoding}: {why}; {names_it} "{likely}"', UNUSABLE
        ) from None
    except LookupError:
        raise CommandError(f"--profile: {encoding} is no encoding that is known", UNUSABLE) from None


def _begins_as_utf_16(path: Path) -> bool:
    with path.open("rb") as opened:
        return opened.read(2) in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}
