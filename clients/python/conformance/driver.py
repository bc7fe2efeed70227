# ruff: noqa: INP001 - a program, not a package
"""Makes one call as a conformance story tells it: a JSON object on standard input, one line of JSON as the answer.

With ``PAYRELAY_DRIVER=async`` the call is made by the client for event loops.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from payrelay_client import (
    AsyncPayrelay,
    Buyer,
    DeliveryAddress,
    Done,
    FileStore,
    ItemEntry,
    Limits,
    PaymentList,
    Payrelay,
    PayrelayError,
    Waiting,
    verify_webhook,
)
from payrelay_client.decoding import plain
from payrelay_client.outcomes import OpenEnd

SETTINGS: Final = {
    "tries": "tries",
    "timeoutS": "timeout_s",
    "totalS": "total_s",
    "waitS": "wait_s",
    "pauseS": "pause_s",
    "pauseMaxS": "pause_max_s",
}
BY_ID: Final = {"retry": "subscription_id", "cancel": "subscription_id"}


class WatchedStore:
    """A store of files that counts what is put, and fails or dies where the story says so."""

    def __init__(self, folder: str, fault: Mapping[str, Any] | None) -> None:
        self._files = FileStore(Path(folder))
        self._fault = fault or {}
        self.puts = 0

    def get(self, name: str) -> str | None:
        """Gives what was put last."""
        return self._files.get(name)

    def put(self, name: str, text: str) -> None:
        """Puts a text, unless this is the put that the story names."""
        self.puts += 1
        fault = self._fault.get("do") if self.puts == self._fault.get("put") else None
        if fault == "fail":
            raise OSError("the disk is full")
        if fault == "kill_before":
            os.kill(os.getpid(), signal.SIGKILL)
        self._files.put(name, text)
        if fault == "kill_after":
            os.kill(os.getpid(), signal.SIGKILL)


def plain_text(value: object) -> object:
    """Writes a Decimal as its text."""
    if isinstance(value, Decimal):
        return format(value, "f")
    raise TypeError(type(value).__name__)


def data_of(value: object) -> object:
    """Gives what a call came to, as the story compares it."""
    if isinstance(value, tuple):
        return [data_of(each) for each in value]
    return plain(value.raw) if hasattr(value, "raw") else value


def arguments_of(step: Mapping[str, Any]) -> dict[str, Any]:
    """Gives the arguments of a call, by the names that the package has for them."""
    given = dict(step.get("with") or {}) | dict(step.get("options") or {})
    if "itemList" in given:
        given["item_list"] = [ItemEntry(**each) for each in given.pop("itemList")]
    if "customer" in given:
        given["customer"] = Buyer(**given["customer"])
    if "delivery" in given:
        given["delivery"] = DeliveryAddress(**given["delivery"])
    return given


def call_of(client: Any, step: Mapping[str, Any]) -> Callable[[], Any]:  # noqa: ANN401 - either client
    """Gives the call that a step asks for."""
    name, given = step["call"], arguments_of(step)
    if name == "charge":
        is_authorization = given.pop("type", "PAYMENT") == "AUTHORIZE"
        return lambda: (client.payments.authorize if is_authorization else client.payments.charge)(**given)
    if name in {"show_checkout", "close_checkout"}:
        given["checkout_id"] = given.pop("id")
    if name in BY_ID:
        subscription_id = given.pop("subscription_id")
        return lambda: getattr(client.subscriptions, name)(subscription_id, **given)
    nouns: dict[str, Callable[..., Any]] = {
        "capture": client.payments.capture,
        "refund": client.payments.refund,
        "void": client.payments.void,
        "open_checkout": client.checkouts.open,
        "issue_client_token": client.client_tokens.issue,
        "payments_of_order": client.payments.of_order,
        "show_order": client.orders.show,
        "show_checkout": client.checkouts.show,
        "close_checkout": client.checkouts.close,
        "show_operation_by_key": client.operations.by_key,
        "follow": client.operations.follow,
        "verify_webhook": verify_webhook,
        "list_operations": client.operations.list,
    }
    return lambda: nouns[name](**given)


def run(step: Mapping[str, Any], settings: Mapping[str, Any]) -> object:
    """Makes the call with the client for threads."""
    with Payrelay(step["address"], **settings) as client:
        made = call_of(client, step)()
        return [each.id for each in made] if isinstance(made, Iterator) else made


async def run_async(step: Mapping[str, Any], settings: Mapping[str, Any]) -> object:
    """Makes the call with the client for event loops."""
    async with AsyncPayrelay(step["address"], **settings) as client:
        made = call_of(client, step)()
        if hasattr(made, "__aiter__"):
            return [each.id async for each in made]
        return await made if asyncio.iscoroutine(made) else made


def told(made: object) -> dict[str, object]:
    """Gives the result of a call as the runner reads it."""
    if isinstance(made, OpenEnd):
        return {
            "result": "open",
            "reason": made.reason,
            "operation_id": made.operation_id,
            "is_with_person": made.is_with_person,
        }
    if isinstance(made, Done):
        members = {"operation_id": made.operation_id, "is_replay": made.is_replay}
        return {"result": "done", "data": data_of(made.data), **members}
    missing = {"missing": list(made.missing)} if isinstance(made, PaymentList) else {}
    return {"result": "done", "data": data_of(made), "operation_id": None, "is_replay": False, **missing}


def main() -> None:
    """Reads the step, makes its call, and tells what came of it."""
    step = json.loads(sys.stdin.read())
    waits: list[dict[str, object]] = []

    def heard(waiting: Waiting) -> None:
        waits.append({"reason": waiting.reason, "seconds": waiting.seconds})

    store = WatchedStore(step["store"], step.get("storeFault")) if step.get("store") else None
    credentials = iter(step["credentials"])

    def credential() -> str:
        given: str | None = next(credentials, None)
        if given is None:
            raise RuntimeError("the shop gives no credential")
        return given

    settings = {
        "credential": step["credentials"][0] if len(step["credentials"]) == 1 else credential,
        "store": store,
        "limits": Limits(**{SETTINGS[name]: value for name, value in step.get("settings", {}).items()}),
        "on_wait": heard,
    }
    is_async = os.environ.get("PAYRELAY_DRIVER") == "async"
    try:
        result = told(asyncio.run(run_async(step, settings)) if is_async else run(step, settings))
    except PayrelayError as error:
        result = {
            "result": "error",
            "type": type(error).__name__,
            "code": error.code,
            "message": error.message,
            "retry_after_s": error.retry_after_s,
            "operation_id": error.operation_id,
        }
    result |= {"puts": store.puts if store else 0, "waits": waits}
    sys.stdout.write(json.dumps(result, default=plain_text) + "\n")


if __name__ == "__main__":
    main()
