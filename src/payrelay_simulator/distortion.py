"""How faults change an answer that the gateway would have given."""

import json
from collections.abc import Callable, Mapping

import msgspec

from payrelay_simulator.faults import Arguments, Fault
from payrelay_simulator.reply import MARK, Reply, failure
from payrelay_simulator.switches import Switches

BAD_GATEWAY_PAGE = """<html>
<head><title>502 Bad Gateway</title></head>
<body><center><h1>502 Bad Gateway</h1></center></body>
</html>
"""

# The members of an answer that hold an amount.
AMOUNT_MEMBERS = ("amount", "captured_amount")


def budget_reply(answer: str) -> Reply | None:
    """Return what a call beyond the budget is told; None: the connection is dropped."""
    if answer == "drop":
        return None
    return Reply(http_status=int(answer), text="Too many requests", media_type="text/plain;charset=UTF-8")


def answer_instead(fault: Fault, switches: Switches) -> Reply | None:
    """Return what is answered in the operation's place; None where nothing is."""
    if fault.name == "domain_denied":
        http_status = fault.args.http_status or switches.domain_denied_http
        return _envelope(http_status, -1, "Access denied for the domain")
    if fault.name == "authentication_error":
        return failure("Authentication error", status=-2)
    if fault.name == "budget_block":
        return budget_reply(fault.args.answer or switches.rate_limit_answer)
    if fault.name == "html_502_before":
        return _bad_gateway()
    if fault.name == "envelope_500_before":
        return _internal()
    return None


def distort(reply: Reply, fault: Fault) -> Reply:
    """Return the answer as the fault leaves it; most faults of the wire leave it as it is."""
    change = CHANGES.get(fault.name)
    return reply if change is None else change(reply, fault.args)


def _envelope(http_status: int, status: int, msg: str) -> Reply:
    return Reply(http_status=http_status, document={"status": status, "msg": msg, "data": None})


def _bad_gateway() -> Reply:
    return Reply(http_status=502, text=BAD_GATEWAY_PAGE, media_type="text/html")


def _internal() -> Reply:
    return _envelope(500, -1, MARK + "internal error")


def _truncated(reply: Reply, _: Arguments) -> Reply:
    body = reply.encoded().decode()
    return msgspec.structs.replace(reply, document=None, text=body[: len(body) * 2 // 3])


def _wrong_shape(reply: Reply, args: Arguments) -> Reply:
    return msgspec.structs.replace(reply, document=None, text=json.dumps(args.body))


def _enormous(reply: Reply, args: Arguments) -> Reply:
    # White space before the end keeps it JSON of the right shape, which only a limit on the size can refuse.
    body = reply.encoded().decode()
    return msgspec.structs.replace(reply, document=None, text=body[:-1] + " " * args.bytes + body[-1:])


def _other_amount(reply: Reply, args: Arguments) -> Reply:
    return _with_members(reply, dict.fromkeys(AMOUNT_MEMBERS, args.amount))


def _other_order(reply: Reply, args: Arguments) -> Reply:
    return _with_members(reply, {"order_id": args.order_id})


def _other_currency(reply: Reply, args: Arguments) -> Reply:
    return _with_members(reply, {"currency": args.currency})


CHANGES: Mapping[str, Callable[[Reply, Arguments], Reply]] = {
    "html_502_after": lambda _reply, _args: _bad_gateway(),
    "envelope_500_after": lambda _reply, _args: _internal(),
    "truncated_json": _truncated,
    "wrong_shape": _wrong_shape,
    "enormous_body": _enormous,
    "other_amount": _other_amount,
    "other_order": _other_order,
    "other_currency": _other_currency,
}


def _with_members(reply: Reply, changed: Mapping[str, object]) -> Reply:
    """Put other values in the place of members that are there, in the data or in each row of it."""
    document = reply.document
    if not isinstance(document, dict):
        return reply
    data = document.get("data")
    if isinstance(data, list):
        data = [_changed(row, changed) for row in data]
    return msgspec.structs.replace(reply, document={**document, "data": _changed(data, changed)})


def _changed(value: object, changed: Mapping[str, object]) -> object:
    if not isinstance(value, dict):
        return value
    return {name: changed.get(name, member) for name, member in value.items()}
