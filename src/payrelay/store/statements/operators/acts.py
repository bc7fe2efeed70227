"""The history of what operators did, the counts of their tries to sign in, and what a browser brings back once."""

# ruff: noqa: S608 - only columns named here are put into the texts; values are always parameters

from typing import Final

from payrelay.core.operators.operator import OperatorAct
from payrelay.store.engine.queries import query
from payrelay.store.engine.tables import columns_for

ACT_COLUMNS: Final = ", ".join(columns_for(OperatorAct))

LAST_ACT: Final = query("SELECT number, hash FROM operator_acts ORDER BY number DESC LIMIT 1")
"""Reads the number and the hash of the newest line."""

ADD_ACT: Final = query(
    f"""
    INSERT INTO operator_acts ({ACT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT DO NOTHING
    RETURNING number""",
)
"""Adds a line; gives no row where another process was quicker with its number."""

ACTS_BEFORE: Final = query(f"SELECT {ACT_COLUMNS} FROM operator_acts WHERE number < $1 ORDER BY number DESC LIMIT $2")
"""Reads the lines before a number, newest first."""

ACTS_AFTER: Final = query(f"SELECT {ACT_COLUMNS} FROM operator_acts WHERE number > $1 ORDER BY number LIMIT $2")
"""Reads the lines behind a number, oldest first."""

ACTS_ABOUT: Final = query(
    f"""
    SELECT {ACT_COLUMNS} FROM operator_acts
    WHERE number IN (SELECT number FROM operator_act_subjects WHERE subject = $1 ORDER BY number DESC LIMIT $2)
    ORDER BY number DESC""",
)
"""Reads the lines about one thing, newest first."""

ADD_SUBJECT: Final = query("INSERT INTO operator_act_subjects (subject, number) VALUES ($1, $2) RETURNING number")
"""Has a line found by what it is about."""

IS_FULL: Final = query(
    "SELECT subject FROM sign_in_tries WHERE subject = $1 AND tries >= $2 AND began_at_ms > $3",
)
"""Gives a row where a count that began after $3 is full."""

TAKE_TRY: Final = query(
    """
    INSERT INTO sign_in_tries (subject, tries, began_at_ms, last_at_ms) VALUES ($1, 1, $2, $2)
    ON CONFLICT (subject) DO UPDATE SET
        tries = CASE WHEN sign_in_tries.began_at_ms <= $3 THEN 1 ELSE sign_in_tries.tries + 1 END,
        began_at_ms = CASE WHEN sign_in_tries.began_at_ms <= $3 THEN $2 ELSE sign_in_tries.began_at_ms END,
        last_at_ms = $2
    WHERE sign_in_tries.began_at_ms <= $3 OR sign_in_tries.tries < $4
    RETURNING tries""",
)
"""Counts a try in a count that isn't full, and gives no row otherwise. A count that began at $3 or before begins again.
"""

GIVE_TRIES_BACK: Final = query(
    """
    UPDATE sign_in_tries SET tries = CASE WHEN tries > $2 THEN tries - $2 ELSE 0 END
    WHERE subject = $1 AND began_at_ms <= $3
    RETURNING subject""",
)
"""Takes tries off a count, unless it began after $3, and so has none of them."""

FORGET_TRIES: Final = query("DELETE FROM sign_in_tries WHERE subject = $1 RETURNING subject")
"""Begins the count of a subject again."""

FORGET_OLD_TRIES: Final = query(
    """
    DELETE FROM sign_in_tries WHERE subject IN (
        SELECT subject FROM sign_in_tries WHERE last_at_ms <= $1 ORDER BY last_at_ms LIMIT 100 FOR UPDATE SKIP LOCKED
    )
    RETURNING subject""",
)
"""Removes counts that are over. It waits for nobody: others wait for the count that its unit has taken."""

ADD_CHALLENGE: Final = query(
    "INSERT INTO console_challenges (name, bearer, way, ends_at_ms) VALUES ($1, $2, $3, $4) RETURNING name"
)
"""Adds what a browser has to bring back."""

KEEP_CHALLENGE: Final = query(
    """
    INSERT INTO console_challenges (name, bearer, way, ends_at_ms) VALUES ($1, $2, $3, $4)
    ON CONFLICT (name) DO UPDATE SET name = excluded.name
    RETURNING way""",
)
"""Adds what a browser has to bring back, unless one of that name is there, and gives the way of the one that is."""

GET_CHALLENGE: Final = query("SELECT way FROM console_challenges WHERE name = $1 AND bearer = $2 AND ends_at_ms > $3")
"""Reads the way of what a browser has to bring back; gives no row where it isn't there, or over."""

TAKE_CHALLENGE: Final = query(
    "DELETE FROM console_challenges WHERE name = $1 AND bearer = $2 AND ends_at_ms > $3 RETURNING way"
)
"""Takes what a browser brings back, which nobody can a second time; gives no row where it isn't there, or over."""

FORGET_OLD_CHALLENGES: Final = query("DELETE FROM console_challenges WHERE ends_at_ms <= $1 RETURNING name")
"""Removes what nobody has brought back in time."""
