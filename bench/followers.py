"""Measures what five thousand streams of events cost one process, and that each of them gets its event.

    python bench/followers.py [--followers 5000] [--keep-docs]

Ten shops each open a checkout. Their phones follow it, each by a stream of its own. After a while in which nothing
happens the customer of each checkout turns back, and the phones are told. Everything goes through a service that was
started as in production, over sockets.
"""

import argparse
import asyncio
import contextlib
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

import programs
import section
from contenders import READY_PATH, made_key
from measure import MEGABYTE, memory_mb, tree_cpu_s

SHOPS: Final = 10
IDLE_S: Final = 20.0
TOLD_S_MAX: Final = 60.0
AT_ONCE: Final = 50
"""Streams that are opened at one moment."""
FILES_BESIDE: Final = 200
EVENT: Final = b"event: checkout.cancelled"
HEAD: Final = [
    "followers",
    "memory before",
    "with them",
    "of each",
    "CPU while idle",
    "told",
    "the last one after",
    "CPU",
]
CHECKOUT: Final = {
    "type": "payment",
    "items": "Toy car",
    "currency": "LKR",
    "amount": 1500,
    "customer": {
        "first_name": "Saman",
        "last_name": "Perera",
        "email": "saman@example.com",
        "phone": "+94771234567",
        "address": "No. 1, Galle Road",
        "city": "Colombo",
        "country": "Sri Lanka",
    },
}


class Service(NamedTuple):
    """The running service, and the key of each shop."""

    port: int
    pid: int
    keys: list[str]


class Followed(NamedTuple):
    """A checkout: the path of its page, and the request that follows it."""

    page: str
    request: bytes


def main() -> int:
    """Measures, prints, and writes its section of the docs; fails where a follower was told nothing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--followers", type=int, default=5_000)
    parser.add_argument("--keep-docs", action="store_true", help="leave docs/ alone")
    wanted = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, wanted.followers + FILES_BESIDE), hard))
    with tempfile.TemporaryDirectory(prefix="payrelay-bench-", dir="/var/tmp") as name, served(Path(name)) as service:
        row, told = asyncio.run(measured(service, wanted.followers))
    rows = [HEAD, ["---:"] * len(HEAD), row]
    print("\n".join("   ".join(each) for each in rows))
    if not wanted.keep_docs:
        section.write("followers", [f"| {' | '.join(each)} |" for each in rows])
    return 0 if told == wanted.followers else 1


@contextlib.contextmanager
def served(folder: Path) -> Iterator[Service]:
    """Runs the service on an embedded database, with a key for each shop."""
    program, port = str(Path(sys.executable).parent / "payrelay"), programs.free_port()
    prefix = "PAYRELAY_GATEWAYS__GATEWAY__"
    environment = {
        "PAYRELAY_DATABASE_URL": f"sqlite:///{folder / 'payrelay.db'}",
        "PAYRELAY_PUBLIC_URL": f"http://{programs.HOST}:{port}",
        f"{prefix}BASE_URL": f"http://{programs.HOST}:{programs.free_port()}",  # nobody is there, and nobody is asked
        **{f"{prefix}{name}": "bench" for name in ("APP_ID", "APP_SECRET", "MERCHANT_SECRET")},
        f"{prefix}MERCHANT_ID": "1210000",
    }
    keys = [made_key(environment, folder, f"shop-{number}") for number in range(SHOPS)]
    arguments = [program, "serve", "--host", programs.HOST, "--port", str(port)]
    launch = programs.Launch(
        name="payrelay", arguments=arguments, core=programs.cores().server, folder=folder, environment=environment
    )
    with programs.running(launch) as process:
        programs.wait_ready(process, launch, port, READY_PATH)
        yield Service(port, process.pid, keys)


async def measured(service: Service, count: int) -> tuple[list[str], int]:
    """Lets so many follow; gives the row of the table, and how many were told."""
    checkouts = [await _opened(service, number) for number in range(SHOPS)]
    before_mb, _ = memory_mb(service.pid)
    streams: list[asyncio.StreamReader] = []
    writers: list[asyncio.StreamWriter] = []
    for first in range(0, count, AT_ONCE):
        opened = [_follow(service.port, checkouts[each % SHOPS]) for each in range(first, min(first + AT_ONCE, count))]
        for reader, writer in await asyncio.gather(*opened):
            streams.append(reader)
            writers.append(writer)
    with_mb, _ = memory_mb(service.pid)
    began_s, used_s = time.monotonic(), tree_cpu_s(service.pid)
    await asyncio.sleep(IDLE_S)
    idle = (tree_cpu_s(service.pid) - used_s) / (time.monotonic() - began_s)
    used_s = tree_cpu_s(service.pid)
    telling = [asyncio.create_task(_told(stream)) for stream in streams]
    await asyncio.gather(*(_asked(service.port, _request("GET", f"{each.page}/cancel")) for each in checkouts))
    began_s = time.monotonic()
    moments = [each for each in await asyncio.gather(*telling) if each is not None]
    cpu_s = tree_cpu_s(service.pid) - used_s
    for writer in writers:
        writer.close()
    last_s = max(0.0, max(moments, default=began_s) - began_s)
    each_kb = (with_mb - before_mb) * MEGABYTE / 1_000 / count
    return [
        *(f"{count:,}", f"{before_mb:.0f} MB", f"{with_mb:.0f} MB", f"{each_kb:.1f} kB", f"{idle:.1%} of a core"),
        *(f"{len(moments):,}", f"{last_s:.1f} s", f"{cpu_s / count * 1e6:,.0f} µs each"),
    ], len(moments)


async def _opened(service: Service, number: int) -> Followed:
    """Opens the checkout of a shop."""
    key = service.keys[number]
    body = msgspec.json.encode({**CHECKOUT, "order_id": f"shop-{number}"})
    request = _request("POST", "/gateway/api/checkouts", key, body)
    answer = msgspec.json.decode((await _asked(service.port, request)).partition(b"\r\n\r\n")[2])
    checkout = answer["data"]
    address = checkout["url"].partition(str(service.port))[2]
    return Followed(address, _request("GET", f"/gateway/api/events/stream?subject=checkout:{checkout['id']}", key))


async def _follow(port: int, checkout: Followed) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(programs.HOST, port, limit=4_096)
    writer.write(checkout.request)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise programs.ProgramError(f"a stream was answered with {head + await reader.read(500)!r}")
    return reader, writer


async def _told(stream: asyncio.StreamReader) -> float | None:
    """Gives when the event came; None where it doesn't in time."""
    with contextlib.suppress(TimeoutError, asyncio.IncompleteReadError):
        await asyncio.wait_for(stream.readuntil(EVENT), TOLD_S_MAX)
        return time.monotonic()
    return None


async def _asked(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(programs.HOST, port)
    writer.write(request.replace(b"Host:", b"Connection: close\r\nHost:"))
    answer = await reader.read()
    writer.close()
    if b"HTTP/1.1 2" not in answer[:12]:
        raise programs.ProgramError(f"{request!r} was answered with {answer!r}")
    return answer


def _request(method: str, path: str, key: str | None = None, body: bytes = b"") -> bytes:
    head = [f"{method} {path} HTTP/1.1", f"Host: {programs.HOST}", f"Content-Length: {len(body)}"]
    head += ["Content-Type: application/json"] if body else []
    head += [f"Authorization: Bearer {key}"] if key else []
    return "\r\n".join([*head, "", ""]).encode() + body


if __name__ == "__main__":
    sys.exit(main())
