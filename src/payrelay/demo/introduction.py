"""What the demo prints: where everything is, a key, and a call to copy for each operation."""

import json
import shlex

import msgspec
from rich.text import Text

from payrelay.cli.terminal.pages import Page
from payrelay.demo.parts import ACCOUNT, LOG, DemoAddresses
from payrelay.demo.reach import code_of, is_this_machines_usual
from payrelay.demo.standing import StandingDemo
from payrelay_simulator import DemoWorld


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A call to copy; ``once`` is its Idempotency-Key, where it changes something."""

    title: str
    method: str
    path: str
    body: dict[str, object] | None = None
    once: str | None = None


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


def curl(sample: Sample, address: str) -> str:
    """Writes a call as it is typed, with the key in the shell's ``$KEY``; every quote is the shell's."""
    method = "" if sample.method == "GET" else f"-X {sample.method} "
    # The service's answers end without a newline, which a terminal wants before its next prompt.
    parts = [f"curl -w '\\n' {method}{address}/{ACCOUNT}/api{sample.path}", '-H "Authorization: Bearer $KEY"']
    if sample.once is not None:
        parts.append(f"-H 'Idempotency-Key: {sample.once}'")
    if sample.body is not None:
        parts.append("-H 'Content-Type: application/json'")
        parts.append(f"-d {shlex.quote(json.dumps(sample.body))}")
    return " \\\n  ".join(parts)


def _show_code(page: Page, addresses: DemoAddresses) -> None:
    """Shows a phone the way, and says who else has it."""
    address = addresses.shop_address or addresses.service
    page.write_line(["", f"A phone in the same network opens {address}, by this code:", ""])
    # Light on dark whatever the terminal's colours are: not every phone reads the opposite.
    for line in code_of(address):
        page.write_line(Text.assemble("  ", (line, "bright_white on black")))
    page.write_line(["", "Whoever is in this network can use all of it, the simulator's controls included."])


def introduce(
    page: Page, addresses: DemoAddresses, gateway_address: str, standing: StandingDemo, *, is_kept: bool
) -> None:
    """Prints what a visitor needs. What is to be copied stands without frame, colour or line breaks of our own."""
    key, world = standing.issued.key, standing.world
    page.rule(Text("Payrelay demo", style="bold"))
    address = addresses.service
    shop = () if addresses.shop_address is None else (("shop", f"{addresses.shop_address} (open it in a browser)"),)
    for name, text in (
        *shop,
        ("service", address),
        ("docs", f"{address}/docs"),
        ("gateway", f"{gateway_address} (a simulator; what really happened: {gateway_address}/_sim/)"),
        ("key", key),
        ("log", str(LOG)),
    ):
        page.write_line(Text.assemble((f"{name:>8}", "bold"), "  ", text))
    if not is_this_machines_usual(addresses.reached_at):
        _show_code(page, addresses)
    page.write_line(
        ["", "Copy the key into another terminal, and then these calls, in any order:", "", f"KEY={key}", ""]
    )
    for sample in samples(world):
        page.write_line(Text(f"# {sample.title}", style="bold cyan"))
        page.write_line([*curl(sample, address).split("\n"), ""])
    stays = "stays for the next start with --keep" if is_kept else "begins anew at each start"
    page.write_line(f"The data in .payrelay/ {stays}. Ctrl-C ends the demo.")
    page.file.flush()
