"""Signed texts in the store: each text that a gateway signs once it gets a form or a call, and what has it.

Rules:

1. A text is stored before the form leaves, and in the transaction of the call's intent. It is never removed.
2. A text is stored as a keyed digest, which tells nothing of an order to whom lacks the store's secret. It has nothing
   of a person, so that an erasure leaves it.
3. A checkout whose texts aren't all here counts with every amount that it may have been signed for.
4. A row has a digest of its own, which covers how many texts its checkout or operation has in all. So nobody who lacks
   the key hides what has a text, by removing a row or by changing it: rule 3 holds then.
5. What a call or a form for a fixed amount has signed also follows from its own row, and counts whatever is here.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from payrelay.core.checkouts.checkout import Checkout, CheckoutState
from payrelay.core.checkouts.text_holders import HolderKind, TextHolder
from payrelay.core.gateways.signed_text import PURPOSE, SignedText
from payrelay.core.keyed_digest import DigestKey
from payrelay.core.payments.operation import Operation
from payrelay.store.digests.rows import RowDigests, RowKey
from payrelay.store.engine.database import Database, Row, Statement, Unit, all_rows
from payrelay.store.statements.payments import signed_texts as statements
from payrelay.store.statements.payments.packed_rows import PackedRow, unpacked
from payrelay.store.statements.payments.signed_texts import SIGNED_TEXTS

_DIGEST: Final = SIGNED_TEXTS.columns.index("digest")
_TEXTS: Final = SIGNED_TEXTS.columns.index("texts")
_PLANS: Final = "recurring"


class SignedTexts:
    """Stores signed texts in a database; ``secret`` is the key of the audit chain, and ``rows`` checks the rows."""

    def __init__(self, database: Database, rows: RowDigests, *, secret: bytes) -> None:
        self._database = database
        self._rows = rows
        self._key = DigestKey(secret, PURPOSE)

    def digest_of(self, merchant: str, text: SignedText) -> str:
        """Gives the keyed digest of a merchant's text: 64 hex digits, equal for equal texts whatever their border."""
        return self._key.digest(merchant, *text.digested)

    def of_call(self, operation: Operation, texts: Iterable[SignedText]) -> tuple[Statement, ...]:
        """Gives the statements that store the texts of a new operation's call, for the transaction of its intent."""
        merchant, at_ms = operation.merchant, operation.created_at_ms
        digests = sorted({self.digest_of(merchant, text) for text in texts})
        rows = [(merchant, digest, operation.id, HolderKind.CALL, len(digests)) for digest in digests]
        return tuple(_put(self._rows.key, row, at_ms) for row in rows)

    async def keep_form(self, checkout: Checkout, texts: Iterable[SignedText], *, at_ms: int) -> bool:
        """Stores the texts that a checkout's form has; when this returns True, the form may leave.

        False where the checkout ended before its first form was stored: whoever ended it may have been told that none
        is out. Writes nothing that is stored already. May be repeated. Raises StoreUnavailable.
        """
        wanted = {self.digest_of(checkout.merchant, text) for text in texts}
        if not wanted:
            return True
        stored = await self._database.read(all_rows(Statement(statements.TEXTS_OF, (checkout.id,))))
        if wanted <= {str(row[_DIGEST]) for row in stored if self._rows.key.fits(SIGNED_TEXTS, row)}:
            return True
        return await self._database.write(_keep(self._rows.key, checkout, wanted, at_ms))

    async def has_form(self, checkout_id: str) -> bool:
        """Tells whether a form of a checkout may have left, by any row: a wrong one proves that none did no more.

        Raises StoreUnavailable.
        """
        return bool(await self._database.read(all_rows(Statement(statements.TEXTS_OF, (checkout_id,)))))

    async def holders(self, merchant: str, readings: Sequence[SignedText]) -> list[TextHolder]:
        """Finds everything that may have a signature, by the orders and amounts that the signature fits.

        Without the calls that were surely not executed. Raises StoreUnavailable.
        """
        wrong: set[str] = set()
        found = await self._database.read(self._holders(merchant, readings, wrong))
        for name in sorted(wrong):
            await self._rows.report(name)
        return found

    def _holders(self, merchant: str, readings: Sequence[SignedText], wrong: set[str]) -> Unit[list[TextHolder]]:
        found: dict[str, TextHolder] = {}
        for digest in sorted({self.digest_of(merchant, reading) for reading in readings}):
            rows = yield Statement(statements.TEXT_HOLDERS, (merchant, digest))
            found.update(self._listed(rows, wrong))
        for reading in readings:
            parameters = (merchant, reading.order_id, reading.amount_minor, reading.currency)
            rows = yield Statement(statements.CALLS_LIKE, parameters)
            for packed, counts in rows:
                call = self._checked(packed, wrong)
                if counts or call.is_wrong:
                    found[call.id] = call.holder(HolderKind.CALL, is_exact=True)
            rows = yield Statement(statements.CHECKOUTS_LIKE, parameters)
            for packed, is_exact, counts in rows:
                form = self._checked(packed, wrong)
                is_fixed = form.row.value("kind") != _PLANS and bool(is_exact)
                may_be_out = is_fixed or not (yield from self._is_listed(form.id, wrong))
                if form.is_wrong or (counts and may_be_out):
                    found[form.id] = form.holder(HolderKind.FORM, is_exact=bool(is_exact))
        return list(found.values())

    def _listed(self, rows: Iterable[Row], wrong: set[str]) -> Iterator[tuple[str, TextHolder]]:
        for text, checkout, operation, counts in rows:
            listed = self._checked(text, wrong)
            if listed.is_wrong:
                continue
            kind, subject = HolderKind(str(listed.row.value("kind"))), str(listed.row.value("subject"))
            packed = operation if checkout is None else checkout
            if packed is None:
                yield subject, TextHolder(subject=subject, kind=kind, noun=None, order_id=None, is_exact=True)
                continue
            holder = self._checked(packed, wrong)
            if counts or holder.is_wrong:
                yield subject, holder.holder(kind, is_exact=True)

    def _is_listed(self, subject: str, wrong: set[str]) -> Unit[bool]:
        """Tells whether the list has all texts of a checkout."""
        rows = yield Statement(statements.TEXTS_OF, (subject,))
        checked = [_Checked(PackedRow(SIGNED_TEXTS, row), self._rows.key) for row in rows]
        wrong |= {each.row.name for each in checked if each.is_wrong}
        return bool(rows) and all(not each.is_wrong and each.row.value("texts") == len(rows) for each in checked)

    def _checked(self, packed: object, wrong: set[str]) -> "_Checked":
        checked = _Checked(unpacked(packed), self._rows.key)  # type: ignore[arg-type] # a column that isn't null
        if checked.is_wrong:
            wrong.add(checked.row.name)
        return checked


class _Checked:
    """The row of a text, a checkout or an operation, and whether its digest is wrong."""

    def __init__(self, row: PackedRow, key: RowKey) -> None:
        self.row = row
        self.is_wrong = not key.fits(*row)
        self.id = str(row.value("id"))

    def holder(self, kind: HolderKind, *, is_exact: bool) -> TextHolder:
        """Gives what has a text. What a wrong row says of its kind and order excuses nothing."""
        noun, order_id = (None, None) if self.is_wrong else (self.row.value("kind"), self.row.value("order_id"))
        return TextHolder(
            subject=self.id,
            kind=kind,
            noun=None if noun is None else str(noun),
            order_id=None if order_id is None else str(order_id),
            is_exact=is_exact,
        )


def _put(key: RowKey, row: tuple[str | int, ...], at_ms: int) -> Statement:
    return Statement(statements.PUT_SIGNED_TEXT, (*key.digested(SIGNED_TEXTS, row), at_ms))


def _keep(key: RowKey, checkout: Checkout, wanted: set[str], at_ms: int) -> Unit[bool]:
    states = yield Statement(statements.LOCK_CHECKOUT, (checkout.id,))
    stored = yield Statement(statements.TEXTS_OF, (checkout.id,))
    right = [row for row in stored if key.fits(SIGNED_TEXTS, row)]
    digests = {str(row[_DIGEST]) for row in right}
    # Where one was removed, the others say how many there were: the number stays too high, and the list incomplete.
    known = max([len(right), *(int(str(row[_TEXTS])) for row in right)])
    texts = known + len(wanted - digests)
    for digest in sorted(wanted | digests):
        yield _put(key, (checkout.merchant, digest, checkout.id, HolderKind.FORM, texts), at_ms)
    return bool(stored) or all(state == CheckoutState.OPEN for (state,) in states)
