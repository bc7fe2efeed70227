"""What customers ask support about, made in a demo: orders of each outcome, and somebody who answers in the console."""

import re
import subprocess
from pathlib import Path
from typing import Any, Final

from tests.scenarios.demo import Demo
from tests.scenarios.http_client import Client, Reply
from tests.scenarios.program import PAYRELAY, surroundings
from tests.scenarios.waiting import until

EMAIL: Final = "demo@shop.example"


def invited(folder: Path) -> str:
    """Adds an administrator to the console of the demo in a folder; gives the path of the invitation."""
    words = ["operators", "add", EMAIL, "--name", "Demo", "--role", "admin", "--reason", "to look around"]
    ran = subprocess.run(
        [PAYRELAY, *words], cwd=folder, env=surroundings({}), capture_output=True, text=True, check=True, timeout=60
    )
    return str(re.findall(r"/console/invitations/\S+", ran.stdout)[0])


def make_orders(demo: Demo) -> None:
    """Makes Tea-1 to Tea-4: paid, refunded in part, answered with another amount, and without an answer."""
    client = Client(port=demo.port, key=demo.key)
    for order_id, fault in (("Tea-3", "other_amount"), ("Tea-4", "cut_before")):
        rule = {"fault": fault, "match": {"endpoint": "charge", "order_id": order_id}, "times": 1}
        demo.control("faults", {"script": [rule]})
        _charge(client, order_id, 640)
    assert _charge(client, "Tea-1", 950).status == 200
    paid = _charge(client, "Tea-2", 2000)
    given_back = {"payment_id": str(paid.json["data"]["payment_id"]), "description": "One came broken", "amount": 500}
    assert _sent(client, "payments/refund", given_back).status == 200


def _charge(client: Client, order_id: str, amount: int) -> Reply:
    body = {"type": "PAYMENT", "order_id": order_id, "items": "Ceylon tea", "currency": "LKR", "amount": amount}
    return _sent(client, "payments/charge", {**body, "customer_token": "D3A0" * 8})


def _sent(client: Client, path: str, body: dict[str, Any]) -> Reply:
    """Sends a request once the gateway takes calls: 20 in 10 s."""
    replies: list[Reply] = []

    def is_free() -> bool:
        replies.append(client.post(path, body))
        return replies[-1].code != "gateway_busy"

    until(is_free, "the gateway takes calls again")
    return replies[-1]
