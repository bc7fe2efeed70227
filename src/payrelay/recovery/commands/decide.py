"""The command that decides about held operations, one or many."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from payrelay.cli.session import operator_from, read_settings, reason_from, session
from payrelay.cli.terminal.declaring import By, Reason, Sure, awaited
from payrelay.cli.terminal.messages import (
    DONE,
    FAULTY,
    NOT_FOUND,
    REFUSED,
    CommandError,
    complain,
    is_confirmed,
    require_answerable,
    say,
    show,
)
from payrelay.core.moments import moment_of
from payrelay.core.operators.held_decisions import MEANINGS_OF_DECISIONS, HeldDecision
from payrelay.core.payments.operation import Kind, Operation
from payrelay.core.payments.payment import payment_number
from payrelay.errors import Refusal, StoreError, UndecidedError
from payrelay.recovery.commands.pages import held_in_words

if TYPE_CHECKING:
    from payrelay.flows.operators.held.decide_held import HeldFilter
    from payrelay.flows.relay import Relay

UNDECIDED: Final = "nothing was decided"
FILTERS: Final = ("account", "kind", "order", "principal", "since", "until")
"""What ``--where`` can name."""
FINISH_WITHIN_S: Final = 30.0
"""Time for an outcome that the database did not take at once; after that the service finds the operation, as after a
crash."""


@awaited
async def decide_many(
    decision: Annotated[HeldDecision, typer.Argument(metavar="DECISION", help="One of done, send, refuse.")],
    operation_ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="These; or name a filter.")] = None,
    *,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help=f"Those that fit; may be repeated. Names: {', '.join(FILTERS)}."),
    ] = None,
    payment_id: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="With done: the payment that one operation made.")
    ] = None,
    reason: Reason = "",
    by: By = None,
    yes: Sure = False,
) -> int:
    """Decide about held operations, for good.

    done: an earlier try was carried out. send: none was, it is sent now. refuse: it isn't sent.
    """
    from payrelay.flows.operators.held.decide_held import HeldFilter, held_operations

    settings = read_settings()
    require_answerable(is_sure=yes, undone=UNDECIDED)
    who, why, paid = operator_from(by), reason_from(reason), _payment_id(payment_id)
    wanted = _filter_from(operation_ids or [], where or [])
    if wanted == HeldFilter():
        raise CommandError("name operations by their ids, or by a filter such as --where kind=void")
    async with session(settings, takes_effect=True) as relay:
        held = [each async for each in held_operations(relay, wanted)]
        _require_found(held, wanted)
        if paid is not None and (decision is not HeldDecision.DONE or len(held) != 1):
            raise CommandError("--payment-id belongs to one operation that was done")
        say(f"{held_in_words(Counter(each.kind for each in held))}. {MEANINGS_OF_DECISIONS[decision]}")
        if not yes and not is_confirmed(f"Decide {decision}, for good?"):
            raise CommandError(UNDECIDED, REFUSED)
        return await _decided(relay, held, decision, operator=who, reason=why, payment_id=paid)


async def _decided(
    relay: "Relay",
    held: Sequence[Operation],
    decision: HeldDecision,
    *,
    operator: str,
    reason: str,
    payment_id: str | None,
) -> int:
    """Decides about one operation after the other, and tells what each came to; one that fails leaves the others."""
    from payrelay.flows.operators.held.decide_held import decide_held

    code = DONE
    for each in held:
        try:
            after = await decide_held(relay, each, decision, operator=operator, reason=reason, payment_id=payment_id)
        except (Refusal, UndecidedError, StoreError) as error:
            complain(f"{each.id}: {error}")
            code = FAULTY
        else:
            show(f"{each.id} {after.state}")
    await relay.background.finish(FINISH_WITHIN_S)
    return code


def _require_found(held: Sequence[Operation], wanted: "HeldFilter") -> None:
    missing = sorted(wanted.ids - {each.id for each in held})
    if missing:
        raise CommandError(f"not held, or not of this filter: {', '.join(missing)}", NOT_FOUND)
    if not held:
        raise CommandError("no held operation is of this filter", NOT_FOUND)


def _filter_from(operation_ids: list[str], where: list[str]) -> "HeldFilter":
    from payrelay.flows.operators.held.decide_held import HeldFilter

    named = dict(each.partition("=")[::2] for each in where)
    unknown = sorted(named.keys() - set(FILTERS))
    if unknown or len(named) < len(where):
        raise CommandError(f"--where takes NAME=VALUE, each name once, with a name of {', '.join(FILTERS)}")
    kind = named.get("kind")
    if kind is not None and kind not in set(Kind):
        raise CommandError(f"--where kind= must be one of {', '.join(Kind)}")
    return HeldFilter(
        ids=frozenset(operation_ids),
        account=named.get("account"),
        kind=None if kind is None else Kind(kind),
        order_id=named.get("order"),
        principal=named.get("principal"),
        since_ms=_time_from(named, "since"),
        until_ms=_time_from(named, "until"),
    )


def _time_from(named: dict[str, str], name: str) -> int | None:
    try:
        return moment_of(named[name]) if name in named else None
    except ValueError:
        wanted = "a time in ISO 8601 with its zone, such as 2026-11-22T09:30Z"
        raise CommandError(f"--where {name}= must be {wanted}") from None


def _payment_id(text: str | None) -> str | None:
    number = None if text is None else payment_number(text)
    if text is not None and number is None:
        raise CommandError("--payment-id must be 1 to 19 digits")
    return number
