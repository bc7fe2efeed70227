import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from payrelay.runtime.alert_channels import AnchorsOutside, Command, NotGivenError
from payrelay.runtime.clients.alert_address import Address

BODY = b'{"alert":"op_1/2"}'
ENVIRONMENT = {"PATH": os.environ["PATH"], "COLOUR": "blue"}


def python(code: str, *arguments: str, limit_s: float = 30.0) -> Command:
    """Gives a command that is a few lines of Python."""
    return Command((sys.executable, "-c", code, *arguments), ENVIRONMENT, limit_s=limit_s)


@asynccontextmanager
async def address(answer: Callable[[web.Request], web.StreamResponse]) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Gives an address that answers so, and what was posted to it."""
    taken: list[bytes] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        taken.append(await request.read())
        return answer(request)

    application = web.Application()
    application.router.add_post("/alerts", handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/alerts", taken
    finally:
        await runner.cleanup()


@pytest.mark.process
async def test_a_command_gets_the_alert_on_its_standard_input(tmp_path: Path) -> None:
    """A real program gets the arguments as they are configured: no shell reads them."""
    code = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_bytes(sys.stdin.buffer.read() + sys.argv[2].encode())"
    await python(code, str(tmp_path / "taken"), " $HOME; ls")(BODY)

    assert (tmp_path / "taken").read_bytes() == BODY + b" $HOME; ls"


@pytest.mark.process
async def test_a_command_sees_the_environment_that_was_meant_for_it(tmp_path: Path) -> None:
    """The service's own holds the keys to the gateway."""
    code = "import os, sys, pathlib; pathlib.Path(sys.argv[1]).write_text(' '.join(os.environ))"
    await python(code, str(tmp_path / "seen"))(BODY)
    names = (tmp_path / "seen").read_text().split()

    assert {"PATH", "COLOUR"} <= set(names) <= {"PATH", "COLOUR", "LC_CTYPE"}


@pytest.mark.process
async def test_a_command_need_not_read() -> None:
    """A command that never reads its input accepts the alert too, however large it is."""
    await python("pass")(BODY * 100_000)


@pytest.mark.process
async def test_a_command_that_fails_has_not_accepted_the_alert() -> None:
    """It is given again."""
    with pytest.raises(NotGivenError, match="exit code 3"):
        await python("import sys; sys.exit(3)")(BODY)


@pytest.mark.process
@pytest.mark.parametrize("program", ["/none/such", "", "a\0b"])
async def test_a_missing_command_has_not_accepted_the_alert(program: str) -> None:
    """Its name is not repeated: its arguments may hold a secret."""
    with pytest.raises(NotGivenError, match=r"^the command could not be started$"):
        await Command((program,), ENVIRONMENT)(BODY)


@pytest.mark.process
async def test_a_command_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    """Else each alert would leave a process behind."""
    pipe = tmp_path / "alive"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    # The child of the command holds the pipe open as long as it lives.
    code = "import subprocess, sys; subprocess.run(['sh', '-c', 'exec 3>\"$0\"; echo up >&3; sleep 600', sys.argv[1]])"
    with pytest.raises(NotGivenError, match="had not ended after 2 s"):
        await python(code, str(pipe), limit_s=2.0)(BODY)

    assert os.read(reader, 10) == b"up\n"
    os.set_blocking(reader, True)
    assert await asyncio.to_thread(os.read, reader, 10) == b""  # nobody holds it any more
    os.close(reader)


@pytest.mark.process
async def test_a_command_is_ended_with_the_service(tmp_path: Path) -> None:
    """A stop does not wait for it, nor leave it behind."""
    pipe = tmp_path / "alive"
    os.mkfifo(pipe)
    code = "import sys, time; out = open(sys.argv[1], 'w'); out.write('up'); out.flush(); time.sleep(600)"
    giving = asyncio.create_task(_given(python(code, str(pipe))))
    with await asyncio.to_thread(pipe.open) as reader:
        assert await asyncio.to_thread(reader.read, 2) == "up"
        giving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await giving
        assert reader.read() == ""


async def _given(command: Command) -> None:
    await command(BODY)


@pytest.mark.parametrize("status", [200, 204, 299])
async def test_an_address_takes_an_alert(status: int) -> None:
    """Over a real socket, byte for byte, and said to be JSON."""
    kinds = []

    def answer(request: web.Request) -> web.Response:
        kinds.append(request.content_type)
        return web.Response(status=status)

    async with address(answer) as (url, taken):
        await Address(url)(BODY)

    assert (taken, kinds) == ([BODY], ["application/json"])


@pytest.mark.parametrize("status", [300, 302, 400, 404, 500, 503])
async def test_an_address_with_any_other_status_has_not_accepted_the_alert(status: int) -> None:
    """And a redirection is not followed: an alert goes where it was meant to go."""
    async with address(lambda _: web.Response(status=status, headers={"Location": "/alerts"})) as (url, taken):
        with pytest.raises(NotGivenError, match=f"HTTP {status}"):
            await Address(url)(BODY)

    assert taken == [BODY]


async def test_an_unreachable_address_has_not_accepted_the_alert() -> None:
    """The address is not repeated: it may hold a secret."""
    with pytest.raises(NotGivenError, match=r"^the address could not be reached$"):
        await Address("http://127.0.0.1:1/hush-hush")(BODY)


async def test_a_hanging_address_has_not_accepted_the_alert() -> None:
    """The next try comes on its day; this one must not wait for ever."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(NotGivenError, match=r"had not answered after 0\.2 s"):
            await Address(f"http://127.0.0.1:{port}/", limit_s=0.2)(BODY)


DAY_MS = 86_400_000
ANCHOR = f"1:{'a' * 64}"


async def test_a_file_of_anchors_gets_a_line_a_day(tmp_path: Path) -> None:
    """However many processes keep it, and however often they start; what stands there stays."""
    file = tmp_path / "anchors.txt"
    for now_ms in (0, 5, DAY_MS, DAY_MS + 5):
        await AnchorsOutside(file).write(ANCHOR, now_ms)

    assert file.read_text() == f"1970-01-01T00:00:00Z {ANCHOR}\n1970-01-02T00:00:00Z {ANCHOR}\n"


async def test_a_line_that_was_cut_off_swallows_no_other(tmp_path: Path) -> None:
    """A disk was full in the midst of a line: the next anchor has a line of its own."""
    file = tmp_path / "anchors.txt"
    file.write_text("1970-01-01T00:0")
    await AnchorsOutside(file).write(ANCHOR, DAY_MS)

    assert file.read_text() == f"1970-01-01T00:0\n1970-01-02T00:00:00Z {ANCHOR}\n"


async def test_a_day_counts_as_kept_once_its_line_is_on_disk(tmp_path: Path) -> None:
    """The worker asks each minute: it is told no until the next day, and yes where the file could not be written."""
    outside = AnchorsOutside(tmp_path / "gone" / "anchors.txt")
    with pytest.raises(FileNotFoundError):
        await outside.write(ANCHOR, 0)
    assert outside.is_due(0)
    (tmp_path / "gone").mkdir()
    await outside.write(ANCHOR, 0)

    assert [outside.is_due(now_ms) for now_ms in (5, DAY_MS)] == [False, True]
    assert not AnchorsOutside().is_due(0)
