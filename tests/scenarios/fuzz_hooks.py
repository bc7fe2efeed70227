"""What the fuzzer can't read from the document: how amounts are written, and that a key belongs to one request only."""

import re
from random import Random
from typing import Any

import schemathesis

KEY = "Idempotency-Key"
CHANCE = Random(0)  # noqa: S311, each request differs from the others, and each run asks the same
GOOD_KEY = re.compile(r"[!#-~][!-~]{0,254}")
AMOUNT_MAX = 999999999999.99
AMOUNTS = ("amount", "amount_max", "unit_amount", "startup_fee")
FEE_BELOW_0 = re.compile(r"-[0-9]{1,12}\.[0-9]{2}")
LINK = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[!-~]*")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
CURRENCY = re.compile(r"[A-Z]{3}")
PERIOD = re.compile(r"[1-9][0-9]{0,2} (?:Week|Month|Year)")


@schemathesis.hook
def before_call(_context: schemathesis.HookContext, case: schemathesis.Case[Any], _arguments: dict[str, Any]) -> None:
    """Gives each request with a good key a fresh one and an address of its own, and writes numbers as they are meant.

    Who sends many wrong credentials from one address is slowed down, and the fuzzer tries them on every route.
    """
    if case.headers is not None:
        case.headers["X-Forwarded-For"] = f"2001:db8:{CHANCE.getrandbits(16):x}:{CHANCE.getrandbits(16):x}::1"
    value = case.headers.get(KEY) if case.headers else None
    if value is not None and GOOD_KEY.fullmatch(str(value)):
        case.headers[KEY] = f"key-{CHANCE.getrandbits(128):032x}"
    body = written_out(case.body)
    if repr(body) != repr(case.body):  # schemathesis judges a body anew that was set, also to itself
        case.body = body


def fitting(body: dict[str, Any]) -> dict[str, Any]:
    """The same checkout or token with values that fit together and the service's settings; wrong ones stay wrong."""
    changed = dict(body)
    for name in ("return_to", "cancel_to"):
        if isinstance(body.get(name), str) and LINK.fullmatch(body[name]):
            changed[name] = "myshop://done"
    day = body.get("recurring_start_date")
    if isinstance(day, str) and DAY.fullmatch(day) and "00" not in day.split("-"):
        changed["recurring_start_date"] = "2099-12-24"
    if isinstance(body.get("currency"), str) and CURRENCY.fullmatch(body["currency"]):
        changed["currency"] = "LKR"
    if all(isinstance(body.get(name), str) and PERIOD.fullmatch(body[name]) for name in ("recurrence", "duration")):
        changed["duration"] = "Forever"
    return changed


def written_out(value: Any, name: str = "") -> Any:  # noqa: ANN401 - any JSON value
    """The same body: amounts with two decimals (`x-decimals-max`), ids without a fraction; wrong ones stay wrong."""
    if isinstance(value, dict):
        members = {member: written_out(entry, member) for member, entry in value.items()}
        return fitting(members) if "customer" in members or "order_id" in members else members
    if isinstance(value, list):
        return [written_out(entry, name) for entry in value]
    if name == "startup_fee" and isinstance(value, int | float) and -AMOUNT_MAX <= value < 0:
        return written_out(-value, name)  # or nothing may be left to be paid first
    if name == "startup_fee" and isinstance(value, str) and FEE_BELOW_0.fullmatch(value):
        return value[1:]
    if name == "delivery" and value == "":
        return 0  # taken, though the description says so in words only
    if isinstance(value, float) and name in AMOUNTS and 0 < value <= AMOUNT_MAX:
        return max(round(value, 2), 0.01)
    if isinstance(value, float) and name in {"payment_id", "quantity"} and value.is_integer():
        return int(value)
    return value
