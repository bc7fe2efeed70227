"""The first minute of somebody new: the demo starts, and every call that it prints works as printed."""

import re
import shlex
import urllib.request
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.parse import urlencode, urlsplit

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


@pytest.mark.smoke
def test_the_console_of_the_demo_shows_a_payment(demo: Demo) -> None:
    """With the address, the name and the password that it prints: a newcomer sees what support sees."""
    charge = next(command for command in demo.calls if "demo-charge-1" in command)
    assert play(charge, demo.key).status == 200
    address = re.findall(r"(http://\S+)/console/", demo.text)[0]
    ((email, password),) = re.findall(r"sign in as (\S+) with the password (\S+)", demo.text)
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))

    def page(path: str, form: dict[str, str] | None = None) -> str:
        data = None if form is None else urlencode(form).encode()
        with browser.open(address + path, data, timeout=15) as answer:
            return str(answer.read().decode())

    (token,) = re.findall(r'name="token" value="(\w+)"', page("/console/sign-in"))
    assert "Start" in page("/console/sign-in", {"token": token, "email": email, "password": password})
    assert "found by order id" in page("/console/find?q=DemoOrder3")
    assert "The gateway answered that it was done." in page("/console/orders/gateway/DemoOrder3")
    queue = page("/console/queue")
    assert "Demo-Decide" in queue
    assert "another amount" in queue
    (case,) = re.findall(r'href="(/console/act/operation/\w+)"', queue)
    assert 'name="decision"' in page(case)
    assert "order Demo-Decide" in demo.text
    (looked_up,) = re.findall(r"look up (\S+), too", demo.text)
    assert "refund" in page(f"/console/orders/gateway/{looked_up}").lower()
