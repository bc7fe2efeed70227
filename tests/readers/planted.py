"""A reader as none may be: it copies the rest of the text for each character."""

from typing import Final

from tests.readers.reader import Reader, Shape


def _read(text: bytes) -> None:
    while text:
        text = text[1:]


READERS: Final = (Reader(name="planted", read=_read, longest=65_536, shapes=(Shape("anything", b"x"),)),)
