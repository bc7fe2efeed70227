"""The first minute of somebody new: the demo starts, and every call that it prints works as printed."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.scenarios.demo import Demo, running_demo
from tests.scenarios.http_client import Client, Reply
from tests.scenarios.stories import assert_envelope

OPERATIONS = 9


def play(command: str, key: str) -> Reply:
    """Does what the shell and curl would do with the command, where the printed key was copied before."""
    words = shlex.split(command.replace("\\\n", " ").replace("$KEY", key))
    address = urlsplit(next(word for word in words if word.startswith("http")))
    values = {
        option: [words[at + 1] for at, word in enumerate(words) if word == option] for option in ("-X", "-H", "-d")
    }
    headers = [(name, value.strip()) for name, _, value in (header.partition(":") for header in values["-H"])]
    content = values["-d"][0].encode() if values["-d"] else None
    method = values["-X"][0] if values["-X"] else "GET"
    return Client(port=int(address.port or 80), key=None).send(method, address.path, content, headers)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    """A running demo in a folder of its own."""
    with running_demo(tmp_path) as demo:
        yield demo


@pytest.mark.smoke
def test_each_printed_call_works_and_can_be_repeated(demo: Demo) -> None:
    """All nine operations, last one first, and each once more: 200 every time, and the money moved once."""
    assert len(demo.calls) == OPERATIONS
    for command in reversed(demo.calls):
        reply = play(command, demo.key)
        assert reply.status == 200, f"{command}: {reply}"
        assert_envelope(reply)
    before = demo.ledger()
    for command in demo.calls:
        assert play(command, demo.key).status == 200, command
    assert demo.ledger() == before
