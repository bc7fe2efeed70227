"""Covers what had no digest in the version before: the rows of operations, each compared with its history."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final

import msgspec

from payrelay.clock import Clock
from payrelay.core.payments.audit_chain import HASHED, ChainKey, digest_of_values
from payrelay.store.digests.rows import (
    CHECKOUTS_IN_CLEAR,
    OPERATIONS,
    SIGNED_TEXTS,
    TRUSTED_LATER,
    NewDigest,
    RowDigests,
    RowKey,
    locked_page,
    put_digests,
    without,
)
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows
from payrelay.store.engine.sealing import Seal
from payrelay.store.meta import noted
from payrelay.store.payments.audit import ChainedEntry, Trail, chained_entry
from payrelay.store.statements.digests.rows import any_digest
from payrelay.store.statements.payments.audit import AUDIT_ENTRIES_BETWEEN
from payrelay.store.statements.payments.signed_texts import COUNT_TEXTS, SET_TEXTS

_HASHED: Final = tuple(OPERATIONS.read.index("probe_at_ms" if name == "inquire_at_ms" else name) for name in HASHED)
_SUBJECT: Final = SIGNED_TEXTS.read.index("subject")
_OF: Final = {name: index for index, name in enumerate(OPERATIONS.read)}


MORE_ROW_DIGESTS: Final = "more row digests"
"""The name of the upgrade step; never changed."""


async def cover_more_rows(database: Database, seal: Seal, secret: bytes) -> None:
    """Gives digests to the rows that have none yet, and new ones where a digest covers more than it did.

    The row of an operation gets one where it is as its newest journal entry left it, and its history follows. Any other
    one was changed by somebody, gets none, and is left for a person. Rows of the other tables are trusted as they
    stand. One unit of work does it all and notes the step as finished, as that of the earlier rows. Raises
    StoreUnavailable, StoreUnusable.
    """
    key, rows = ChainKey(secret), RowKey(secret)
    trusted = RowDigests(database, secret, Clock())
    earlier = await Trail(database, seal, key).earlier()
    covering = _Covering(rows, key, has_earlier=earlier is not None and earlier.entries > 0)
    await database.write(_covered(seal, trusted, rows, covering))


async def has_covered_more_rows(database: Database) -> bool:
    """Tells whether operations or signed texts were covered before, whatever the check of the key says.

    The rows of the other tables may have digests from the step of the earlier rows. Raises StoreUnavailable.
    """
    return bool(await database.read(all_rows(Statement(any_digest((OPERATIONS.name, SIGNED_TEXTS.name)), ()))))


def _covered(seal: Seal, trusted: RowDigests, rows: RowKey, covering: "_Covering") -> Unit[None]:
    if not (yield from noted(seal, MORE_ROW_DIGESTS)):
        return  # another process was quicker
    for table in TRUSTED_LATER:
        yield from trusted.add_missing(table)
    yield from _for_each_page(lambda after: _references(rows, after))
    yield from _for_each_page(lambda after: _signed_texts(rows, after))
    yield from _for_each_page(covering.page)


def _for_each_page(page: Callable[[Row], Unit[Row | None]]) -> Unit[None]:
    after: Row | None = ()
    while after is not None:
        after = yield from page(after)


def _references(key: RowKey, after: Row) -> Unit[Row | None]:
    """Covers the customers' names in checkouts, where the digest without them is right; gives where to go on.

    They lie in clear as yet: a later step hides them.
    """
    rows = yield locked_page(CHECKOUTS_IN_CLEAR, after)
    added = []
    for *values, digest in rows:
        unnamed = without(CHECKOUTS_IN_CLEAR, values, "customer_reference")
        if unnamed != values and key.fits(CHECKOUTS_IN_CLEAR, (*unnamed, digest)):
            added.append(NewDigest(tuple(values), key.of(CHECKOUTS_IN_CLEAR, values), was=str(digest)))
    if added:
        yield put_digests(CHECKOUTS_IN_CLEAR, added)
    return rows[-1][:1] if rows else None


def _signed_texts(key: RowKey, after: Row) -> Unit[Row | None]:
    """Covers the texts of forms and calls, and how many each has; gives where to go on."""
    rows = yield locked_page(SIGNED_TEXTS, after)
    bare = [values for *values, digest in rows if digest == ""]
    subjects = sorted({str(values[_SUBJECT]) for values in bare})
    counted = yield Statement(COUNT_TEXTS, (msgspec.json.encode(subjects).decode(),))
    texts = {str(subject): number for subject, number in counted}
    added = []
    for *named, _ in bare:
        row = (*named, texts[str(named[_SUBJECT])])
        yield Statement(SET_TEXTS, (*row[: SIGNED_TEXTS.keys], row[-1]))
        added.append(NewDigest(row, key.of(SIGNED_TEXTS, row)))
    if added:
        yield put_digests(SIGNED_TEXTS, added)
    return rows[-1][: SIGNED_TEXTS.keys] if rows else None


class _Covering:
    """Gives digests to the rows of operations, page by page."""

    def __init__(self, rows: RowKey, chain: ChainKey, *, has_earlier: bool) -> None:
        self._rows = rows
        self._chain = chain
        self._has_earlier = has_earlier

    def page(self, after: Row) -> Unit[Row | None]:
        """Gives the key up to which the rows have digests now; None at the end."""
        rows = yield locked_page(OPERATIONS, after)
        if not rows:
            return None
        found = yield Statement(AUDIT_ENTRIES_BETWEEN, (rows[0][0], rows[-1][0]))
        entries = map(chained_entry, found)
        histories = {id_: list(each) for id_, each in groupby(entries, lambda entry: entry.link.operation_id)}
        added = [
            NewDigest(tuple(values), self._rows.of(OPERATIONS, values))
            for *values, digest in rows
            if digest == "" and self._is_as_left(values, histories.get(str(values[0]), []))
        ]
        if added:
            yield put_digests(OPERATIONS, added)
        return rows[-1][:1]

    def _is_as_left(self, row: Row, entries: Sequence[ChainedEntry]) -> bool:
        previous = ""
        for version, entry in enumerate(entries, 1):
            is_of_chain = bool(previous or entry.hash)
            if entry.link.version != version:
                return False
            if is_of_chain and self._chain.entry(previous, entry.link) != entry.hash:
                return False
            previous = entry.hash
        if not entries or (row[_OF["version"]], row[_OF["chain"]]) != (len(entries), previous):
            return False
        if not previous:  # from before the chain, of which the upgrade of that time has recorded what there was
            return self._has_earlier and row[_OF["state"]] == entries[-1].link.state
        return digest_of_values(tuple(row[index] for index in _HASHED)) == entries[-1].link.row_digest
