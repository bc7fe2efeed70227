"""What the stories share: bodies as the interface shows them, and the shape that every answer has."""

from dataclasses import dataclass
from typing import Any

from tests.draws import drawn_uuid
from tests.scenarios.gateway_double import GatewayDouble
from tests.scenarios.http_client import Client, Raw, Reply
from tests.scenarios.program import Program, account

# Many, so that tests whose gateway fails can each have another one: one that fails again and again is left alone.
ACCOUNTS = ("gateway", "second", "third", "fourth", *(f"spare{number}" for number in range(16)))
CUSTOMER_TOKEN = "59AFEE022CC69CA39D325E1B59130862"
STATUS_OF = {200: 1, 202: 0, 401: -2, 403: -2}
RETRY_ADVICE = {"never", "same_key", "after"}
ERROR_MEMBERS = {"code", "retry", "request_id", "operation_id", "checkout_id", "fields"}


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A running service, the gateway behind it and a caller with the default scopes."""

    program: Program
    gateway: GatewayDouble
    client: Client

    def another(self, *options: str, account: str = "gateway") -> Client:
        """A caller who is another principal."""
        return self.program.client(self.program.new_key(fresh("principal"), *options), account)


def settings_for(gateway: GatewayDouble) -> dict[str, str]:
    """Accounts that are patient, one that waits a second only, and one whose gateway isn't there."""
    settings: dict[str, str] = {}
    for name in ACCOUNTS:
        settings |= account(name, gateway.base_url)
    return settings | account("hasty", gateway.base_url, TIMEOUT_S="1")


def fresh(what: str) -> str:
    """A name that no other test uses."""
    return f"{what}-{drawn_uuid().hex}"


def charge_body(order_id: object = None, /, **changes: object) -> dict[str, object]:
    """A charge with the required members only, on an order of its own."""
    return {
        "type": "PAYMENT",
        "order_id": order_id or fresh("order"),
        "items": "Taxi Hire 123",
        "currency": "LKR",
        "amount": Raw(text="345.67"),
        "customer_token": CUSTOMER_TOKEN,
    } | changes


def capture_body(token: object = None, /, **changes: object) -> dict[str, object]:
    """A capture of a hold of its own."""
    return {
        "authorization_token": token or str(drawn_uuid()),
        "amount": Raw(text="80.00"),
        "deduction_details": "Item1 is out of stock",
    } | changes


def refund_body(payment_id: object = None, /, **changes: object) -> dict[str, object]:
    """A whole refund of a payment of its own."""
    return {"payment_id": payment_id or fresh_number(), "description": "Item is out of stock"} | changes


def fresh_number() -> str:
    """A payment's or subscription's number that no other test uses."""
    return str(320_000_000_000 + drawn_uuid().int % 10**11)


def assert_envelope(reply: Reply) -> None:
    """The answer has the envelope, the status that follows from its HTTP status, and an error to act on."""
    body = reply.json
    is_plain = reply.status == 200
    assert list(body)[:3] == ["status", "msg", "data"], str(reply)
    members = set(body) - ({"next_cursor"} if is_plain else set())  # where a list goes on
    assert members == {"status", "msg", "data"} | (set() if is_plain else {"error"}), str(reply)
    assert body["status"] == STATUS_OF.get(reply.status, -1), str(reply)
    assert isinstance(body["msg"], str), str(reply)
    assert body["msg"], str(reply)
    assert (reply.header("content-type") or "").startswith("application/json"), str(reply)
    if not is_plain:
        assert_error(reply.error)


def assert_error(error: dict[str, Any]) -> None:
    """The error names what happened and what to do, with members that apply."""
    assert set(error) <= ERROR_MEMBERS, error
    assert error["retry"] in RETRY_ADVICE, error
    assert isinstance(error["code"], str), error
    assert isinstance(error["request_id"], str), error
    assert error["request_id"], error
    for wrong in error.get("fields", []):
        assert set(wrong) == {"path", "msg"}, error


def assert_refused(reply: Reply, status: int, code: str) -> None:
    """The answer is this error, in the envelope."""
    assert (reply.status, reply.code) == (status, code), str(reply)
    assert_envelope(reply)


def operation_of(client: Client, reply: Reply) -> dict[str, Any]:
    """The operation that an unsettled answer points to, read by its Location."""
    location = reply.header("location")
    assert location, str(reply)
    read = client.send("GET", location)
    assert read.status == 200, str(read)
    data = read.json["data"]
    assert isinstance(data, dict)
    return data


def state_of(client: Client, key: str) -> str:
    """The state of the newest operation with the key."""
    reply = client.get(f"operations/by-key/{key}")
    assert reply.status == 200, str(reply)
    return str(reply.json["data"]["state"])
