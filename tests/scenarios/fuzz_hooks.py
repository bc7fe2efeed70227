"""What the fuzzer can't read from the document: how amounts are written, and that a key belongs to one request only."""

import re
import uuid
from typing import Any

import schemathesis

KEY = "Idempotency-Key"
GOOD_KEY = re.compile(r"[!#-~][!-~]{0,254}")
AMOUNT_MAX = 999999999999.99
AMOUNTS = ("amount", "unit_amount")


@schemathesis.hook
def before_call(_context: schemathesis.HookContext, case: schemathesis.Case[Any], _arguments: dict[str, Any]) -> None:
    """Gives each request with a good key a fresh one, and writes numbers as the document says in words."""
    value = case.headers.get(KEY) if case.headers else None
    if value is not None and GOOD_KEY.fullmatch(str(value)):
        case.headers[KEY] = str(uuid.uuid4())
    body = written_out(case.body)
    if repr(body) != repr(case.body):  # schemathesis judges a body anew that was set, also to itself
        case.body = body


def written_out(value: Any, name: str = "") -> Any:  # noqa: ANN401 - any JSON value
    """The same body: amounts with two decimals (`x-decimals-max`), ids without a fraction; wrong ones stay wrong."""
    if isinstance(value, dict):
        return {member: written_out(entry, member) for member, entry in value.items()}
    if isinstance(value, list):
        return [written_out(entry, name) for entry in value]
    if isinstance(value, float) and name in AMOUNTS and 0 < value <= AMOUNT_MAX:
        return max(round(value, 2), 0.01)
    if isinstance(value, float) and name in {"payment_id", "quantity"} and value.is_integer():
        return int(value)
    return value
