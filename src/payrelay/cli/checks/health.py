"""The command for the health checks of containers and supervisors: asks the service on this machine how it is.

A supervisor runs it every few seconds, so it loads neither the settings nor the service: the options say where to ask.
"""

import time
from typing import Annotated, Final

import typer

from payrelay.cli.terminal.declaring import examples, group
from payrelay.cli.terminal.messages import DONE, FAULTY, CommandError, show

ANY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104  nobody listens here
"""Addresses to listen on, which are no addresses to ask, with the ones of this machine."""
BODY_BYTES_MAX: Final = 10_000
ASKED_EVERY_S: Final = 0.25
"""How long --wait rests between two answers: a start takes seconds, and the process is busy with it."""
WAIT_S_MAX: Final = 3600
PORT: Final = 8080
PORT_MAX: Final = 65_535

CLUSTERS: Final = ("tcp://", "udp://", "sctp://")
"""How the value begins that a cluster gives PAYRELAY_PORT for a service of that name; it is no setting."""

app = group()


def _port_in(given: str | int) -> int:
    text = str(given)  # the number that stands for nothing given comes here too
    if text.startswith(CLUSTERS):
        return PORT
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= PORT_MAX):
        raise typer.BadParameter(f"{text!r} is no port from 1 to {PORT_MAX}")
    return int(text)


@app.command(
    epilog=examples("payrelay health", "payrelay health --wait 60", "payrelay health --port 80 --timeout 2 --live"),
)
def health(
    *,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where it listens.", envvar="PAYRELAY_HOST")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="NUMBER", help="Its port.", envvar="PAYRELAY_PORT", parser=_port_in)
    ] = PORT,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="The longest wait.", min=0.1, max=60)] = 4.0,
    live: Annotated[bool, typer.Option("--live", help="Ask only whether the process answers.")] = False,
    wait: Annotated[
        float, typer.Option(metavar="SECONDS", help="Ask until it is, for so long.", min=0, max=WAIT_S_MAX)
    ] = 0.0,
) -> int:
    """Ask the running service whether it is ready.

    For the health checks of containers, and with --wait for scripts. Exit code 0 where it is, 1 where not.
    """
    path = "/health/live" if live else "/health/ready"
    began_s = time.monotonic()
    status, said = _asked(ANY_ADDRESS.get(host, host), port, path, timeout)
    while status != 200 and (left_s := wait - (time.monotonic() - began_s)) > 0:  # noqa: PLR2004  HTTP's number of success
        time.sleep(min(ASKED_EVERY_S, left_s))
        status, said = _asked(ANY_ADDRESS.get(host, host), port, path, timeout)
    if status != 200:  # noqa: PLR2004  HTTP's number of success
        raise CommandError(said, FAULTY)
    show(said)
    return DONE


def _asked(host: str, port: int, path: str, timeout_s: float) -> tuple[int, str]:
    """Asks the service; gives the HTTP status, 0 for no answer in time, and what it said in a line."""
    import concurrent.futures
    import threading

    answer: concurrent.futures.Future[tuple[int, str]] = concurrent.futures.Future()

    def ask() -> None:
        answer.set_result(_answer(host, port, path, timeout_s))

    # A thread, because a peer that sends a byte now and then would keep a socket's own time-out from ever ending it.
    threading.Thread(target=ask, daemon=True).start()
    try:
        return answer.result(timeout_s)
    except TimeoutError:
        return 0, f"no answer from {host}:{port} in {timeout_s:g} s"


def _answer(host: str, port: int, path: str, timeout_s: float) -> tuple[int, str]:
    import http.client

    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request("GET", path)
        reply = connection.getresponse()
        return _judged(reply.status, reply.read(BODY_BYTES_MAX))
    except (OSError, http.client.HTTPException) as error:
        return 0, f"no answer from {host}:{port}: {error}"
    finally:
        connection.close()


def _judged(status: int, body: bytes) -> tuple[int, str]:
    """Writes what the service said in one line; whatever else answers there counts as no answer."""
    import json

    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or "status" not in told:
        return 0, f"something answers there that is not Payrelay: HTTP {status}"
    words = str(told["status"]).replace("_", " ")
    effects = f"; effects are {told['effects']}" if "effects" in told else ""
    reason = f": {told['reason']}" if "reason" in told else ""
    return status, f"{words}{effects}{reason}"
