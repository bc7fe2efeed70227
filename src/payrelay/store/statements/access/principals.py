"""Principals: their other names, their groups, and the pairs that the upgrade found acting on each other's things."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.payments.operation import WITHOUT_EFFECT, Kind
from payrelay.store.engine.queries import Query, query
from payrelay.store.statements.payment_owners import OPERATION_OWNS, listed

NAME_COLUMNS: Final = "id, principal, since_ms"
MEMBER_COLUMNS: Final = "id, name, since_ms"
PAIR_COLUMNS: Final = "id, principal, owner, reason, actions, last_at_ms"

NAME_OF: Final = query(f"SELECT {NAME_COLUMNS}, row_digest FROM principal_names WHERE id = $1")
"""Reads whose other name this is."""

LIST_NAMES: Final = query(f"SELECT {NAME_COLUMNS}, row_digest FROM principal_names ORDER BY since_ms, id LIMIT $1")
"""Reads the other names, oldest first."""

LOCK_NAMES: Final = query("SELECT pg_advisory_xact_lock(hashtextextended('principals', 0))", sqlite=("SELECT 1",))
"""Lets one transaction at a time give a name, to a key or to a principal, until it ends: the one is a row of another
table than the other. SQLite has one writer anyway."""

ADD_NAME: Final = query(
    f"""
    INSERT INTO principal_names ({NAME_COLUMNS}, row_digest) VALUES ($1, $2, $3, $4)
    ON CONFLICT DO NOTHING
    RETURNING id""",
)
"""Gives a principal another name; gives no row where the name is taken."""

GROUP_AROUND: Final = query(
    f"""
    SELECT {MEMBER_COLUMNS}, row_digest FROM principal_groups
    WHERE name = (SELECT own.name FROM principal_groups AS own WHERE own.id = $1)""",
)
"""Reads the members of a principal's group, itself included."""

LIST_GROUPS: Final = query(f"SELECT {MEMBER_COLUMNS}, row_digest FROM principal_groups ORDER BY name, id LIMIT $1")
"""Reads all members of groups."""

PUT_INTO_GROUP: Final = query(
    f"""
    INSERT INTO principal_groups ({MEMBER_COLUMNS}, row_digest) VALUES ($1, $2, $3, $4)
    ON CONFLICT (id) DO UPDATE
    SET name = excluded.name, since_ms = excluded.since_ms, row_digest = excluded.row_digest
    WHERE principal_groups.name = excluded.name OR $5::bigint = 1
    RETURNING id""",
)
"""Puts a principal into a group. Where $5 is 1, takes it out of any other; else gives no row for one of another group.
"""

TAKE_OUT_OF_GROUP: Final = query("DELETE FROM principal_groups WHERE id = $1 RETURNING id")
"""Takes a principal out of its group; gives no row where it is in none."""

GRANDFATHERED_FOR: Final = query(f"SELECT {PAIR_COLUMNS}, row_digest FROM grandfathered WHERE principal = $1")
"""Reads on whose things a principal may still act because it did before."""

LIST_GRANDFATHERED: Final = query(
    f"SELECT {PAIR_COLUMNS}, row_digest FROM grandfathered ORDER BY principal, owner LIMIT $1"
)
"""Reads all pairs about which no operator has decided."""

END_GRANDFATHERED: Final = query("DELETE FROM grandfathered WHERE principal = $1 AND owner = $2 RETURNING id")
"""Ends a pair, because an operator has decided."""

_OWNERS: Final = f"""
    SELECT principal FROM operations WHERE {OPERATION_OWNS}
    UNION SELECT principal FROM checkouts
    UNION SELECT principal FROM subscriptions WHERE principal IS NOT NULL"""
"""The principals that have made anything which they own. A refund, or an operation without effect, makes nobody an
owner, and a stored customer is no payment."""

FORGET_UNSEEN: Final = query(f"DELETE FROM grandfathered WHERE reason = 'unseen' AND owner NOT IN ({_OWNERS})")
"""Removes what migration 14 found between principals of which the one owns nothing."""


def _added(pairs: str, *, reason: str) -> Query:
    """Composes a statement that adds pairs which aren't there; the id of a pair is both names, in two lines."""
    text = f"""
    INSERT INTO grandfathered ({PAIR_COLUMNS})
    SELECT principal || {{newline}} || owner, principal, owner, '{reason}', actions, last_at_ms FROM ({pairs}) AS found
    WHERE true ON CONFLICT DO NOTHING"""
    return query(text.format(newline="chr(10)"), sqlite=(text.format(newline="char(10)"),))


ADD_UNSEEN: Final = _added(
    f"""
    SELECT DISTINCT keys.principal AS principal, owners.principal AS owner, 0 AS actions, NULL::bigint AS last_at_ms
    FROM credentials AS keys CROSS JOIN ({_OWNERS}) AS owners
    WHERE keys.revoked_at_ms IS NULL
      AND (keys.scopes LIKE '%"payments:read"%' OR keys.scopes LIKE '%"payments:capture"%'
           OR keys.scopes LIKE '%"payments:refund"%' OR keys.scopes LIKE '%"subscriptions:%')
      AND keys.principal <> owners.principal AND keys.principal NOT IN ({_OWNERS})""",
    reason="unseen",
)
"""Adds each principal that owns nothing, and has a key that could read or change what others made, to every owner.
Migration 14 passed over those that had any operation or customer, such as a support desk's refund that was refused."""

ADD_ACTED: Final = _added(
    f"""
    SELECT acting.principal AS principal, made.principal AS owner, count(*) AS actions,
           max(acting.updated_at_ms) AS last_at_ms
    FROM operations AS acting
    JOIN payments_seen AS seen ON seen.merchant = acting.merchant AND seen.payment_id = acting.payment_id
    JOIN (
        SELECT merchant, order_id, principal FROM operations WHERE {OPERATION_OWNS}
        UNION SELECT merchant, order_id, principal FROM checkouts
        WHERE guard IS NOT NULL OR payment_id IS NOT NULL OR subscription_id IS NOT NULL
    ) AS made ON made.merchant = seen.merchant AND made.order_id = seen.order_id
    WHERE acting.kind = '{Kind.REFUND}' AND acting.principal <> made.principal
      AND acting.state NOT IN {listed(WITHOUT_EFFECT)}
    GROUP BY acting.principal, made.principal""",
    reason="acted",
)
"""Adds who refunded a payment of another's order, where only the gateway's records told the order."""
