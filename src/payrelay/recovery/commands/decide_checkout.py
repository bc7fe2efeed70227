"""The command that decides about a checkout that may have been paid in commits that are lost."""

from typing import Annotated, Final

import typer

from payrelay.cli.session import operator_from, read_settings, reason_from, session
from payrelay.cli.terminal.declaring import By, Reason, Sure, awaited
from payrelay.cli.terminal.messages import (
    DONE,
    FAULTY,
    REFUSED,
    CommandError,
    is_confirmed,
    require_answerable,
    require_found,
    show,
)
from payrelay.core.payments.payment import payment_number
from payrelay.errors import Refusal
from payrelay.recovery.rules.lost_payments import PageDecision

UNDECIDED: Final = "nothing was decided"


@awaited
async def decide_one_checkout(
    decision: Annotated[PageDecision, typer.Argument(metavar="DECISION", help="One of paid, unpaid.")],
    checkout_id: Annotated[str, typer.Argument(metavar="ID", help="As `checkouts list` shows it.")],
    *,
    payment_id: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="With paid: the payment of the customer.")
    ] = None,
    reason: Reason = "",
    by: By = None,
    yes: Sure = False,
) -> int:
    """Decide whether a page was paid in the lost time, for good.

    paid: the payment is the checkout's. unpaid: the checkout ends, and its page leads nowhere any more.
    """
    from payrelay.errors import UndecidedError
    from payrelay.flows.checkouts.decide_after_loss import decide_checkout

    settings = read_settings()
    require_answerable(is_sure=yes, undone=UNDECIDED)
    who, why = operator_from(by), reason_from(reason)
    number = None if payment_id is None else payment_number(payment_id)
    if (decision is PageDecision.PAID) is (number is None):
        raise CommandError("--payment-id belongs to paid, and has 1 to 19 digits")
    async with session(settings) as relay:
        checkout = require_found(await relay.checkouts.get(checkout_id), "checkout", checkout_id)
        if not yes and not is_confirmed(f"Decide that order {checkout.order_id} was {decision} on its page, for good?"):
            raise CommandError(UNDECIDED, REFUSED)
        try:
            decided = await decide_checkout(relay, checkout, decision, operator=who, reason=why, payment_id=number)
        except (Refusal, UndecidedError) as error:
            raise CommandError(f"{checkout_id}: {error}", FAULTY) from None
    show(f"{decided.id} {decided.state}")
    return DONE
