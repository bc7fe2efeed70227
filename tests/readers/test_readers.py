"""No reader of foreign text takes time with the square of it: one request would stop all others, payments included."""

from importlib import import_module
from pathlib import Path
from typing import Final

import pytest
from tests.readers.measure import excess, measured
from tests.readers.reader import Reader

MODULES: Final = sorted(
    f"tests.readers.{path.stem}"
    for path in Path(__file__).parent.glob("*.py")
    if "\nREADERS" in path.read_text() and path.stem != "planted"
)


@pytest.mark.integration
def test_twice_the_text_is_at_most_twice_the_work() -> None:
    """Up to the longest text that each reader is given, in the shapes that are worst for it."""
    assert excess(measured(*MODULES)) == []


@pytest.mark.integration
def test_a_reader_that_copies_the_rest_of_a_text_again_and_again_is_found() -> None:
    """The count above can fail, though such a copy is one single step to Python."""
    (found,) = excess(measured("tests.readers.planted"))

    assert found.startswith("planted, anything: ")


@pytest.mark.parametrize("module", MODULES)
def test_the_longest_text_is_read_or_refused(module: str) -> None:
    """A fault that nobody expects would end the reading early, and it would count as quick."""
    readers: tuple[Reader, ...] = import_module(module).READERS
    texts = [(reader, shape.of(reader.longest)) for reader in readers for shape in reader.shapes]

    assert all(len(text) <= reader.longest for reader, text in texts)
    for reader, text in texts:
        reader.take(text)
