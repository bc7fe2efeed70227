"""The gateway simulator as a process of its own, and its control API."""

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlencode

from tests.scenarios.http_client import encode
from tests.scenarios.program import surroundings

from payrelay_simulator import DEFAULT_MERCHANT

CONTROL_TIMEOUT_S: Final = 30.0
SWITCHES: Final = {
    "rate_limit_calls": 0,
    "installments": "calendar",
    "notification_retries": 20,
    "notification_retry_interval_s": 1.0,
}
"""No budget (ours is what is tried, and it has its own tests), and no installments that come by themselves; what is
notified is repeated until it is answered."""
CARD: Final = {
    "cardHolderName": "S Perera",
    "cardNo": "4916217501611292",
    "cardExpiry": "12/29",
    "cardSecureId": "123",
}

Json = dict[str, Any]


class Gateway:
    """A simulator that listens at a port."""

    def __init__(self, port: int) -> None:
        self._port = port

    @property
    def account(self) -> dict[str, str]:
        """The settings of an account at it."""
        members = {
            "BASE_URL": f"http://127.0.0.1:{self._port}",
            "APP_ID": DEFAULT_MERCHANT.app_id,
            "APP_SECRET": DEFAULT_MERCHANT.app_secret,
            "MERCHANT_ID": DEFAULT_MERCHANT.merchant_id,
            "MERCHANT_SECRET": DEFAULT_MERCHANT.merchant_secret,
            "SIGNS_ELSEWHERE": "false",
        }
        return {f"PAYRELAY_GATEWAYS__GATEWAY__{name}": value for name, value in members.items()}

    def reset(self) -> None:
        """Begins anew, with an empty world."""
        self._ask("POST", "reset", {})
        self._ask("DELETE", "faults")
        self._ask("POST", "switches", SWITCHES)

    def plant(self, **rows: list[Json]) -> Json:
        """Plants records; gives their identifiers."""
        return self._ask("POST", "seed_data", rows)

    def fail_once(self, fault: str, endpoint: str) -> None:
        """Lets the next call of an endpoint fail in this way."""
        self._ask("POST", "faults", {"script": [{"fault": fault, "match": {"endpoint": endpoint}}]})

    def lose_notification(self) -> None:
        """Lets the next notification never be sent."""
        self._ask("POST", "faults", {"notifications": [{"fault": "lost"}]})

    def charge_back(self, payment_id: int) -> None:
        """Takes a payment back, and notifies of it."""
        self._ask("POST", "chargebacks", {"payment_id": payment_id})

    def notifications(self) -> list[Json]:
        """What was told, and is still to be told, to whoever asked for it."""
        return self._all("notifications", "notifications")

    def pay(self, page: str, fields: Mapping[str, str]) -> None:
        """Brings a form to a page, as a browser does, and pays there with a good card."""
        visit = self._post(f"/pay/{page}", fields)
        self._post(f"{visit}/pay", CARD)

    def _post(self, path: str, fields: Mapping[str, str]) -> str:
        """Posts a form; gives where it leads."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=CONTROL_TIMEOUT_S)
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Referer": "http://shop.example/"}
        try:
            connection.request("POST", path, urlencode(fields), headers)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        assert response.status == http.HTTPStatus.SEE_OTHER, text
        return str(response.headers["Location"])

    def ledger(self) -> list[Json]:
        """What really happened to the money."""
        return self._all("ledger", "entries")

    def calls(self) -> list[Json]:
        """The calls that arrived."""
        return self._all("calls", "calls")

    def arrived(self) -> int:
        """How many calls have arrived, those that are not dealt with yet among them."""
        total: int = self._ask("GET", "calls?count=1")["total"]
        return total

    def _all(self, path: str, member: str) -> list[Json]:
        entries: list[Json] = []
        while page := self._ask("GET", f"{path}?after={len(entries)}")[member]:
            entries += page
        return entries

    def _ask(self, method: str, path: str, body: object = None) -> Json:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=CONTROL_TIMEOUT_S)
        try:
            connection.request(method, f"/_sim/{path}", None if body is None else encode(body))
            response = connection.getresponse()
            document = json.loads(response.read())
        finally:
            connection.close()
        assert response.status == http.HTTPStatus.OK, document
        assert isinstance(document, dict)
        return document


@contextmanager
def simulating() -> Iterator[Gateway]:
    """Runs a simulator while the context is open."""
    command = [sys.executable, "-m", "payrelay_simulator", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=surroundings({}), text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            assert found is not None, line
            gateway = Gateway(int(found[1]))
            gateway.reset()
            yield gateway
        finally:
            process.terminate()
