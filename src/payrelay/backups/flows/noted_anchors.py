"""The anchors that were noted outside the database, compared with those of a copy of it."""

import re
from pathlib import Path
from typing import Final, NamedTuple

from payrelay.errors import StoreUnusable

_NOTED: Final = re.compile(r"(?:(\S+) )?(?:.* )?(\d{1,18}):([0-9a-f]{64})")


class NotedAnchor(NamedTuple):
    """An anchor as it was noted: its number and digest, and the time at which it was noted, in words."""

    number: int
    digest: str
    at: str


def noted_in(path: Path | None) -> list[NotedAnchor]:
    """Reads the file that PAYRELAY_ANCHOR_PATH names; a line that a full disk cut off is left out.

    Raises StoreUnusable where there is a file that can't be read.
    """
    if path is None or not path.exists():
        return []
    try:
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError as error:
        raise StoreUnusable(f"{path}: the anchors can't be read: {error.strerror}") from error
    matches = [_NOTED.fullmatch(line) for line in lines]
    return [NotedAnchor(int(match[2]), match[3], match[1] or "") for match in matches if match is not None]
