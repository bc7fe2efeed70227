"""Every piece of SQL that runs after the start, by name, with a sentence each.

The tables are in ``migrations/``. The columns of ``operations`` stand in the order of ``core.operations.Operation``;
a test holds that.
"""

# ruff: noqa: S608 - what is put into the texts are the columns named here; values are always parameters

from functools import lru_cache
from typing import Final

from payrelay.store.queries import Query, query

OPERATION_COLUMNS: Final = (
    "id, account, merchant, principal, kind, state, version, subject, guard, claim, claim_ends_at_ms, idempotency_key,"
    " fingerprint, request_id, order_id, payment_id, subscription_id, amount_minor, currency, result_ref,"
    " created_at_ms, updated_at_ms, send_by_ms, probe_at_ms, chain"
)

_INSERT_OPERATION: Final = f"""
    INSERT INTO operations ({OPERATION_COLUMNS}, sealed_call)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
            $24, $25, $26)
    ON CONFLICT DO NOTHING"""

ACCEPT: Final = query(
    "accept",
    f"""
    WITH accepted AS ({_INSERT_OPERATION} RETURNING id),
    line AS (
        INSERT INTO history (operation_id, version, at_ms, event, state, evidence, row_digest, hash)
        SELECT id, $7::bigint, $27::bigint, $28::text, $6::text, $29::text, $30::text, $25::text FROM accepted
    )
    SELECT id FROM accepted""",
    sqlite=(
        _INSERT_OPERATION,
        """INSERT INTO history (operation_id, version, at_ms, event, state, evidence, row_digest, hash)
           VALUES ($1, $7, $27, $28, $6, $29, $30, $25)""",
    ),
)
"""Stores an operation and its sealed call with the first line of its history; gives no row, and writes nothing, where
its id, claim or guard is taken."""

_UPDATE_OPERATION: Final = """
    UPDATE operations
    SET state = $2, version = $3::bigint, guard = $4, claim_ends_at_ms = $5, payment_id = $6, result_ref = $7,
        updated_at_ms = $8, send_by_ms = $9, sealed_answer = COALESCE($10::bytea, sealed_answer),
        probe_at_ms = $14, chain = $15{more}
    WHERE id = $1 AND version = $3::bigint - 1 AND chain = $18"""

_ANSWERED: Final = ", order_id = $19, subscription_id = $20, amount_minor = $21, currency = $22"
_RELEASED: Final = ", claim = NULL"


def _record(name: str, more: str) -> Query:
    update = _UPDATE_OPERATION.format(more=more)
    return query(
        name,
        f"""
        WITH changed AS ({update} RETURNING id),
        line AS (
            INSERT INTO history (
                operation_id, version, at_ms, event, state, evidence, row_digest, answer_digest, hash
            )
            SELECT id, $3::bigint, $11::bigint, $12::text, $2::text, $13::text, $16::text, $17::text, $15::text
            FROM changed
        )
        SELECT id FROM changed""",
        sqlite=(
            update,
            """INSERT INTO history (
                   operation_id, version, at_ms, event, state, evidence, row_digest, answer_digest, hash
               )
               VALUES ($1, $3, $11, $12, $2, $13, $16, $17, $15)""",
        ),
    )


RECORD: Final = _record("record", "")
"""Changes an operation that still has the version before, adds the line, and keeps the sealed answer where there is
one; gives no row, and writes nothing, where the version, or the hash that the new line is chained to, is another.

The claim stays as it is, so that one that has lapsed and was taken by another operation is not taken back. So does
what a charge asked for and its reply can't change, because a database rewrites an index for every column that is set.
"""

RECORD_RELEASED: Final = _record("record_released", _RELEASED)
"""The same for an operation that gives its claim back."""

RECORD_ANSWERED: Final = _record("record_answered", _ANSWERED)
"""The same for an operation that may learn its order, subscription and amount from the reply; takes four more."""

RECORD_ANSWERED_RELEASED: Final = _record("record_answered_released", _ANSWERED + _RELEASED)
"""Both."""

FIND_CLAIM: Final = query(
    "find_claim",
    f"SELECT {OPERATION_COLUMNS}, sealed_answer FROM operations WHERE principal = $1 AND claim = $2",
)
"""Finds the operation that holds a claim, lapsed or not, and its sealed answer."""

RELEASE_CLAIM: Final = query(
    "release_claim",
    """
    UPDATE operations SET claim = NULL, claim_ends_at_ms = NULL
    WHERE id = $1 AND claim_ends_at_ms <= $2
    RETURNING id""",
)
"""Takes a lapsed claim from the operation that holds it."""

FIND_GUARD: Final = query(
    "find_guard", f"SELECT {OPERATION_COLUMNS} FROM operations WHERE merchant = $1 AND guard = $2"
)
"""Finds the operation that holds a guard."""

GET: Final = query("get", f"SELECT {OPERATION_COLUMNS} FROM operations WHERE id = $1")
"""Reads one operation."""

ANSWER_OF: Final = query("answer_of", "SELECT sealed_answer FROM operations WHERE id = $1")
"""Reads the sealed answer of an operation."""

CALL_OF: Final = query("call_of", "SELECT sealed_call FROM operations WHERE id = $1")
"""Reads the sealed call of an operation."""

HISTORY: Final = query(
    "history",
    """
    SELECT version, at_ms, event, state, evidence FROM history
    WHERE operation_id = $1 ORDER BY version LIMIT $2""",
)
"""Reads the history of an operation, oldest line first."""

NEWEST_BY_KEY: Final = query(
    "newest_by_key",
    f"""
    SELECT {OPERATION_COLUMNS} FROM operations WHERE claim = $2 AND account = $3
    UNION ALL
    SELECT {OPERATION_COLUMNS} FROM operations WHERE idempotency_key = $1 AND claim IS NULL AND account = $3
    ORDER BY id DESC LIMIT 1""",
)
"""Finds the newest operation on an account that any principal asked for under an Idempotency-Key, by the key or by its
claim."""

NEWEST_BY_KEY_OF: Final = query(
    "newest_by_key_of",
    f"""
    SELECT {OPERATION_COLUMNS} FROM operations WHERE claim = $2 AND account = $3 AND principal = $4
    UNION ALL
    SELECT {OPERATION_COLUMNS} FROM operations
    WHERE idempotency_key = $1 AND claim IS NULL AND account = $3 AND principal = $4
    ORDER BY id DESC LIMIT 1""",
)
"""Finds the newest operation on an account that one principal asked for under an Idempotency-Key, by the key or by its
claim."""

STRANDED: Final = query(
    "stranded",
    f"""
    SELECT {OPERATION_COLUMNS} FROM operations
    WHERE state IN ('accepted', 'sending') AND send_by_ms < $1 ORDER BY send_by_ms LIMIT $2""",
)
"""Finds operations under way whose time to be sent ended before a moment, the longest ended first."""

AUTHORIZATION_OF: Final = query(
    "authorization_of",
    f"""
    SELECT {OPERATION_COLUMNS} FROM operations
    WHERE result_ref = $1 AND merchant = $2 ORDER BY id DESC LIMIT 1""",
)
"""Finds the operation that yielded an authorization token, by the token's hash."""

PRUNE: Final = query(
    "prune",
    """
    UPDATE operations SET claim = NULL, claim_ends_at_ms = NULL
    WHERE id IN (
        SELECT id FROM operations WHERE claim_ends_at_ms <= $1 ORDER BY claim_ends_at_ms LIMIT $2
    )
    RETURNING id""",
)
"""Takes lapsed claims from the operations that hold them, some at a time."""


@lru_cache(maxsize=256)  # there are 2 to the 8th combinations
def list_operations(columns: tuple[str, ...], *, is_continued: bool) -> Query:
    """Composes the query of one page, newest first: ``columns`` are compared with $1, $2, …; then before, limit."""
    clauses = [f"{column} = ${number}" for number, column in enumerate(columns, 1)]
    if is_continued:
        clauses.append(f"id < ${len(clauses) + 1}")
    where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
    return query(
        "list_operations",
        f"SELECT {OPERATION_COLUMNS} FROM operations {where} ORDER BY id DESC LIMIT ${len(clauses) + 1}",
    )


CREDENTIAL_COLUMNS: Final = (
    "id, principal, key_hash, scopes, accounts, amount_max_minor, rate_count, rate_window_s,"
    " created_at_ms, expires_at_ms, revoked_at_ms"
)

ADD_CREDENTIAL: Final = query(
    "add_credential",
    f"""
    INSERT INTO credentials ({CREDENTIAL_COLUMNS})
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT DO NOTHING
    RETURNING id""",
)
"""Stores a credential; gives no row where its id is taken."""

GET_CREDENTIAL: Final = query("get_credential", f"SELECT {CREDENTIAL_COLUMNS} FROM credentials WHERE id = $1")
"""Reads one credential."""

LIST_CREDENTIALS: Final = query(
    "list_credentials", f"SELECT {CREDENTIAL_COLUMNS} FROM credentials ORDER BY created_at_ms, id LIMIT $1"
)
"""Reads the credentials, oldest first."""

REVOKE_CREDENTIAL: Final = query(
    "revoke_credential",
    "UPDATE credentials SET revoked_at_ms = $2 WHERE id = $1 AND revoked_at_ms IS NULL RETURNING id",
)
"""Revokes a credential that isn't revoked yet; the first time stands."""

GET_META: Final = query("get_meta", "SELECT value FROM meta WHERE name = $1")
"""Reads one value that the store keeps about itself."""

ADD_META: Final = query(
    "add_meta", "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING name"
)
"""Stores a value about the store itself unless there is one of that name."""

SCHEMA_VERSION: Final = query("schema_version", "SELECT max(number) FROM schema_version")
"""Reads the number of the newest migration that this database has had."""

TAKE_DUE: Final = query(
    "take_due",
    f"""
    UPDATE operations SET probe_at_ms = $2::bigint
    WHERE id IN (
        SELECT id FROM operations WHERE probe_at_ms <= $1::bigint ORDER BY probe_at_ms LIMIT $3 FOR UPDATE SKIP LOCKED
    )
    RETURNING {OPERATION_COLUMNS}""",
    sqlite=(
        f"""
        UPDATE operations SET probe_at_ms = $2
        WHERE id IN (SELECT id FROM operations WHERE probe_at_ms <= $1 ORDER BY probe_at_ms LIMIT $3)
        RETURNING {OPERATION_COLUMNS}""",
    ),
)
"""Takes operations that are to be looked for now, and puts them off for as long as the look may last, so that no other
process looks for the same at the same time."""

POSTPONE: Final = query(
    "postpone", "UPDATE operations SET probe_at_ms = $3 WHERE id = $1 AND version = $2 AND probe_at_ms IS NOT NULL"
)
"""Says when an operation is looked for next, unless it was changed meanwhile."""

NEXT_DUE: Final = query("next_due", "SELECT min(probe_at_ms) FROM operations WHERE probe_at_ms IS NOT NULL")
"""Reads when the next operation is to be looked for."""

OPEN_OPERATIONS: Final = query(
    "open_operations",
    f"""
    SELECT {OPERATION_COLUMNS} FROM operations
    WHERE state = $1 AND id > $2 ORDER BY id LIMIT $3""",
)
"""Reads the operations in one state, oldest first, from an id on."""

OWNERS_OF_PAYMENT: Final = query(
    "owners_of_payment",
    """
    SELECT id FROM operations
    WHERE payment_id = $1 AND merchant = $2 AND id <> $3 AND kind NOT IN ('refund', 'release')
      AND state NOT IN ('declined', 'refused', 'not_sent', 'failed') LIMIT 1""",
)
"""Finds another operation that a payment belongs to."""

RIVALS: Final = query(
    "rivals",
    """
    SELECT id FROM operations
    WHERE order_id = $1 AND merchant = $2 AND id <> $3 AND kind IN ('charge', 'authorization', 'capture')
      AND (state IN ('accepted', 'sending', 'pending', 'unknown', 'needs_attention')
           OR state = 'failed' AND send_by_ms >= $4) LIMIT 1""",
)
"""Finds another operation on an order that may turn out to own a payment of it: one that is open, or one that failed
and could still be sent after a moment."""

OTHER_REFUNDS: Final = query(
    "other_refunds",
    """
    SELECT id FROM operations
    WHERE payment_id = $1 AND merchant = $2 AND id <> $3 AND kind = 'refund'
      AND state NOT IN ('declined', 'refused', 'not_sent', 'failed') LIMIT 1""",
)
"""Finds another refund of a payment that was, or may have been, made."""

ORDER_OF_PAYMENT: Final = query(
    "order_of_payment",
    """
    SELECT order_id FROM operations
    WHERE payment_id = $1 AND merchant = $2 AND kind IN ('charge', 'capture') AND state = 'succeeded'
      AND order_id IS NOT NULL ORDER BY id DESC LIMIT 1""",
)
"""Finds the order of a payment that was made through us."""

PAID_ORDER: Final = query(
    "paid_order",
    """
    SELECT order_id FROM operations
    WHERE merchant = $1 AND kind = 'charge' AND state = 'succeeded' AND order_id <> $2 AND updated_at_ms <= $3
      AND payment_id IS NOT NULL
    ORDER BY id DESC LIMIT 1""",
)
"""Finds an order other than one that was paid through us before a moment."""

SEEN_ORDER: Final = query(
    "seen_order",
    """
    SELECT order_id FROM payments_seen
    WHERE merchant = $1 AND status = 'RECEIVED' AND order_id <> $2 LIMIT 1""",
)
"""Finds an order other than one that was seen paid at the gateway."""

PAYMENT_SEEN: Final = query(
    "payment_seen", "SELECT order_id, status FROM payments_seen WHERE merchant = $1 AND payment_id = $2"
)
"""Reads how a payment stood when it was last seen."""

ADD_ALERT: Final = query(
    "add_alert",
    """
    INSERT INTO alerts (operation_id, version, created_at_ms, next_try_at_ms)
    SELECT $1::text, $2::bigint, $3::bigint, $3::bigint
    WHERE NOT EXISTS (
        SELECT 1 FROM history WHERE operation_id = $1::text AND version = $2::bigint - 1 AND state = 'needs_attention'
    )""",
)
"""Notes, beside the change that did it, that an operation came to need a person; not where it needed one before."""

TAKE_ALERTS: Final = query(
    "take_alerts",
    """
    UPDATE alerts SET next_try_at_ms = $2::bigint
    WHERE (operation_id, version) IN (
        SELECT operation_id, version FROM alerts
        WHERE next_try_at_ms <= $1::bigint ORDER BY next_try_at_ms LIMIT $3 FOR UPDATE SKIP LOCKED
    )
    RETURNING operation_id, version, created_at_ms, next_try_at_ms, attempts, given_to""",
    sqlite=(
        """
        UPDATE alerts SET next_try_at_ms = $2
        WHERE (operation_id, version) IN (
            SELECT operation_id, version FROM alerts WHERE next_try_at_ms <= $1 ORDER BY next_try_at_ms LIMIT $3
        )
        RETURNING operation_id, version, created_at_ms, next_try_at_ms, attempts, given_to""",
    ),
)
"""Takes alerts that are due, and puts them off for as long as giving them may last, so that no other process gives the
same at the same time."""

NEXT_ALERT: Final = query("next_alert", "SELECT min(next_try_at_ms) FROM alerts WHERE next_try_at_ms IS NOT NULL")
"""Reads when the next alert is to be given."""

END_ALERT: Final = query(
    "end_alert",
    """
    UPDATE alerts SET next_try_at_ms = NULL, attempts = attempts + 1, given_to = $3
    WHERE operation_id = $1 AND version = $2
    RETURNING version""",
)
"""Says that an alert is not given again, and to whom it was."""

PUT_OFF_ALERT: Final = query(
    "put_off_alert",
    """
    UPDATE alerts SET next_try_at_ms = $4, attempts = attempts + 1, given_to = $5
    WHERE operation_id = $1 AND version = $2 AND next_try_at_ms = $3
    RETURNING version""",
)
"""Says when an alert is tried again, unless somebody else has taken it meanwhile."""

ADD_PAUSE: Final = query(
    "add_pause",
    """
    INSERT INTO paused_accounts (account, since_ms, reason, operator) VALUES ($1, $2, $3, $4)
    ON CONFLICT DO NOTHING
    RETURNING account""",
)
"""Pauses an account; gives no row where it is paused already."""

REMOVE_PAUSE: Final = query("remove_pause", "DELETE FROM paused_accounts WHERE account = $1 RETURNING account")
"""Ends the pause of an account; gives no row where it wasn't paused."""

LIST_PAUSES: Final = query(
    "list_pauses", "SELECT account, since_ms, reason, operator FROM paused_accounts ORDER BY account LIMIT $1"
)
"""Reads which accounts are paused."""

ANY_CHAINED: Final = query(
    "any_chained",
    """
    SELECT 1 WHERE EXISTS (SELECT 1 FROM anchors) OR EXISTS (SELECT 1 FROM operations WHERE chain <> '')
                OR EXISTS (SELECT 1 FROM history WHERE hash <> '')""",
)
"""Tells whether anything was chained yet; looks through everything where nothing was, which is once in its life."""

AUDIT_ROWS: Final = query(
    "audit_rows",
    f"SELECT {OPERATION_COLUMNS}, sealed_call, sealed_answer FROM operations WHERE id > $1 ORDER BY id LIMIT $2",
)
"""Reads operations with all that is kept of them, in the order of their ids."""

AUDIT_ROW: Final = query(
    "audit_row", f"SELECT {OPERATION_COLUMNS}, sealed_call, sealed_answer FROM operations WHERE id = $1"
)
"""Reads one operation with all that is kept of it."""

_LINE_COLUMNS: Final = "operation_id, version, at_ms, event, state, evidence, row_digest, answer_digest, hash"

AUDIT_LINES: Final = query(
    "audit_lines",
    f"""
    SELECT {_LINE_COLUMNS} FROM history
    WHERE (operation_id, version) > ($1, $2) ORDER BY operation_id, version LIMIT $3""",
)
"""Reads lines of history with their hashes, one operation's after the other's."""

AUDIT_LINES_OF: Final = query(
    "audit_lines_of", f"SELECT {_LINE_COLUMNS} FROM history WHERE operation_id = $1 ORDER BY version LIMIT $2"
)
"""Reads the lines of one operation with their hashes."""

AUDIT_LINES_BY_TIME: Final = query(
    "audit_lines_by_time",
    f"""
    SELECT {_LINE_COLUMNS} FROM history
    WHERE at_ms >= $1 AND at_ms < $2 AND (at_ms, operation_id, version) > ($1, $3, $4)
    ORDER BY at_ms, operation_id, version LIMIT $5""",
)
"""Reads the lines of a span of time with their hashes, from one of them on."""

NTH_LINE_AT: Final = query(
    "nth_line_at", "SELECT at_ms FROM history WHERE at_ms >= $1 AND at_ms < $2 ORDER BY at_ms LIMIT 1 OFFSET $3"
)
"""Reads when the n-th line of a span of time was written, counted from 0."""

COUNT_OPERATIONS: Final = query("count_operations", "SELECT count(*) FROM operations")
"""Counts all operations."""

_ANCHOR_COLUMNS: Final = "number, from_ms, until_ms, lines, digest, made_at_ms"

LAST_ANCHOR: Final = query("last_anchor", f"SELECT {_ANCHOR_COLUMNS} FROM anchors ORDER BY number DESC LIMIT 1")
"""Reads the newest anchor."""

LIST_ANCHORS: Final = query(
    "list_anchors", f"SELECT {_ANCHOR_COLUMNS} FROM anchors WHERE number > $1 ORDER BY number LIMIT $2"
)
"""Reads anchors, oldest first, from a number on."""

ADD_ANCHOR: Final = query(
    "add_anchor",
    f"""
    INSERT INTO anchors ({_ANCHOR_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT DO NOTHING
    RETURNING number""",
)
"""Stores an anchor; gives no row where another process was quicker with this number."""

_SERVER_NOW_MS: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
"""One clock for all who share a budget or a token. SQLite has none that doesn't jump: there the last parameter is the
time, which PostgreSQL is given and has no use for."""

ADD_PLACES: Final = query(
    "add_places",
    """
    INSERT INTO places (merchant, slot, free_at_ms)
    SELECT $1, slot, 0 FROM generate_series(0, $2::bigint - 1) AS slot
    ON CONFLICT DO NOTHING""",
    sqlite=(
        """
        WITH RECURSIVE slots (slot) AS (SELECT 0 UNION ALL SELECT slot + 1 FROM slots WHERE slot + 1 < $2)
        INSERT INTO places (merchant, slot, free_at_ms) SELECT $1, slot, 0 FROM slots WHERE true
        ON CONFLICT DO NOTHING""",
    ),
)
"""Makes those places of a merchant's budget that aren't there yet; free at once."""

CUT_PLACES: Final = query(
    "cut_places",
    f"""
    UPDATE places SET free_at_ms = {_SERVER_NOW_MS} + $2::bigint
    WHERE merchant = $1 AND free_at_ms > {_SERVER_NOW_MS} + $2::bigint AND $3::bigint IS NOT NULL""",
    sqlite=("UPDATE places SET free_at_ms = $3 + $2 WHERE merchant = $1 AND free_at_ms > $3 + $2",),
)
"""Brings places that are free later than any place can be, because the clock was set back, within that time."""

TAKE_PLACES: Final = query(
    "take_places",
    f"""
    WITH free AS (
        SELECT slot FROM places
        WHERE merchant = $1 AND slot >= 0 AND slot < $2::bigint AND free_at_ms <= {_SERVER_NOW_MS}
          AND $6::bigint IS NOT NULL
          AND NOT EXISTS (
              SELECT 1 FROM places AS block
              WHERE block.merchant = $1 AND block.slot = -1 AND block.free_at_ms > {_SERVER_NOW_MS})
        LIMIT $3::bigint FOR UPDATE SKIP LOCKED
    )
    UPDATE places SET free_at_ms = {_SERVER_NOW_MS} + $5::bigint, holding = $4
    FROM free WHERE places.merchant = $1 AND places.slot = free.slot
    RETURNING places.slot""",
    sqlite=(
        """
        UPDATE places SET free_at_ms = $6 + $5, holding = $4
        WHERE merchant = $1 AND slot IN (
            SELECT slot FROM places
            WHERE merchant = $1 AND slot >= 0 AND slot < $2 AND free_at_ms <= $6
              AND NOT EXISTS (SELECT 1 FROM places WHERE merchant = $1 AND slot = -1 AND free_at_ms > $6)
            LIMIT $3)
        RETURNING slot""",
    ),
)
"""Takes free places of the first so many slots, until the latest possible end of their calls and a window after that.

The slot -1 is no place: until it is free, none is.
"""

NEXT_PLACE: Final = query(
    "next_place",
    f"""
    SELECT count(*), GREATEST(min(free_at_ms), (SELECT free_at_ms FROM places WHERE merchant = $1 AND slot = -1))
        - {_SERVER_NOW_MS}
    FROM places WHERE merchant = $1 AND slot >= 0 AND slot < $2::bigint AND $3::bigint IS NOT NULL""",
    sqlite=(
        """
        SELECT count(*),
            max(min(free_at_ms), COALESCE((SELECT free_at_ms FROM places WHERE merchant = $1 AND slot = -1), 0)) - $3
        FROM places WHERE merchant = $1 AND slot >= 0 AND slot < $2""",
    ),
)
"""Counts the first so many slots, and reads in how many milliseconds there may be a free one."""

END_PLACE: Final = query(
    "end_place",
    f"""
    UPDATE places SET free_at_ms = {_SERVER_NOW_MS} + $4::bigint, holding = NULL
    WHERE merchant = $1 AND slot = $2 AND holding = $3 AND $5::bigint IS NOT NULL""",
    sqlite=(
        """
        UPDATE places SET free_at_ms = $5 + $4, holding = NULL
        WHERE merchant = $1 AND slot = $2 AND holding = $3""",
    ),
)
"""Says when a place is free again, unless it is no longer held by this taking."""

BLOCK_PLACES: Final = query(
    "block_places",
    f"""
    INSERT INTO places (merchant, slot, free_at_ms)
    SELECT $1, -1, {_SERVER_NOW_MS} + $2::bigint WHERE $3::bigint IS NOT NULL
    ON CONFLICT (merchant, slot) DO UPDATE SET free_at_ms = GREATEST(places.free_at_ms, excluded.free_at_ms)""",
    sqlite=(
        """
        INSERT INTO places (merchant, slot, free_at_ms) VALUES ($1, -1, $3 + $2)
        ON CONFLICT (merchant, slot) DO UPDATE SET free_at_ms = max(places.free_at_ms, excluded.free_at_ms)""",
    ),
)
"""Keeps every place of a merchant's from being taken for a while."""

FIND_ACCESS_TOKEN: Final = query(
    "find_access_token",
    f"""
    SELECT sealed_token, {_SERVER_NOW_MS} - obtained_at_ms, ends_at_ms - {_SERVER_NOW_MS}
    FROM access_tokens WHERE account = $1 AND $2::bigint IS NOT NULL""",
    sqlite=("SELECT sealed_token, $2 - obtained_at_ms, ends_at_ms - $2 FROM access_tokens WHERE account = $1",),
)
"""Reads an account's access token, how old it is, and how long it is good for."""

LEASE_ACCESS_TOKEN: Final = query(
    "lease_access_token",
    f"""
    INSERT INTO access_tokens (account, obtained_at_ms, ends_at_ms, lease_until_ms)
    SELECT $1, 0, 0, {_SERVER_NOW_MS} + $2::bigint WHERE $3::bigint IS NOT NULL
    ON CONFLICT (account) DO UPDATE SET lease_until_ms = excluded.lease_until_ms
    WHERE access_tokens.lease_until_ms <= {_SERVER_NOW_MS}
    RETURNING account""",
    sqlite=(
        """
        INSERT INTO access_tokens (account, obtained_at_ms, ends_at_ms, lease_until_ms) VALUES ($1, 0, 0, $3 + $2)
        ON CONFLICT (account) DO UPDATE SET lease_until_ms = excluded.lease_until_ms
        WHERE access_tokens.lease_until_ms <= $3
        RETURNING account""",
    ),
)
"""Makes one process the one that fetches the next access token, for a while; gives no row where another one is."""

PUT_ACCESS_TOKEN: Final = query(
    "put_access_token",
    f"""
    INSERT INTO access_tokens (account, sealed_token, obtained_at_ms, ends_at_ms, lease_until_ms)
    SELECT $1, $2::bytea, {_SERVER_NOW_MS}, {_SERVER_NOW_MS} + $3::bigint, 0 WHERE $4::bigint IS NOT NULL
    ON CONFLICT (account) DO UPDATE
    SET sealed_token = excluded.sealed_token, obtained_at_ms = excluded.obtained_at_ms,
        ends_at_ms = excluded.ends_at_ms, lease_until_ms = 0""",
    sqlite=(
        """
        INSERT INTO access_tokens (account, sealed_token, obtained_at_ms, ends_at_ms, lease_until_ms)
        VALUES ($1, $2, $4, $4 + $3, 0)
        ON CONFLICT (account) DO UPDATE
        SET sealed_token = excluded.sealed_token, obtained_at_ms = excluded.obtained_at_ms,
            ends_at_ms = excluded.ends_at_ms, lease_until_ms = 0""",
    ),
)
"""Stores an access token, and lets the next one be fetched by anybody."""

END_TOKEN_LEASE: Final = query(
    "end_token_lease",
    f"""
    UPDATE access_tokens SET lease_until_ms = {_SERVER_NOW_MS} + $2::bigint
    WHERE account = $1 AND $3::bigint IS NOT NULL""",
    sqlite=("UPDATE access_tokens SET lease_until_ms = $3 + $2 WHERE account = $1",),
)
"""Says when another process may try to fetch an access token."""

DROP_ACCESS_TOKEN: Final = query(
    "drop_access_token", "UPDATE access_tokens SET sealed_token = NULL WHERE account = $1 AND sealed_token = $2"
)
"""Forgets an access token, unless another one has taken its place."""

COUNT_OPEN: Final = query(
    "count_open",
    """
    SELECT counted.state, counted.total, oldest.created_at_ms
    FROM (
        SELECT state, count(*) AS total, min(id) AS id FROM operations
        WHERE state IN ('pending', 'unknown', 'needs_attention') GROUP BY state
    ) AS counted JOIN operations AS oldest ON oldest.id = counted.id""",
)
"""Counts the operations that are open by state, with when the oldest of them was made; ids sort by that."""

_BUMPS: Final = "COALESCE((SELECT version FROM bumps WHERE merchant = $1), 0)"
_OPERATIONS_WITH: Final = f"SELECT {_BUMPS}, count(*), COALESCE(sum(version), 0)::bigint FROM operations WHERE "

VERSION_OF_MERCHANT: Final = query("version_of_merchant", f"SELECT {_BUMPS}")
"""Reads how often something happened that may change any reading of a merchant account's."""

VERSION_OF_ORDER: Final = query("version_of_order", _OPERATIONS_WITH + "order_id = $2 AND merchant = $1")
"""Reads that, and how far the operations on an order are: none is ever removed, and each change raises its version."""

VERSION_OF_SUBSCRIPTION: Final = query(
    "version_of_subscription", _OPERATIONS_WITH + "subscription_id = $2 AND merchant = $1"
)
"""The same for a subscription."""

BUMP: Final = query(
    "bump",
    """
    INSERT INTO bumps (merchant, version) VALUES ($1, 1)
    ON CONFLICT (merchant) DO UPDATE SET version = bumps.version + 1""",
)
"""Says that something happened that may change any reading of a merchant account's."""

LAST_READING: Final = query(
    "last_reading", "SELECT sealed, read_at_ms FROM readings WHERE merchant = $1 AND subject = $2"
)
"""Reads the last answer to a read."""

KEEP_READING: Final = query(
    "keep_reading",
    """
    INSERT INTO readings (merchant, subject, sealed, read_at_ms) VALUES ($1, $2, $3, $4)
    ON CONFLICT (merchant, subject) DO UPDATE SET sealed = excluded.sealed, read_at_ms = excluded.read_at_ms
    WHERE readings.read_at_ms <= excluded.read_at_ms""",
)
"""Keeps an answer to a read in place of an earlier one."""

NOTE_PAYMENT: Final = query(
    "note_payment",
    """
    INSERT INTO payments_seen (merchant, payment_id, order_id, status, currency, amount_minor, seen_at_ms)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (merchant, payment_id) DO UPDATE
    SET order_id = excluded.order_id, status = excluded.status, currency = excluded.currency,
        amount_minor = excluded.amount_minor, seen_at_ms = excluded.seen_at_ms
    WHERE payments_seen.seen_at_ms <= excluded.seen_at_ms""",
)
"""Notes how a payment stood, unless a later look is known."""

PRUNE_READINGS: Final = query(
    "prune_readings",
    """
    DELETE FROM readings WHERE (merchant, subject) IN (
        SELECT merchant, subject FROM readings WHERE read_at_ms < $1 ORDER BY read_at_ms LIMIT $2
    )
    RETURNING subject""",
)
"""Forgets the oldest answers to reads, some at a time."""
