"""Lets the real service run under steady charges, and tells whether its memory grows.

    python bench/soak.py [--minutes 60] [--rate 25]

The service runs over an embedded database and the simulated gateway, each in a process of its own. Its PSS is read each
ten seconds. The slope is that of a straight line through the samples after the first fifth, when caches have filled.
"""

import argparse
import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp

import programs
from payrelay_simulator.demo import CUSTOMER_TOKEN
from payrelay_simulator.simulator import DEFAULT_MERCHANT

EVERY_S: Final = 10.0
WARM_SHARE: Final = 0.2
CLIENTS: Final = 8
PAYRELAY: Final = str(Path(sys.executable).with_name("payrelay"))


def main() -> None:
    """Runs, and prints each sample and the slope."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=float, default=25, help="charges a second")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        soak_in(Path(name), wanted.minutes * 60, wanted.rate)


class Soak(NamedTuple):
    """The running programs."""

    pid: int
    port: int
    gateway_port: int


def soak_in(folder: Path, duration_s: float, rate: float) -> None:
    """Starts both programs in a folder, and ends them again."""
    pids: dict[str, int] = {}
    gateway_port, port = programs.free_port(), programs.free_port()
    environment = {
        **os.environ,
        "PAYRELAY_DATABASE_URL": f"sqlite:///{folder / 'payrelay.db'}",
        "PAYRELAY_GATEWAYS__GATEWAY__APP_ID": DEFAULT_MERCHANT.app_id,
        "PAYRELAY_GATEWAYS__GATEWAY__APP_SECRET": DEFAULT_MERCHANT.app_secret,
        "PAYRELAY_GATEWAYS__GATEWAY__BASE_URL": f"http://127.0.0.1:{gateway_port}",
        "PAYRELAY_GATEWAYS__GATEWAY__RATE_LIMIT": "off",
    }
    with (folder / "log").open("wb") as log, contextlib.ExitStack() as stack:
        key = made_key(environment, folder)
        for name, arguments in (
            ("simulator", ["simulate", "--port", str(gateway_port)]),
            ("service", ["serve", "--port", str(port)]),
        ):
            started = subprocess.Popen([PAYRELAY, *arguments], env=environment, stdout=log, stderr=log, cwd=folder)
            stack.callback(ended, started)
            pids[name] = started.pid
        try:
            asyncio.run(soaked(Soak(pids["service"], port, gateway_port), key, duration_s, rate))
        except SystemExit:
            print((folder / "log").read_text(errors="replace")[-4000:], file=sys.stderr)
            raise


def ended(process: "subprocess.Popen[bytes]") -> None:
    """Ends a process, and waits until it has."""
    process.terminate()
    process.wait(timeout=30)


async def soaked(soak: Soak, key: str, duration_s: float, rate: float) -> None:
    """Sends charges at the rate, and samples the memory of the service."""
    await without_limit(f"http://127.0.0.1:{soak.gateway_port}/_sim/switches")
    await until_ready(f"http://127.0.0.1:{soak.port}/health/ready")
    await sample_while_charging(soak.pid, f"http://127.0.0.1:{soak.port}", key, duration_s, rate)


async def without_limit(url: str) -> None:
    """Takes the simulated gateway's limit of calls away, once it is there."""
    async with aiohttp.ClientSession() as session:
        for _ in range(60):
            with contextlib.suppress(aiohttp.ClientConnectorError):
                async with session.post(url, json={"rate_limit_calls": 0}) as answer:
                    answer.raise_for_status()
                    return
            await asyncio.sleep(0.5)
    raise SystemExit("the simulated gateway doesn't answer")


async def until_ready(url: str) -> None:
    """Waits until the service takes requests."""
    async with aiohttp.ClientSession() as session:
        for _ in range(60):
            with contextlib.suppress(aiohttp.ClientConnectorError):
                async with session.get(url) as answer:
                    if answer.ok:
                        return
            await asyncio.sleep(0.5)
    raise SystemExit("the service doesn't get ready")


def made_key(environment: dict[str, str], folder: Path) -> str:
    """Makes the database, and a key in it."""
    command = [PAYRELAY, "keys", "create", "--name", "soak"]
    made = subprocess.run(command, env=environment, cwd=folder, capture_output=True, check=False)
    if made.returncode:
        raise SystemExit(f"no key was made: {made.stderr.decode()}")
    return made.stdout.decode().split()[-1]


async def sample_while_charging(pid: int, url: str, key: str, duration_s: float, rate: float) -> None:
    """Charges at the rate, prints the PSS each ten seconds, and the slope in the end."""
    began_s, samples, counts = time.monotonic(), list[tuple[float, float]](), dict[int, int]()
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session:
        clients = [
            asyncio.create_task(charge_on(session, url, CLIENTS / rate, number, counts)) for number in range(CLIENTS)
        ]
        while time.monotonic() - began_s < duration_s:
            await asyncio.sleep(EVERY_S)
            samples.append((time.monotonic() - began_s, pss_mb(pid)))
            print(f"{samples[-1][0]:6.0f} s  {samples[-1][1]:7.1f} MB  {counts}", flush=True)
        for client in clients:
            client.cancel()
    warm = samples[int(len(samples) * WARM_SHARE) :]
    print(f"slope: {slope(warm) * 60:+.3f} MB a minute over {(warm[-1][0] - warm[0][0]) / 60:.1f} minutes; {counts}")


async def charge_on(
    session: aiohttp.ClientSession, url: str, every_s: float, number: int, counts: dict[int, int]
) -> None:
    """Makes a charge of a new order again and again."""
    each = 0
    while True:
        each += 1
        name = f"S-{number}-{each}"
        body = {
            "type": "PAYMENT",
            "order_id": name,
            "items": "Soap",
            "currency": "LKR",
            "amount": 100.0,
            "customer_token": CUSTOMER_TOKEN,
        }
        began_s = time.monotonic()
        async with session.post(
            f"{url}/gateway/api/payments/charge", json=body, headers={"Idempotency-Key": name}
        ) as answer:
            counts[answer.status] = counts.get(answer.status, 0) + 1
            await answer.read()
        await asyncio.sleep(max(0.0, every_s - (time.monotonic() - began_s)))


def pss_mb(pid: int) -> float:
    """Reads the proportional set size of a process in MB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("the kernel tells no PSS")


def slope(samples: list[tuple[float, float]]) -> float:
    """Gives the slope of the straight line through samples, by least squares."""
    mean_x = sum(x for x, _ in samples) / len(samples)
    mean_y = sum(y for _, y in samples) / len(samples)
    spread = sum((x - mean_x) ** 2 for x, _ in samples)
    return sum((x - mean_x) * (y - mean_y) for x, y in samples) / spread if spread else 0.0


if __name__ == "__main__":
    main()
