"""The demo: a gateway simulator and the service in one process, a key, and a call to copy for each operation."""

import asyncio
import errno
import json
import shlex
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

import payrelay_simulator
from payrelay.api import serving
from payrelay.api.request_log import json_log
from payrelay.app import Service, running
from payrelay.clock import Clock
from payrelay.core.secret import Secret
from payrelay.errors import SettingsError
from payrelay.operations.issue_key import Wanted, issue_key
from payrelay.server import address_of, stopped_by_signals
from payrelay.settings import GatewaySettings, Settings
from payrelay.store.owner import OwnerLock
from payrelay_simulator import DemoWorld

FOLDER: Final = Path(".payrelay")
"""Below the working directory; nothing is written elsewhere."""
PORTS_TRIED: Final = 20
"""From the wanted port on; who has more of them taken names one."""
DRAIN_S: Final = 1.0
"""Nothing in a demo is worth waiting for."""
ACCOUNT: Final = "gateway"

_DATABASE: Final = FOLDER / "demo.db"
_LOG: Final = FOLDER / "demo.log"


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A call to copy; ``once`` is its Idempotency-Key, where it changes something."""

    title: str
    method: str
    path: str
    body: dict[str, object] | None = None
    once: str | None = None


async def run_demo(host: str, port: int) -> None:
    """Runs until SIGTERM or SIGINT; raises SettingsError or StoreUnusable where it can't start."""
    console = Console(highlight=False)
    FOLDER.mkdir(exist_ok=True)
    _start_afresh()
    with stopped_by_signals() as stop, _LOG.open("wb") as log_file:
        simulator = payrelay_simulator.Simulator()
        world = payrelay_simulator.demo_world(simulator)
        async with payrelay_simulator.serve(simulator) as simulated:
            settings = _settings(simulated)
            async with running(settings, clock=Clock(), log=json_log(log_file, Clock())) as service:
                issued = await issue_key(service.credentials, Clock(), Wanted(principal="demo", environment="sandbox"))

                def show(bound_host: str, bound_port: int) -> None:
                    address = address_of(bound_host, bound_port)
                    _introduce(console, address, simulated.base_url, issued.key, world)

                await _serve_nearby(service, host, port, stop, show)
    console.print("\nThe demo has ended.")


def samples(world: DemoWorld) -> tuple[Sample, ...]:
    """Gives a call for each of the nine operations; they work in this order and in any other, and more than once."""
    charge = {
        "type": "PAYMENT",
        "order_id": "DemoOrder3",
        "items": "Taxi Hire 124",
        "currency": "LKR",
        "amount": 345.67,
        "customer_token": world.customer_token,
    }
    capture = {"authorization_token": world.authorization_token, "amount": 80, "description": "Toy Car, without box"}
    refund = {"payment_id": world.paid_payment_id, "description": "Taxi did not come"}
    active, failed = world.active_subscription_id, world.failed_subscription_id
    return (
        Sample(title="Retrieve the payments of an order", method="GET", path=f"/payments/{world.paid_order_id}"),
        Sample(title="Charge a customer", method="POST", path="/payments/charge", body=charge, once="demo-charge-1"),
        Sample(
            title="Capture a part of what is held",
            method="POST",
            path="/payments/capture",
            body=capture,
            once="demo-capture-1",
        ),
        Sample(title="Refund a payment", method="POST", path="/payments/refund", body=refund, once="demo-refund-1"),
        Sample(title="List all subscriptions", method="GET", path="/subscriptions"),
        Sample(title="Retrieve a subscription", method="GET", path=f"/subscriptions/{active}"),
        Sample(title="List the payments of a subscription", method="GET", path=f"/subscriptions/{active}/payments"),
        Sample(
            title="Retry a subscription whose installment failed",
            method="POST",
            path=f"/subscriptions/{failed}/retry",
            once="demo-retry-1",
        ),
        Sample(title="Cancel a subscription", method="DELETE", path=f"/subscriptions/{active}", once="demo-cancel-1"),
    )


def curl(sample: Sample, address: str, key: str) -> str:
    """Writes a call as it is typed; every quote is the shell's."""
    method = "" if sample.method == "GET" else f"-X {sample.method} "
    # The service's answers end without a newline, which a terminal wants before its next prompt.
    parts = [f"curl -w '\\n' {method}{address}/{ACCOUNT}/api{sample.path}", f"-H 'Authorization: Bearer {key}'"]
    if sample.once is not None:
        parts.append(f"-H 'Idempotency-Key: {sample.once}'")
    if sample.body is not None:
        parts.append("-H 'Content-Type: application/json'")
        parts.append(f"-d {shlex.quote(json.dumps(sample.body))}")
    return " \\\n  ".join(parts)


def _start_afresh() -> None:
    """Removes what the last demo left: the simulator forgets its world, so what is known of it would be wrong.

    Raises StoreUnusable where another demo is running here.
    """
    lock = OwnerLock(_DATABASE.with_name(f"{_DATABASE.name}.lock"), str(_DATABASE))
    try:
        for suffix in ("", "-wal", "-shm", ".key"):
            _DATABASE.with_name(f"{_DATABASE.name}{suffix}").unlink(missing_ok=True)
    finally:
        lock.release()


def _settings(simulated: payrelay_simulator.Running) -> Settings:
    merchant = simulated.simulator.merchant
    gateway = GatewaySettings(
        base_url=simulated.base_url,
        app_id=merchant.app_id,
        app_secret=Secret(merchant.app_secret),
        merchant_id=merchant.merchant_id,
        merchant_secret=Secret(merchant.merchant_secret),
    )
    return Settings(database_url=Secret(f"sqlite:///{_DATABASE}"), gateways={ACCOUNT: gateway})


async def _serve_nearby(service: Service, host: str, port: int, stop: asyncio.Event, show: serving.Started) -> None:
    """Serves on the wanted port, or on the next that is free."""
    for candidate in range(port, port + PORTS_TRIED):
        try:
            await serving.serve(service.api, host, candidate, stop=stop, on_started=show, drain_s=DRAIN_S)
        except SettingsError as error:
            is_taken = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EADDRINUSE
            if not is_taken or candidate == port + PORTS_TRIED - 1:
                raise
        else:
            return


def _introduce(console: Console, address: str, gateway_address: str, key: str, world: DemoWorld) -> None:
    """Prints what a visitor needs. What is to be copied stands without frame, colour or breaks of our own."""
    console.rule("[bold]Payrelay demo")
    for name, text in (
        ("service", address),
        ("docs", f"{address}/docs"),
        ("gateway", f"{gateway_address} (a simulator; what really happened: {gateway_address}/_sim/)"),
        ("key", key),
        ("log", str(_LOG)),
    ):
        console.print(f"[bold]{name:>8}[/]  ", end="")
        _print_plain(console, text)
    console.print("\nCopy these calls into another terminal, in any order:\n")
    for sample in samples(world):
        console.print(f"[bold cyan]# {sample.title}[/]")
        _print_plain(console, curl(sample, address, key) + "\n")
    console.print("The data in .payrelay/ begins anew at each start. [bold]Ctrl-C[/] ends the demo.")
    console.file.flush()


def _print_plain(console: Console, text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)
