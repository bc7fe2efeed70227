"""The demo: a gateway simulator and the service in one process, a key, and a call to copy for each operation."""

import asyncio
import json
import shlex
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
from rich.text import Text

import payrelay_simulator
from payrelay.api import serving
from payrelay.api.http.request_log import json_log
from payrelay.app import Service, remove_database, running
from payrelay.app_commands import opened_operators
from payrelay.cli.demo.parts import (
    ACCOUNT,
    DATABASE,
    FOLDER,
    SHOP_HOST,
    DemoAddresses,
    listener_near,
    settings_of,
    write_config,
)
from payrelay.cli.demo.yesterday import DayToReconcile, Past, yesterday
from payrelay.cli.terminal.pages import Page
from payrelay.clock import Clock
from payrelay.flows.access.issue_key import KeyRequest, issue_key
from payrelay.flows.console.demo_operator import DemoOperator, demo_operator
from payrelay.server import stopped_by_signals
from payrelay.settings import Settings, child_environment
from payrelay_simulator import DemoWorld

DRAIN_S: Final = 1.0
"""Nothing in a demo is worth waiting for."""
SHOP_PORT: Final = 8090

_LOG: Final = FOLDER / "demo.log"
_SHOP_LOG: Final = FOLDER / "shop.log"


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A call to copy; ``once`` is its Idempotency-Key, where it changes something."""

    title: str
    method: str
    path: str
    body: dict[str, object] | None = None
    once: str | None = None


async def run_demo(host: str, port: int, shop: Path | None = None) -> None:
    """Runs until SIGTERM or SIGINT, with a shop beside it where one is named.

    Raises SettingsError or StoreUnusable where it can't start.
    """
    page = Page()
    FOLDER.mkdir(exist_ok=True)
    # The simulator forgets its world at the end, so that what is known of it would be wrong at the next start.
    remove_database(DATABASE)
    listener = listener_near(host, port)
    with listener_near(SHOP_HOST, SHOP_PORT) as shop_listener:
        shop_port = shop_listener.getsockname()[1]
    addresses = DemoAddresses(host=host, port=listener.getsockname()[1], shop=shop, shop_port=shop_port)
    with stopped_by_signals() as signals, _LOG.open("wb") as log_file:
        stop = signals.asked
        past = Past.begun(Clock())
        simulator = payrelay_simulator.Simulator(clock=past.of_gateway)
        async with payrelay_simulator.serve(simulator) as simulated:
            settings = settings_of(simulated, addresses)
            write_config(simulated)
            day = await yesterday(settings, simulator, past, log=json_log(log_file, past.of_service))
            past.end()
            world = payrelay_simulator.demo_world(simulator)
            async with running(settings, clock=Clock(), log=json_log(log_file, Clock())) as service:
                issued = await issue_key(
                    service.credentials, Clock(), KeyRequest(principal="demo", environment="sandbox")
                )
                operator = await _operator(settings)
                async with _serving(service, addresses, listener, stop), _shop(addresses, issued.key):
                    _introduce(page, addresses, simulated.base_url, issued.key, world, day=day, operator=operator)
                    await stop.wait()
    page.write_line("")
    page.write_line("The demo has ended.")


async def _operator(settings: Settings) -> DemoOperator | None:
    """Adds somebody who can sign in to the console; None where there is no console."""
    if not settings.console.enabled:
        return None
    async with opened_operators(settings, Clock()) as parts:
        return await demo_operator(parts)


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
            title="Capture a part of an authorization",
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


@asynccontextmanager
async def _serving(
    service: Service, addresses: DemoAddresses, listener: socket.socket, stop: asyncio.Event
) -> AsyncIterator[None]:
    """Serves as long as the context is open, which opens when connections are taken."""
    has_started = asyncio.Event()
    work = asyncio.create_task(
        serving.serve(
            service.api,
            addresses.host,
            addresses.port,
            stop=stop,
            on_started=lambda _host, _port: has_started.set(),
            drain_s=DRAIN_S,
            listener=listener,
        )
    )
    starting = asyncio.create_task(has_started.wait())
    await asyncio.wait({work, starting}, return_when=asyncio.FIRST_COMPLETED)
    if not has_started.is_set():
        starting.cancel()
        await work  # it says why
    try:
        yield
    finally:
        stop.set()
        await work


@asynccontextmanager
async def _shop(addresses: DemoAddresses, key: str) -> AsyncIterator[None]:
    """Runs the shop as long as the context is open; what it says goes to a file."""
    if addresses.shop is None:
        yield
        return
    environment = child_environment() | {
        "PAYRELAY": f"{addresses.service}/{ACCOUNT}/api",
        "PAYRELAY_KEY": key,
        "PORT": str(addresses.shop_port),
    }
    with _SHOP_LOG.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(addresses.shop), env=environment, stdout=log, stderr=log
        )
        try:
            yield
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


def _introduce(
    page: Page,
    addresses: DemoAddresses,
    gateway_address: str,
    key: str,
    world: DemoWorld,
    *,
    day: DayToReconcile,
    operator: DemoOperator | None,
) -> None:
    """Prints what a visitor needs. What is to be copied stands without frame, colour or line breaks of our own."""
    page.rule(Text("Payrelay demo", style="bold"))
    address = addresses.service
    shop = () if addresses.shop_address is None else (("shop", f"{addresses.shop_address} (open it in a browser)"),)
    console: tuple[tuple[str, str], ...] = ()
    if operator is not None:
        console = (
            ("console", f"{address}/console/ (after a payment, find its order there)"),
            ("", f"sign in as {operator.email} with the password {operator.password}"),
        )
    for name, text in (
        *shop,
        ("service", address),
        ("docs", f"{address}/docs"),
        ("gateway", f"{gateway_address} (a simulator; what really happened: {gateway_address}/_sim/)"),
        *console,
        ("key", key),
        ("log", str(_LOG)),
    ):
        page.write_line(Text.assemble((f"{name:>8}", "bold"), "  ", text))
    page.write_line(["", "Copy these calls into another terminal, in any order:", ""])
    for sample in samples(world):
        page.write_line(Text(f"# {sample.title}", style="bold cyan"))
        page.write_line([*curl(sample, address, key).split("\n"), ""])
    page.write_line(Text("# Reconcile yesterday: each kind of difference is in it", style="bold cyan"))
    page.write_line([*day.commands, ""])
    if operator is not None:
        page.write_line([f"Then look at {address}/console/reconciliation/{ACCOUNT}/{day.day}", ""])
    page.write_line("The data in .payrelay/ begins anew at each start. Ctrl-C ends the demo.")
    page.file.flush()
