"""Notifications, and the tokens that were accepted from them."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.notifications.notification import Notification, NotificationState
from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import TIMING, Binding, StructTable, Table, columns_for
from payrelay.store.statements.data_keys import key_of
from payrelay.store.statements.pagination import Among, ListIndex, Listing
from payrelay.store.statements.payment_owners import OPERATION_OWNS


def body_context(notification_id: str) -> bytes:
    """Gives the seal context of a notification's body."""
    return f"notification/{notification_id}".encode()


NOTIFICATIONS: Final = StructTable(
    name="notifications",
    kind=Notification,
    columns=columns_for(Notification, authenticity="verdict", reason="why", reported="told"),
    uncovered={
        "repeats": "it counts, and nothing follows from it",
        "last_at_ms": "it counts, and nothing follows from it",
        "next_at_ms": TIMING,
    },
    sealed={"sealed_body": Binding(body_context, str)},
)

_PUT: Final = ", ".join(f"${number}::{kind}" for number, kind in enumerate((*NOTIFICATIONS.types, "bytea", "text"), 1))

PUT_NOTIFICATION: Final = query(
    f"""
    {NOTIFICATIONS.into("sealed_body")}
    SELECT {_PUT}
    WHERE CASE WHEN $6::text = 'refused'
        THEN (SELECT count(*) FROM (
            SELECT 1 FROM notifications WHERE merchant = $3::text AND state = 'refused' LIMIT $29
        ) AS kept) < $29
        ELSE (SELECT count(*) FROM (
            SELECT 1 FROM notifications
            WHERE merchant = $3::text AND order_id = $11::text AND received_at_ms > $30::bigint AND state <> 'refused'
              AND told = $10::text
            LIMIT $31
        ) AS kept) < $31
    END
    ON CONFLICT (merchant, digest) DO NOTHING
    RETURNING id""",
)
"""Stores a notification and its sealed body. Gives no row, and writes nothing, where it is there already, or where a
flood is likely. That is where too many refused ones are stored, or too many of its order and reported status since
$30."""

REPEAT_NOTIFICATION: Final = query(
    f"""
    UPDATE notifications SET repeats = repeats + 1, last_at_ms = $3
    WHERE merchant = $1 AND digest = $2
    RETURNING {NOTIFICATIONS.read}""",
)
"""Counts a repeat of a notification; gives no row where it is not there."""

RECORD_NOTIFICATION: Final = query(
    """
    UPDATE notifications
    SET verdict = $3, state = $4, why = $5, version = $2::bigint, attempts = $6, next_at_ms = $7, gives_up_at_ms = $8,
        updated_at_ms = $9, row_digest = $10, accepted_by = $11, accepted_because = $12, accepted_at_ms = $13
    WHERE id = $1 AND version = $2::bigint - 1
    RETURNING id""",
)
"""Changes a notification; gives no row, and writes nothing, where it has another version."""

GET_NOTIFICATION: Final = query(f"{NOTIFICATIONS.select} WHERE id = $1")
"""Reads one notification."""

BODY_OF_NOTIFICATION: Final = query(
    f"SELECT sealed_body, {key_of('notifications.id')} FROM notifications WHERE id = $1",
)
"""Reads the sealed body of a notification, null once it was forgotten, and its key."""

LEASE_NOTIFICATIONS: Final = query(
    f"""
    UPDATE notifications SET next_at_ms = $2::bigint
    WHERE id IN (
        SELECT id FROM notifications
        WHERE next_at_ms <= $1::bigint AND id IN (
            SELECT id FROM (
                SELECT id, row_number() OVER (PARTITION BY merchant, order_id ORDER BY next_at_ms, id) AS place
                FROM notifications
                WHERE next_at_ms <= $1::bigint AND (merchant, order_id) IN (
                    SELECT merchant, order_id FROM notifications WHERE next_at_ms <= $1::bigint
                    GROUP BY merchant, order_id ORDER BY min(next_at_ms), merchant, order_id LIMIT $3
                )
            ) AS due
            WHERE place <= $4
        )
        FOR UPDATE SKIP LOCKED
    )
    RETURNING {NOTIFICATIONS.read}""",
)
"""Leases due notifications of some orders until $2, so that no other process works on them meanwhile. Those of one
order can't keep out those of another, however many they are."""

LEASE_WAITING: Final = query(
    f"""
    UPDATE notifications SET next_at_ms = $4::bigint
    WHERE id IN (
        SELECT id FROM notifications
        WHERE merchant = $1 AND order_id = $2 AND state = 'waiting'
          AND (updated_at_ms < $3 OR why = 'search_waits')
        ORDER BY received_at_ms, id LIMIT $5 FOR UPDATE SKIP LOCKED
    )
    RETURNING {NOTIFICATIONS.read}""",
)
"""Leases notifications of an order that wait, until $4. They were not worked on since $3, or wait for a search."""

NEXT_NOTIFICATION: Final = query("SELECT min(next_at_ms) FROM notifications WHERE next_at_ms IS NOT NULL")
"""Reads when the next notification is to be worked on."""

EXPIRE_LEASES: Final = query(
    "UPDATE notifications SET next_at_ms = $1 WHERE state = 'received' AND next_at_ms > $1 RETURNING id",
)
"""Makes notifications due that a dead process was about to work on for the first time."""

FORGET_REFUSED: Final = query(
    """
    DELETE FROM notifications WHERE id IN (
        SELECT id FROM notifications WHERE state = 'refused' AND received_at_ms < $1 ORDER BY received_at_ms LIMIT $2
    )
    RETURNING id""",
)
"""Removes refused notifications from before a time, a limited number at a time."""

FORGET_BODIES: Final = query(
    """
    UPDATE notifications SET sealed_body = NULL WHERE id IN (
        SELECT id FROM notifications
        WHERE sealed_body IS NOT NULL AND next_at_ms IS NULL AND received_at_ms < $1 ORDER BY received_at_ms LIMIT $2
    )
    RETURNING id""",
)
"""Forgets the bodies of finished notifications from before a time, a limited number at a time."""

_MADE_BY: Final = """
      SELECT 1 FROM operations
      WHERE operations.payment_id = notifications.payment_id AND merchant = $1 AND principal {is_theirs} $3
        AND {operation_owns}
      UNION ALL
      SELECT 1 FROM checkouts
      WHERE checkouts.payment_id = notifications.payment_id AND merchant = $1 AND principal {is_theirs} $3
      UNION ALL
      SELECT 1 FROM accepted_tokens
      JOIN checkouts ON checkouts.merchant = accepted_tokens.merchant
        AND checkouts.order_id = accepted_tokens.order_id AND checkouts.kind = accepted_tokens.kind
      WHERE accepted_tokens.merchant = $1 AND accepted_tokens.order_id = $2
        AND accepted_tokens.notification_id = notifications.id
        AND checkouts.principal {is_theirs} $3 AND checkouts.state IN ('notified', 'completed')
      UNION ALL
      SELECT 1 FROM installments
      JOIN subscriptions ON subscriptions.merchant = installments.merchant
        AND subscriptions.subscription_id = installments.subscription_id
      WHERE installments.payment = notifications.payment_id AND installments.merchant = $1
        AND installments.is_paid = 1 AND subscriptions.principal {is_theirs} $3"""
_LAST_TAKEN: Final = """coalesce((
      SELECT max(created_at_ms) FROM (
        SELECT created_at_ms FROM operations
        WHERE operations.order_id = $2 AND merchant = $1 AND principal {is_theirs} $3 AND {operation_owns}
          AND created_at_ms <= received_at_ms
        UNION ALL
        SELECT created_at_ms FROM checkouts
        WHERE checkouts.order_id = $2 AND merchant = $1 AND principal {is_theirs} $3
          AND created_at_ms <= received_at_ms
      ) AS taken
    ), 0)"""
_OWN: Final = {"is_theirs": "=", "operation_owns": OPERATION_OWNS}
_FOREIGN: Final = {"is_theirs": "<>", "operation_owns": OPERATION_OWNS}

FORGET_BODIES_OF_ORDER: Final = query(
    f"""
    UPDATE notifications SET sealed_body = NULL
    WHERE merchant = $1 AND order_id = $2 AND sealed_body IS NOT NULL AND next_at_ms IS NULL
      AND (EXISTS ({_MADE_BY.format(**_OWN)})
        OR NOT EXISTS ({_MADE_BY.format(**_FOREIGN)})
        AND {_LAST_TAKEN.format(**_FOREIGN)} <= {_LAST_TAKEN.format(**_OWN)})
    RETURNING id""",
)
"""Forgets the bodies of an order's finished notifications: those of payments that principal $3 made, and of tokens that
its checkouts got. Those of which nobody is known to have made anything go too, unless another principal had taken the
order last before they came."""

_UNFINISHED: Final = Among("state", (NotificationState.RECEIVED, NotificationState.WAITING))
_RARE: Final = Among.all_but("state", (NotificationState.APPLIED, *_UNFINISHED.values), NotificationState)
_NOT_APPLIED: Final = Among.all_but("state", (NotificationState.APPLIED,), NotificationState)

LIST_NOTIFICATIONS: Final = Listing(
    "notifications",
    NOTIFICATIONS.read,
    (
        ListIndex(("payment_id",), is_narrow=True),
        ListIndex(("order_id",), is_narrow=True),
        ListIndex(("account", "state"), _RARE),
        ListIndex(("state",), _NOT_APPLIED),
        ListIndex(("account",)),
        ListIndex(("state",)),
    ),
)
"""The listed columns of notifications, and the indexes of the list."""


def token_context(merchant: str, order_id: str, kind: str) -> bytes:
    """Gives the seal context of an accepted token; a merchant is a hash in hex, and a kind a word."""
    return f"accepted token/{merchant}/{kind}/{order_id}".encode()


ACCEPTED_TOKENS: Final = Table(
    name="accepted_tokens",
    columns=("merchant", "order_id", "kind", "token_hash", "notification_id", "accepted_at_ms"),
    keys=3,
    sealed={"sealed_token": Binding(token_context)},
)

ACCEPT_TOKEN: Final = query(
    f"""
    INSERT INTO accepted_tokens ({ACCEPTED_TOKENS.read}, sealed_token)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (merchant, order_id, kind) DO NOTHING""",
)
"""Accepts a token for an order, unless one was accepted before."""

ACCEPT_TOKEN_INSTEAD: Final = query(
    f"""
    INSERT INTO accepted_tokens ({ACCEPTED_TOKENS.read}, sealed_token)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (merchant, order_id, kind) DO UPDATE
    SET token_hash = excluded.token_hash, sealed_token = excluded.sealed_token,
      notification_id = excluded.notification_id, accepted_at_ms = excluded.accepted_at_ms,
      row_digest = excluded.row_digest
    WHERE accepted_tokens.accepted_at_ms <= excluded.accepted_at_ms""",
)
"""Accepts a token for an order in place of one that was accepted before, or at, $6."""

ACCEPTED_TOKEN: Final = query(
    f"""
    SELECT {ACCEPTED_TOKENS.read}, sealed_token FROM accepted_tokens
    WHERE merchant = $1 AND order_id = $2 AND kind = $3""",
)
"""Reads the token that was accepted for an order."""

DESTROY_TOKEN: Final = query(
    """
    UPDATE accepted_tokens SET sealed_token = $4 WHERE merchant = $1 AND order_id = $2 AND kind = $3
    RETURNING order_id""",
)
"""Destroys the token that was accepted for an order, by another sealed text in its place; its hash stays."""


OWNER_OF_PAYMENT: Final = query(
    f"""
    SELECT id FROM operations
    WHERE payment_id = $1 AND merchant = $2 AND {OPERATION_OWNS}
    ORDER BY id LIMIT 1""",
)
"""Finds the operation that a payment belongs to, where an operation made it."""

ADD_NOTIFICATION_ALERT: Final = query(
    """
    INSERT INTO notification_alerts (notification_id, version, merchant, subject, day, created_at_ms, next_try_at_ms)
    VALUES ($1, $2, $3, $4, $5, $6::bigint, $6::bigint)
    ON CONFLICT DO NOTHING""",
)
"""Writes, beside the change, the alert that a notification came to need attention; once a day for one subject."""

ADD_REFUSALS_ALERT: Final = query(
    """
    INSERT INTO notification_alerts (notification_id, version, merchant, subject, day, created_at_ms, next_try_at_ms)
    SELECT $1::text, $2::bigint, $3::text, '', $4::bigint, $5::bigint, $5::bigint
    WHERE (SELECT count(*) FROM (
        SELECT 1 FROM notifications
        WHERE merchant = $3::text AND state = 'refused' AND received_at_ms > $6::bigint LIMIT $7
    ) AS refused) >= $7
    ON CONFLICT DO NOTHING""",
)
"""Writes the alert that so many notifications were refused since $6 that an operator should find the cause; once a day.
"""
