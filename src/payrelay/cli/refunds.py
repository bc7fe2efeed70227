"""The command that refunds a payment for an operator, who may insist where the figures refuse a refund."""

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final

import typer

from payrelay.cli.session import operator_from, read_settings, reason_from, session
from payrelay.cli.terminal.declaring import By, Reason, Sure, awaited
from payrelay.cli.terminal.messages import (
    DONE,
    FAULTY,
    REFUSED,
    CommandError,
    is_confirmed,
    not_found,
    require_answerable,
    say,
    show,
)
from payrelay.core.money import AmountError, typed_minor
from payrelay.core.text.operator_text import WordsError, description_of

if TYPE_CHECKING:
    from payrelay.core.answers import Answer
    from payrelay.flows.operators.acting import ActTarget
    from payrelay.flows.relay import Relay

UNDONE: Final = "nothing was refunded"
FINISH_WITHIN_S: Final = 30.0
"""Time for an outcome that the database did not take at once; after that the service finds the operation, as after a
crash."""


@awaited
async def refund_payment(
    payment_id: Annotated[
        str,
        typer.Argument(metavar="ID", help="The gateway's number; ACCOUNT~NUMBER where several accounts have it."),
    ],
    *,
    amount: Annotated[
        str | None, typer.Option(metavar="AMOUNT", help="How much, such as 1,250.50; all that is left where missing.")
    ] = None,
    description: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the gateway's record says of it.")
    ] = None,
    insist: Annotated[
        bool, typer.Option("--insist", help="Refund it although the figures refuse it; the gateway is asked first.")
    ] = False,
    reason: Reason = "",
    by: By = None,
    yes: Sure = False,
) -> int:
    """Refund a payment, or a part of it."""
    from payrelay.flows.operators.refunds.by_command import AskedByCommand, carry_out_refund, prepare_refund
    from payrelay.settings import require_serving

    settings = read_settings()
    require_serving(settings)
    require_answerable(is_sure=yes, undone=UNDONE)
    words = _description_from(description)
    asked = AskedByCommand(_amount_from(amount), words, operator_from(by), reason_from(reason), insist)
    async with session(settings, takes_effect=True) as relay:
        prepared = await prepare_refund(relay, await _target(relay, payment_id), asked)
        if prepared.record is not None:
            say(f"{prepared.record[:1].upper()}{prepared.record[1:]}.")
        say(f"Payment {prepared.call.payment_id}: {prepared.figures}.")
        if not yes and not is_confirmed(f"Refund {prepared.how_much}? It can't be taken back."):
            raise CommandError(UNDONE, REFUSED)
        answer = await carry_out_refund(relay, prepared)
        await relay.background.finish(FINISH_WITHIN_S)
    return _told(answer)


async def _target(relay: "Relay", payment_id: str) -> "ActTarget":
    """Finds the payment on the one account that has it. Raises CommandError."""
    from payrelay.flows.operators.acts.targets import target_of

    names = [payment_id] if "~" in payment_id else [f"{name}~{payment_id}" for name in relay.accounts]
    found = [each for name in names if (each := await target_of(relay, "payment", name)) is not None]
    if not found:
        raise not_found("payment", payment_id)
    if len(found) > 1:
        raise CommandError(f"several accounts have the payment; name one: {', '.join(each.id for each in found)}")
    return found[0]


def _amount_from(text: str | None) -> int | None:
    try:
        return None if text is None else typed_minor(text)
    except AmountError as error:
        raise CommandError(f"--amount {error}") from None


def _description_from(text: str | None) -> str | None:
    try:
        return None if text is None else description_of(text)
    except WordsError as error:
        raise CommandError(f"--description {error}") from None


def _told(answer: "Answer") -> int:
    """Tells what came of it, and gives the exit code."""
    import msgspec

    from payrelay.core.answers import OPERATION_HEADER, REPLAYED

    said = msgspec.json.decode(answer.body, type=dict[str, object]).get("msg")
    if REPLAYED in answer.headers:
        say("An equal refund was asked for before, and nothing was sent now: this is what came of it.")
        say("For another one of the same amount, give another --description.")
    show(f"{dict(answer.headers).get(OPERATION_HEADER, '-')} {said}")
    return DONE if answer.http_status == HTTPStatus.OK else FAULTY
