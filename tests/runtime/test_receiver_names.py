"""Names that strangers chose, and what they may do to us."""

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Final

import pytest

from payrelay.runtime.clients.receiver_names import Found, NameThreads

FOUND: Found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", 443))]


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Holds up those who ask for a name that is never answered, until the end of the test."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_name_leads_to_its_addresses() -> None:
    """As the system knows it; the addresses are numbers from then on."""
    [found] = await NameThreads().resolve("localhost", 443)

    assert (found["hostname"], found["host"], found["port"]) == ("localhost", "127.0.0.1", 443)


@pytest.mark.parametrize("error", [socket.gaierror(-2, "unknown"), UnicodeError("label too long")])
async def test_a_name_that_leads_nowhere_is_an_error_of_the_network(error: Exception) -> None:
    """A name that the codec chokes on among them: it must not end what delivers."""

    def fails(*_: object, **__: object) -> Found:
        raise error

    with pytest.raises(OSError):  # noqa: PT011 - any of them is a failed try
        await NameThreads(fails).resolve("name.example", 443)


async def test_names_that_are_never_resolved_delay_no_other(gate: threading.Event) -> None:
    """Neither other receivers nor the event loop's own threads, which resolve the gateway's name."""

    def look_up(host: str, *_: object, **__: object) -> Found:
        if host.startswith("silent"):
            gate.wait(30)
        return FOUND

    names = NameThreads(look_up)
    silent = [asyncio.create_task(names.resolve(f"silent{number}.example", 443)) for number in range(20)]
    async with asyncio.timeout(10):
        assert (await names.resolve("well.example", 443))[0]["host"] == "192.0.2.7"
        assert await asyncio.get_running_loop().getaddrinfo("localhost", 443)
    for task in silent:
        task.cancel()
    await asyncio.gather(*silent, return_exceptions=True)


async def test_a_slot_is_free_when_its_thread_has_ended(gate: threading.Event) -> None:
    """Whoever gives up waiting doesn't make room for one more thread that hangs."""
    asked: list[str] = []

    def look_up(host: str, *_: object, **__: object) -> Found:
        asked.append(host)
        gate.wait(30)
        return FOUND

    names = NameThreads(look_up, limit=1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(names.resolve("one.example", 443), 0.01)
    second = asyncio.create_task(names.resolve("two.example", 443))
    await asyncio.wait({second}, timeout=0.05)
    assert asked == ["one.example"]
    gate.set()
    async with asyncio.timeout(10):
        assert (await second)[0]["host"] == "192.0.2.7"


ONE_SLOT: Final = """
import asyncio, resource, socket
from payrelay.runtime.clients.receiver_names import NameThreads

async def main():
    names = NameThreads(lambda *_, **__: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", 443))], limit=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (0, hard))  # no memory for the stack of another thread
    try:
        await names.resolve("name.example", 443)
    except OSError:
        print("refused")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    async with asyncio.timeout(20):
        print((await names.resolve("name.example", 443))[0]["host"])

asyncio.run(main())
"""


@pytest.mark.process
def test_a_process_that_may_begin_no_thread_gets_its_slot_back() -> None:
    """Else no event would ever be sent again, once that had happened often enough."""
    told = subprocess.run([sys.executable, "-c", ONE_SLOT], check=True, capture_output=True, text=True, timeout=60)

    assert told.stdout.split() == ["refused", "192.0.2.7"]
