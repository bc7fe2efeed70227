"""What a page shows of a checkout in a table: order, description and amount, and the plan of a subscription."""

from decimal import Decimal

from payrelay.api.public import sentences
from payrelay.api.public.language import Language
from payrelay.core.checkouts.checkout import Checkout, Details
from payrelay.core.checkouts.hosted_payment import Plan

Row = tuple[str, str]
"""A name, to be translated, and its value as the reader writes it."""
FOREVER = "forever"


def rows_of(checkout: Checkout, details: Details | None, language: Language) -> list[Row]:
    """Gives the rows; without ``details``, which the service forgets after a while, those of the checkout itself."""
    rows = [(sentences.ORDER, checkout.order_id)]
    if details is not None:
        rows.append((sentences.DESCRIPTION, details.asked.items))
    if checkout.amount_minor is None:
        return rows
    amount = _amount(checkout, checkout.amount_minor, language)
    plan = None if details is None else details.asked.plan
    if plan is None:
        return [*rows, (sentences.AMOUNT, amount)]
    return [*rows, (sentences.EACH_PAYMENT, amount), *_of_plan(checkout, plan, language)]


def _of_plan(checkout: Checkout, plan: Plan, language: Language) -> list[Row]:
    is_endless = plan.duration.casefold() == FOREVER
    duration = language.text(sentences.UNTIL_ENDED) if is_endless else language.span(plan.duration)
    rows = [(sentences.PAYMENTS_EVERY, language.span(plan.recurrence)), (sentences.DURATION, duration)]
    if plan.starts_on is not None:
        rows.append((sentences.FIRST_DAY, language.day(plan.starts_on)))
    if checkout.first_minor is not None and checkout.first_minor != checkout.amount_minor:
        rows.append((sentences.FIRST_PAYMENT, _amount(checkout, checkout.first_minor, language)))
    return rows


def _amount(checkout: Checkout, amount_minor: int, language: Language) -> str:
    return language.amount(checkout.currency, Decimal(amount_minor).scaleb(-2))
