"""Fills in the signed texts of the forms and calls of earlier versions, which stored none.

Rows alone are read, and nothing that is sealed: so a checkout whose details were forgotten has its texts too. All
accounts of those versions were at PayHere.

Where only a form's order is known, every amount of it counts as signed. That is so for an approval that charges nothing
and for a plan, whose amount on a day depends on settings of that day. The amounts that the gateway ever documented are
filled in beside that.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from payrelay.core.checkouts.checkout import CheckoutKind
from payrelay.core.checkouts.text_holders import HolderKind
from payrelay.core.gateways.signed_text import PURPOSE, SignedText
from payrelay.core.keyed_digest import DigestKey
from payrelay.store.engine.database import Database, Row, Statement, Value, all_rows
from payrelay.store.engine.queries import Query
from payrelay.store.signed_texts import OF_UNKNOWN_TEXT, added, all_of
from payrelay.store.statements.payments import signed_texts as statements

PAGE: Final = 200
"""Rows that are filled in at once: few enough to delay a server on the database by milliseconds."""
DOCUMENTED_MINOR: Final = {"LKR": (1_000,)}
DOCUMENTED_OTHER_MINOR: Final = (50, 51, 101)
"""The amounts that PayHere's documents have named for approvals and plans that charge nothing at once, in hundredths.
"""


class _Signed(NamedTuple):
    """What a form or a call was made of; the amounts in hundredths, None for what the row doesn't have."""

    subject: str
    merchant: str
    kind: str
    order_id: Value
    amount_minor: Value
    first_minor: Value
    currency: Value


async def fill_signed_texts(database: Database, secret: bytes, *, at_ms: int) -> None:
    """Stores the texts of all checkouts and of all authorizations; may be stopped at any time, and repeated.

    A row that lacks what its text is made of makes the merchant's list incomplete. A process of the version before may
    store further rows meanwhile: they have no text here, and count with every amount (``store.signed_texts``). Raises
    StoreUnavailable.
    """
    key = DigestKey(secret, PURPOSE)
    for page, kind in (
        (statements.CHECKOUTS_AFTER, HolderKind.FORM),
        (statements.AUTHORIZATIONS_AFTER, HolderKind.CALL),
    ):
        await _fill(database, key, page, kind, at_ms)


async def _fill(database: Database, key: DigestKey, page: Query, kind: HolderKind, at_ms: int) -> None:
    after = ""
    while rows := await database.read(all_rows(Statement(page, (after, PAGE)))):
        steps = [step for row in rows for step in _steps(key, _signed(row), kind, at_ms)]
        await database.write(all_of(steps))
        after = str(rows[-1][0])


def _signed(row: Row) -> _Signed:
    subject, merchant, kind, *others = row
    return _Signed(str(subject), str(merchant), str(kind), *others)


def _steps(key: DigestKey, signed: _Signed, kind: HolderKind, at_ms: int) -> Iterator[Statement]:
    texts = _texts_of(signed)
    for text in texts:
        digest = key.digest(signed.merchant, *text.digested)
        yield added(signed.merchant, digest, signed.subject, kind, at_ms)
    if not texts:
        yield added(signed.merchant, OF_UNKNOWN_TEXT, signed.subject, HolderKind.UNKNOWN, at_ms)


def _texts_of(signed: _Signed) -> list[SignedText]:
    """Gives every text that a form or a call may have; none where that can't be told."""
    order_id, currency = signed.order_id, signed.currency
    if not isinstance(order_id, str) or not isinstance(currency, str):
        return []
    amounts: set[int | None] = {
        amount for amount in (signed.amount_minor, signed.first_minor) if isinstance(amount, int)
    }
    charges_nothing = signed.kind == CheckoutKind.PREAPPROVAL and not amounts
    if charges_nothing or signed.kind == CheckoutKind.RECURRING:
        amounts |= {None, *DOCUMENTED_MINOR.get(currency, DOCUMENTED_OTHER_MINOR)}
    return [SignedText(order_id=order_id, amount_minor=amount, currency=currency) for amount in amounts]
