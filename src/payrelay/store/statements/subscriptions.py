"""The known facts of subscriptions, and their installments."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.subscriptions.subscription import Subscription
from payrelay.store.engine.queries import Query, query
from payrelay.store.engine.tables import StructTable, Table, columns_for
from payrelay.store.statements.payment_owners import LEARN, installment_subject

__all__ = ["LEARN", "installment_subject"]

SUBSCRIPTIONS: Final = StructTable(
    name="subscriptions",
    kind=Subscription,
    columns=columns_for(
        Subscription,
        notified_state="told_state",
        notified_paid="told_paid",
        notified_next_on="told_next_on",
        notified_at_ms="told_at_ms",
    ),
    keys=2,
)
INSTALLMENTS: Final = Table(
    name="installments",
    columns=("merchant", "subscription_id", "payment", "is_paid", "amount_minor", "at_ms"),
    keys=3,
)

GET_SUBSCRIPTION: Final = query(
    f"{SUBSCRIPTIONS.select} WHERE merchant = $1 AND subscription_id = $2",
)
"""Reads the known facts of one subscription, and the digest of its row."""

ADD_SUBSCRIPTION: Final = query(
    f"""
    {SUBSCRIPTIONS.insert()}
    ON CONFLICT (merchant, subscription_id) DO NOTHING
    RETURNING version""",
)
"""Stores a subscription; gives no row, and writes nothing, where it is there already."""

CHANGE_SUBSCRIPTION: Final = query(
    f"""
    UPDATE subscriptions SET {SUBSCRIPTIONS.replaced.replace("$14", "$14::bigint")}
    WHERE merchant = $1 AND subscription_id = $2 AND version = $14::bigint - 1
    RETURNING version""",
)
"""Changes the known facts of a subscription; gives no row, and writes nothing, where it has another version."""

ADD_INSTALLMENT: Final = query(
    f"""
    {INSTALLMENTS.into()}
    SELECT $1::text, $2::text, $3::text, $4::bigint, $5::bigint, $6::bigint, $7::text
    WHERE $4::bigint = 1 OR (
        SELECT count(*) FROM installments
        WHERE merchant = $1::text AND subscription_id = $2::text AND is_paid = 0 AND at_ms > $8::bigint
          AND at_ms <= $6::bigint
    ) < $9
    ON CONFLICT (merchant, subscription_id, payment) DO UPDATE
    SET is_paid = excluded.is_paid, amount_minor = excluded.amount_minor, at_ms = excluded.at_ms,
        row_digest = excluded.row_digest
    WHERE installments.is_paid < excluded.is_paid
    RETURNING payment""",
)
"""Stores an installment; gives no row where it is there already, or where it failed and $8 others did so since $7. A
failed one that was paid after all becomes paid."""

_INSTALLMENTS: Final = f"""
    {INSTALLMENTS.select} WHERE merchant = $1 AND subscription_id = $2"""
_NEWEST_FIRST: Final = "ORDER BY CASE WHEN payment LIKE 'ntf:%' THEN 0 ELSE length(payment) END DESC, payment DESC"

LIST_INSTALLMENTS: Final = query(f"{_INSTALLMENTS} ORDER BY at_ms, payment LIMIT $3")
"""Reads the installments of a subscription, the oldest first."""

PAID_INSTALLMENTS: Final = query(f"{_INSTALLMENTS} AND is_paid = 1 {_NEWEST_FIRST}")
"""Reads the paid installments of a subscription, the last one first. Ids grow; payments without one sort before all
others."""

FAILED_INSTALLMENTS: Final = query(f"{_INSTALLMENTS} AND is_paid = 0 {_NEWEST_FIRST} LIMIT $3")
"""Reads the last failed installments of a subscription."""

INSTALLMENT: Final = query(f"{_INSTALLMENTS} AND payment = $3")
"""Reads one installment."""

LIST_OF_PRINCIPAL: Final = query(
    f"""
    {SUBSCRIPTIONS.select}
    WHERE merchant = $1 AND principal = $4 AND subscription_id > $2 ORDER BY subscription_id LIMIT $3""",
)
"""Reads one page of the known facts of a principal's subscriptions."""

_OF_NOBODY: Final = f"""
    {SUBSCRIPTIONS.select}{{index}}
    WHERE merchant = $1 AND principal IS NULL AND subscription_id > $2 ORDER BY subscription_id LIMIT $3"""

LIST_OF_NOBODY: Final = query(
    _OF_NOBODY.format(index=""),
    sqlite=(_OF_NOBODY.format(index=" INDEXED BY subscriptions_of"),),
)
"""Reads one page of the known facts of subscriptions that have no known principal."""


def _for_operator(*clauses: str) -> Query:
    where = " AND ".join(("(subscription_id, merchant) > ($1, $2)", *clauses))
    return query(
        f"""
        {SUBSCRIPTIONS.select}
        WHERE {where} ORDER BY subscription_id, merchant LIMIT $3""",
    )


LIST_FOR_OPERATOR: Final = {
    (): _for_operator(),
    ("account",): _for_operator("account = $4"),
    ("order_id",): _for_operator("order_id = $4"),
    ("account", "order_id"): _for_operator("account = $4", "order_id = $5"),
}
"""Reads one page of the known facts of all merchants' subscriptions, equal in some columns, behind an id and merchant.
"""

OF_ID: Final = query(f"{SUBSCRIPTIONS.select} WHERE subscription_id = $1 ORDER BY merchant")
"""Reads the known facts of the subscriptions that have an id; each gateway gives its ids once."""

LIST_SUBSCRIPTIONS: Final = query(
    f"""
    {SUBSCRIPTIONS.select}
    WHERE merchant = $1 AND subscription_id > $2 ORDER BY subscription_id LIMIT $3""",
)
"""Reads one page of the known facts of a merchant account's subscriptions."""
