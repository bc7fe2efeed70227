"""The inbox: each notification once, with those of its effects that no other table has.

Rules:

1. Two deliveries are one notification where a merchant account got equal bodies, by the body's digest. A repeat is
   counted and changes nothing else.
2. The body is sealed with a data key of its own, bound to its row. Members that support needs to find it are in clear.
   The body of a finished notification is forgotten after a while, and its key destroyed.
3. A row whose digest is wrong counts as not existing, so that nobody who lacks the key has a notification believed.
4. Refused notifications, and those of one order, are stored up to a number, so that a flood of them fills no disk.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from payrelay.core.notifications.notification import (
    Authenticity,
    Notification,
    NotificationFilter,
    NotificationKind,
    needs_operator,
)
from payrelay.core.payments.schedules import DAY_MS
from payrelay.core.secret import Secret, secret_hash
from payrelay.errors import Outdated
from payrelay.store.data_keys.keys import DataKeys, OwnKey, forgotten, forgotten_on_request, stored
from payrelay.store.digests.rows import RowDigests
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows, count_rows, first_row
from payrelay.store.engine.rows import moment_in
from payrelay.store.engine.sealing import Seal
from payrelay.store.statements import inbox as statements
from payrelay.store.statements.inbox import ACCEPTED_TOKENS, NOTIFICATIONS
from payrelay.store.statements.pagination import columns_of, read_page
from payrelay.store.statements.payments.operations import INVALIDATE

REFUSED_MAX: Final = 1_000
"""Refused notifications that are stored of a merchant account, for an operator to look at."""
REFUSED_ALERT_FROM: Final = 5
"""Refused notifications of a merchant account in a day from which on an operator is alerted, once that day. One
stranger who tries is no reason for that, but a wrong MERCHANT_SECRET refuses everything that the gateway sends."""
OF_AN_ORDER_MAX: Final = 200
"""Notifications of one order and one reported status that are stored in a day. A failing subscription has two or three.

A customer who has the notification of a payment can post it in any number of variants. That must not keep out the
notification of a chargeback.
"""

_TOKEN_HASH: Final = ACCEPTED_TOKENS.columns.index("token_hash")


class StoredNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A stored notification; ``is_new`` says whether it was stored just now."""

    notification: Notification
    is_new: bool


_Notifications: TypeAlias = list[Notification]


class Inbox:
    """Stores notifications in a database. ``refused_max`` and ``of_an_order_max`` limit what a flood leaves there."""

    def __init__(
        self,
        database: Database,
        seal: Seal,
        rows: RowDigests,
        *,
        refused_max: int = REFUSED_MAX,
        of_an_order_max: int = OF_AN_ORDER_MAX,
    ) -> None:
        self._database = database
        self._seal = seal
        self._rows = rows
        self._data_keys = DataKeys(seal)
        self._refused_max = refused_max
        self._of_an_order_max = of_an_order_max

    async def put(self, notification: Notification, body: bytes) -> StoredNotification | None:
        """Stores a notification, or counts its repeat.

        None where there are too many to store it, or where the stored one has a wrong digest.

        Of several callers that put it at once, one stores it. Raises StoreUnavailable.
        """
        own = self._data_keys.new(notification.id)
        sealed = own.key.seal(body, statements.body_context(notification.id))
        members = NOTIFICATIONS.row(notification)
        parameters: tuple[Value, ...] = (
            *members,
            sealed,
            self._rows.of(NOTIFICATIONS, members),
            self._refused_max,
            notification.received_at_ms - DAY_MS,
            self._of_an_order_max,
        )
        row = await self._database.write(_put(notification, parameters, own))
        if row is None:
            return None
        if not row:
            return StoredNotification(notification=notification, is_new=True)
        repeated = await self._trusted([row])
        return StoredNotification(notification=repeated[0], is_new=False) if repeated else None

    async def record(self, notification: Notification) -> None:
        """Stores a changed notification. Raises Outdated, and writes nothing, where it was changed meanwhile.

        May be repeated only together with everything that led to the change.
        """
        digest = self._rows.of(NOTIFICATIONS, NOTIFICATIONS.row(notification))
        await self._database.write(_record(notification, digest))

    async def get(self, notification_id: str) -> Notification | None:
        """Reads one notification."""
        rows = await self._database.read(all_rows(Statement(statements.GET_NOTIFICATION, (notification_id,))))
        found = await self._trusted(rows)
        return found[0] if found else None

    async def body_of(self, notification_id: str) -> bytes | None:
        """Reads the body as it came; None where there is none, or it was forgotten. Raises StoreUnusable."""
        row = await self._database.read(first_row(Statement(statements.BODY_OF_NOTIFICATION, (notification_id,))))
        sealed, sealed_key = row or (None, None)
        return self._data_keys.open(sealed, statements.body_context(notification_id), notification_id, sealed_key)

    async def list(self, filters: NotificationFilter, *, before: str | None, limit: int) -> _Notifications:
        """Reads one page, newest first: at most ``limit`` notifications with ids below ``before``."""
        listing = statements.LIST_NOTIFICATIONS
        rows = await read_page(self._database, listing, columns_of(filters), before=before, limit=limit)
        return await self._trusted(rows)

    async def next_due_ms(self) -> int | None:
        """Gives the time at which the next notification is due; None where none waits."""
        return await self._database.read(moment_in(Statement(statements.NEXT_NOTIFICATION, ())))

    async def lease_due(self, now_ms: int, *, leased_until_ms: int, orders: int, of_an_order: int) -> _Notifications:
        """Leases notifications that are due, of at most ``orders`` orders, and at most ``of_an_order`` of each.

        The orders whose notifications have been due for longest come first. No other process gets the leased ones
        before the lease ends.
        """
        parameters = (now_ms, leased_until_ms, orders, of_an_order)
        return await self._leased(Statement(statements.LEASE_NOTIFICATIONS, parameters, is_whole=True))

    async def lease_waiting(
        self, merchant: str, order_id: str, *, before_ms: int, leased_until_ms: int, limit: int
    ) -> _Notifications:
        """Leases at most ``limit`` notifications of an order that wait, due or not, for a search that began before.

        Gives those that were worked on last before ``before_ms``, and those that could not be worked on for want of a
        search. Another process may be working on one of them: the store takes the result of the first.
        """
        parameters = (merchant, order_id, before_ms, leased_until_ms, limit)
        return await self._leased(Statement(statements.LEASE_WAITING, parameters, is_whole=True))

    async def _leased(self, statement: Statement) -> _Notifications:
        leased = await self._trusted(await self._database.write(all_rows(statement)))
        return sorted(leased, key=lambda each: (each.received_at_ms, each.id))

    async def expire_leases(self, now_ms: int) -> int:
        """Makes notifications due that a dead process was about to work on for the first time; gives their number.

        Only for the sole owner of the store, at its start.
        """
        statement = Statement(statements.EXPIRE_LEASES, (now_ms,), is_whole=True)
        return await self._database.write(count_rows(statement))

    async def forget_refused(self, before_ms: int, limit: int) -> int:
        """Removes at most ``limit`` refused notifications that came before a time; gives their number."""
        return await self._database.write(forgotten(Statement(statements.FORGET_REFUSED, (before_ms, limit))))

    async def forget_bodies(self, before_ms: int, limit: int) -> int:
        """Forgets the bodies of at most ``limit`` finished notifications from before a time; gives their number."""
        return await self._database.write(forgotten(Statement(statements.FORGET_BODIES, (before_ms, limit))))

    async def forget_bodies_of_order(self, merchant: str, order_id: str, principal: str) -> int:
        """Forgets the bodies of an order's finished notifications that aren't another principal's; gives their number.

        A body has the customer's name. A notification of a payment is its maker's. Any other one is the principal's
        unless another principal had taken the order last before it came.
        """
        forgetting = Statement(statements.FORGET_BODIES_OF_ORDER, (merchant, order_id, principal))
        return await self._database.write(forgotten_on_request(forgetting))

    async def accept_token(
        self, notification: Notification, kind: NotificationKind, token: str, *, at_ms: int, in_place: bool = False
    ) -> bool:
        """Accepts a token for the notification's order, once for each kind; False where it accepted another one before.

        May be repeated. Of several different tokens at once, one is accepted. The token of a notification that an
        operator accepted takes the place of one that was accepted before, and with ``in_place`` each does. An
        authorization's token is stored here, sealed. The token of an approval is stored with its customer, and only its
        hash here.
        """
        subject = (notification.merchant, notification.order_id, kind)
        stored = token.encode() if kind is NotificationKind.AUTHORIZATION else b""
        sealed = self._seal.seal(stored, statements.token_context(*subject))
        decided_ms = notification.accepted_at_ms
        accepted = (*subject, secret_hash(token), notification.id, at_ms if decided_ms is None else decided_ms)
        parameters = (*accepted, self._rows.of(ACCEPTED_TOKENS, accepted), sealed)
        is_first = decided_ms is None and not in_place
        accepting = statements.ACCEPT_TOKEN if is_first else statements.ACCEPT_TOKEN_INSTEAD
        *first, _ = await self._database.write(_accept_token(Statement(accepting, parameters)))
        return await self._rows.is_right(ACCEPTED_TOKENS, first) and first[_TOKEN_HASH] == secret_hash(token)

    async def accepted_token(self, merchant: str, order_id: str, kind: NotificationKind) -> Secret | None:
        """Gives the token that was accepted for an order; None where none was accepted, or it isn't stored.

        Raises StoreUnusable.
        """
        subject = (merchant, order_id, kind)
        row = await self._database.read(first_row(Statement(statements.ACCEPTED_TOKEN, subject)))
        if row is None or not await self._rows.is_right(ACCEPTED_TOKENS, row[:-1]):
            return None
        sealed = row[-1]
        token = (
            self._seal.open(sealed, statements.token_context(*subject)).decode() if isinstance(sealed, bytes) else ""
        )
        return Secret(token) if token else None

    async def destroy_token(self, merchant: str, order_id: str, kind: NotificationKind) -> bool:
        """Destroys the token that was accepted for an order. Its hash stays, so that no other token is accepted."""
        subject = (merchant, order_id, kind)
        parameters = (*subject, self._seal.seal(b"", statements.token_context(*subject)))
        statement = Statement(statements.DESTROY_TOKEN, parameters, is_whole=True)
        return bool(await self._database.write(all_rows(statement)))

    async def owner_of_payment(self, merchant: str, payment_id: str) -> str | None:
        """Finds the operation that a payment belongs to, where an operation made it."""
        row = await self._database.read(first_row(Statement(statements.OWNER_OF_PAYMENT, (payment_id, merchant))))
        return None if row is None else str(row[0])

    async def _trusted(self, rows: Sequence[Row]) -> _Notifications:
        return await self._rows.values(NOTIFICATIONS, rows)


def _put(notification: Notification, parameters: tuple[Value, ...], own: OwnKey) -> Unit[Row | None]:
    """Gives an empty row for a new notification, the stored row for a repeat, and None for one too many."""
    if (yield Statement(statements.PUT_NOTIFICATION, parameters)):
        yield stored(own)
        if notification.authenticity is Authenticity.GENUINE:
            yield Statement(INVALIDATE, (notification.merchant,))  # readings from before it may be outdated
        else:
            at_ms = notification.received_at_ms
            since = (at_ms // DAY_MS, at_ms, at_ms - DAY_MS, REFUSED_ALERT_FROM)
            yield Statement(
                statements.ADD_REFUSALS_ALERT, (notification.id, notification.version, notification.merchant, *since)
            )
        return ()
    repeat = (notification.merchant, notification.digest, notification.received_at_ms)
    rows = yield Statement(statements.REPEAT_NOTIFICATION, repeat)
    return rows[0] if rows else None


def _record(notification: Notification, digest: str) -> Unit[None]:
    parameters = (
        notification.id,
        notification.version,
        notification.authenticity,
        notification.state,
        notification.reason,
        notification.attempts,
        notification.next_at_ms,
        notification.gives_up_at_ms,
        notification.updated_at_ms,
        digest,
        notification.accepted_by,
        notification.accepted_because,
        notification.accepted_at_ms,
    )
    needs_attention = needs_operator(notification)
    if not (yield Statement(statements.RECORD_NOTIFICATION, parameters, is_whole=not needs_attention)):
        raise Outdated(f"the notification {notification.id!r} was changed since it was read")
    if needs_attention:
        at_ms = notification.updated_at_ms
        # One reason must not take the alert of another: nonsense is easily posted before a second payment is made.
        subject = f"{notification.order_id}/{notification.reason}"
        of_day = (notification.merchant, subject, at_ms // DAY_MS, at_ms)
        yield Statement(statements.ADD_NOTIFICATION_ALERT, (notification.id, notification.version, *of_day))


def _accept_token(accepting: Statement) -> Unit[Row]:
    """Carries out the accepting of a token; gives the row of the accepted one."""
    yield accepting
    rows = yield Statement(statements.ACCEPTED_TOKEN, accepting.parameters[: ACCEPTED_TOKENS.keys])
    return rows[0]
