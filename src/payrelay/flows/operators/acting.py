"""What every act in the console shares: what is acted on, for whom, by whom, and what came of it."""

from typing import Final

import msgspec

from payrelay.core.money import money_text
from payrelay.core.operators.confirmations import Confirmation
from payrelay.core.operators.roles import Act
from payrelay.core.payments.operation import Operation
from payrelay.flows.operators.parts import Actor
from payrelay.flows.operators.shown import RestrictedFact, facts_for
from payrelay.flows.refunds.refundable_money import RefundableMoney

STANDING_MARK: Final = "~"
"""Stands in ``ActTarget.seen`` before the standing of its payment's money; no state or version has it."""


class ActTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Something that an operator can act on, as it is now.

    Attributes:
        noun, id: what it is; together they stand in the address of its page.
        title: what it is called on a page.
        account: the gateway account; empty where it has none.
        principal: whose it is; empty where it is nobody's.
        clients: among whom the operator chooses for whom it is done, where it is nobody's and must be done for one.
        state: what has become of it, in words.
        seen: changes with everything about it that an operator decides by.
        acts: what can be done about it now.
        order_id, payment_id, subscription_id, amount_minor, currency: as far as they are known.
        operation: the operation, where it is one.
        facts: what else is known of it, as pairs of a title and a text.
        restricted: what else is known of it, and isn't shown to everybody; see ``shown_to``.
        listed: the address of the page that lists it, and what leads there; None where it has a page of its own alone.
        money: what is known of its payment's money, where it has a payment that can be refunded; else None.
    """

    noun: str
    id: str
    title: str
    account: str
    principal: str
    state: str
    seen: str
    acts: tuple[Act, ...]
    order_id: str | None = None
    payment_id: str | None = None
    subscription_id: str | None = None
    amount_minor: int | None = None
    currency: str | None = None
    operation: Operation | None = None
    clients: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    restricted: tuple[RestrictedFact, ...] = ()
    listed: tuple[str, str] | None = None
    money: RefundableMoney | None = None

    @property
    def subject(self) -> str:
        """What lines of the history call it."""
        return f"{self.noun}/{self.id}"

    def shown_to(self, actor: Actor) -> "ActTarget":
        """Gives it with those of its restricted facts that the actor sees among the others."""
        return msgspec.structs.replace(self, facts=(*self.facts, *facts_for(actor, *self.restricted)), restricted=())

    @property
    def amount(self) -> str | None:
        """Its amount with its currency, for a page; None where it isn't known."""
        return money_text(self.amount_minor, self.currency) or None


class ConfirmedAct(msgspec.Struct, frozen=True, kw_only=True):
    """What was confirmed, and is done now.

    Attributes:
        confirmation: as it is stored.
        target: what is acted on, as it was read when it was confirmed.
        operator: who did it, as the journal names them.
        by: who confirmed it.
        request_id: of the request that confirmed it.
    """

    confirmation: Confirmation
    target: ActTarget
    operator: str
    by: Actor
    request_id: str

    @property
    def reason(self) -> str:
        """Why, in the words of whoever proposed or confirmed it first."""
        return self.confirmation.reason

    @property
    def seen_standing(self) -> str:
        """The standing of the payment's money when it was shown; empty where none was shown."""
        return self.confirmation.seen.rpartition(".")[0].partition(STANDING_MARK)[2]


class ActResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of an act, in words; ``operation_id`` is the operation that says what is known of it, if it is one."""

    said: str
    operation_id: str | None = None
