"""Signed texts in the store: each text that a gateway signs once it gets a form or a call, and what has it.

Rules:

1. A text is stored before the form leaves, and in the transaction of the call's intent. It is never removed.
2. A text is stored as a keyed digest, which tells nothing of an order to whom lacks the store's secret. It has nothing
   of a person, so that an erasure leaves it.
3. A checkout or an operation that has no text here counts with every amount that it may have been signed for. So a
   process of an earlier version, which stores no texts, hides nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from payrelay.core.checkouts.checkout import Checkout
from payrelay.core.checkouts.text_holders import HolderKind, TextHolder
from payrelay.core.gateways.signed_text import PURPOSE, SignedText
from payrelay.core.keyed_digest import DigestKey
from payrelay.core.payments.operation import Operation
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows
from payrelay.store.statements import signed_texts as statements

OF_UNKNOWN_TEXT: Final = ""
"""In place of the digest of a text that isn't known."""


class SignedTexts:
    """Stores signed texts in a database; ``secret`` is the key of the audit chain."""

    def __init__(self, database: Database, *, secret: bytes) -> None:
        self._database = database
        self._key = DigestKey(secret, PURPOSE)

    def digest_of(self, merchant: str, text: SignedText) -> str:
        """Gives the keyed digest of a merchant's text: 64 hex digits, equal for equal texts whatever their border."""
        return self._key.digest(merchant, *text.digested)

    def of_call(self, operation: Operation, texts: Iterable[SignedText]) -> tuple[Statement, ...]:
        """Gives the statements that store the texts of a new operation's call, for the transaction of its intent."""
        merchant, at_ms = operation.merchant, operation.created_at_ms
        digests = sorted({self.digest_of(merchant, text) for text in texts})
        return tuple(added(merchant, digest, operation.id, HolderKind.CALL, at_ms) for digest in digests)

    async def keep_form(self, checkout: Checkout, texts: Iterable[SignedText], *, at_ms: int) -> None:
        """Stores the texts that a checkout's form has; when this returns, the form may leave.

        Writes nothing that is stored already. May be repeated. Raises StoreUnavailable.
        """
        merchant, subject = checkout.merchant, checkout.id
        wanted = {self.digest_of(merchant, text) for text in texts}
        if not wanted:
            return
        stored = await self._database.read(all_rows(Statement(statements.DIGESTS_OF, (subject,))))
        missing = sorted(wanted - {str(row[0]) for row in stored})
        if missing:
            rows = [added(merchant, digest, subject, HolderKind.FORM, at_ms) for digest in missing]
            await self._database.write(all_of(rows))

    async def holders(self, merchant: str, readings: Sequence[SignedText]) -> list[TextHolder]:
        """Finds everything that may have a signature, by the orders and amounts that the signature fits.

        Without the calls that were surely not executed. Raises StoreUnavailable.
        """
        return await self._database.read(self._holders(merchant, readings))

    async def is_incomplete(self, merchant: str) -> bool:
        """Tells whether the merchant has given out a form, or made a call, of which the text isn't known."""
        return bool(await self._database.read(all_rows(Statement(statements.IS_INCOMPLETE, (merchant,)))))

    def _holders(self, merchant: str, readings: Sequence[SignedText]) -> Unit[list[TextHolder]]:
        found: dict[str, TextHolder] = {}
        for digest in sorted({self.digest_of(merchant, reading) for reading in readings}):
            rows = yield Statement(statements.TEXT_HOLDERS, (merchant, digest))
            found.update(_named(rows, is_exact=True))
        for reading in readings:
            parameters = (merchant, reading.order_id, reading.amount_minor, reading.currency)
            rows = yield Statement(statements.UNLISTED_HOLDERS, parameters)
            for row in rows:
                found.update(_named([row[:4]], is_exact=row[4] == 1))
            of_order = SignedText(order_id=reading.order_id, amount_minor=None, currency=reading.currency)
            rows = yield Statement(statements.TEXT_HOLDERS, (merchant, self.digest_of(merchant, of_order)))
            found = {**dict(_named(rows, is_exact=False)), **found}
        return list(found.values())


def added(merchant: str, digest: str, subject: str, kind: HolderKind, at_ms: int) -> Statement:
    """Gives the statement that stores a text; it writes nothing where the text is stored already."""
    return Statement(statements.ADD_SIGNED_TEXT, (merchant, digest, subject, kind, at_ms))


def all_of(steps: Iterable[Statement]) -> Unit[None]:
    """A unit of several statements whose rows nobody needs."""
    for step in steps:  # noqa: UP028, an iterable takes no result
        yield step


def _named(rows: Iterable[Row], *, is_exact: bool) -> Iterator[tuple[str, TextHolder]]:
    for subject, kind, noun, order_id in rows:
        yield (
            str(subject),
            TextHolder(
                subject=str(subject),
                kind=HolderKind(str(kind)),
                noun=None if noun is None else str(noun),
                order_id=None if order_id is None else str(order_id),
                is_exact=is_exact,
            ),
        )
