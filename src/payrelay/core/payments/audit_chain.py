"""The audit chain: hashes that link each journal entry to the one before it, and all entries to an anchor.

Rules:

1. Values are packed before they are hashed: a list of texts, numbers and nulls, each with its length. So no two lists
   have equal bytes. Each kind of hash begins with a word of its own.
2. The hashes of the chain are keyed. An attacker who can write to the database and lacks the key can make none.
3. A stored journal entry is enough to compute its hash again; no hash depends on a column that others may change.
4. A history is cleared from its beginning. Its checkpoint has the hash of the last cleared entry, to which the first
   kept entry is chained.
5. The checkpoint of an anchor has the sum over the entries of its span that must still be there. Each entry that is
   cleared is taken off. So one that is removed otherwise is missed, also where its whole operation was removed.
6. A cleared history is closed: its operation's row keeps the checkpoint and the newest entry. Only what can't be
   computed from the row is kept. The rest of the entry follows from the row, which no longer changes: its time, its
   state, its digest and its hash. So a row that is not as the entry left it is found by the entry's hash.

To be changed together: ``UNHASHED``, the columns of the table ``operations``, and ``docs/operations.md``, which says
what the audit can find.
"""

import base64
import hashlib
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

import msgspec

from payrelay.core.payments.operation import Operation

KEY_BYTES: Final = 32
_BLOCK_BYTES: Final = 64
_INNER: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTER: Final = bytes(byte ^ 0x5C for byte in range(256))

UNHASHED: Final = frozenset({"chain", "inquire_at_ms", "claim", "claim_ends_at_ms"})
"""Columns that change without a journal entry: the time of the next status inquiry, and claims, which are removed after
they lapse. ``chain`` is the hash itself."""

HASHED: Final = tuple(name for name in Operation.__struct_fields__ if name not in UNHASHED)
"""The columns of an operation that its journal entries cover, in the order in which they are hashed."""

FIRST_HASHED: Final = HASHED.index("customer_id")
"""How many of these columns a digest always covers. The columns from this place on are left out from the end while they
are null, so that a new one behind them changes no digest of a row that lacks it."""

Value: TypeAlias = str | int | bytes | None

_pack = msgspec.msgpack.Encoder().encode
_hashed_values: Callable[[Operation], tuple[Value, ...]] = attrgetter(
    *("kind.stored" if name == "kind" else name for name in HASHED)
)

_ROW: Final = "row"
_ENTRY: Final = "line"
_ANSWER: Final = "answer"
_ANCHOR: Final = "anchor"
_EXPLANATION: Final = "explanation"
_CHECKPOINT: Final = "checkpoint"
SUM_MODULUS: Final = 2**256
_SUM_DIGITS: Final = 64
EXPLANATION_PREFIX: Final = "explained_anchor/"
"""How the names of explanations begin in ``meta``."""


class Link(NamedTuple):
    """What is hashed of one journal entry.

    Attributes:
        operation_id, version, at_ms, event, state: as the entry has them.
        evidence: the JSON text, as it is stored.
        row_digest: of the operation's row after this entry.
        answer_digest: of the answer that was stored with this entry; empty where there was none.
    """

    operation_id: str
    version: int
    at_ms: int
    event: str | None
    state: str
    evidence: str
    row_digest: str
    answer_digest: str


class AnchoredSpan(NamedTuple):
    """What an anchor covers: all journal entries from ``from_ms`` up to, and without, ``until_ms``."""

    number: int
    from_ms: int
    until_ms: int
    made_at_ms: int


def row_digest(operation: Operation) -> str:
    """Gives the digest of an operation's row; 64 hex digits, like every other hash here."""
    return digest_of_values(_hashed_values(operation))


def digest_of_values(values: tuple[Value, ...]) -> str:
    """Gives the digest of a row from the values of the columns HASHED, in their order; the values aren't checked."""
    while len(values) > FIRST_HASHED and values[-1] is None:
        values = values[:-1]
    return hashlib.sha256(_pack((_ROW, values))).hexdigest()


class AnchorExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """A person's line that entries came into the span of an anchor after it was made, because a clock was wrong.

    It holds for what the span has at this moment and for nothing else: a later change of the span is a finding again.

    Attributes:
        number: the number of the anchor.
        anchor: the digest of the anchor as it was made.
        entries: how many journal entries the anchor has.
        present: the digest of what the span has now.
        present_entries: how many journal entries the span has now.
        at_ms: when it was explained; milliseconds since 1970, UTC.
        operator: who explained it.
        reason: the operator's own reason.
    """

    number: int
    anchor: str
    entries: int
    present: str
    present_entries: int
    at_ms: int
    operator: str
    reason: str

    @property
    def name(self) -> str:
        """Its name in the store: a span that gets further entries may be explained once more."""
        return f"{EXPLANATION_PREFIX}{self.number}/{self.present}"


class ChainKey:
    """The key of the chain. It keeps the state of HMAC-SHA256 behind its key, which halves the cost of a hash."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise ValueError(f"the key of the chain has {KEY_BYTES} bytes")
        block = secret.ljust(_BLOCK_BYTES, b"\0")
        self._inner = hashlib.sha256(block.translate(_INNER))
        self._outer = hashlib.sha256(block.translate(_OUTER))

    def entry(self, previous: str, link: Link) -> str:
        """Gives the hash of a journal entry. ``previous`` is the hash of the entry before it, and so covers all."""
        return self._hash(_pack((_ENTRY, previous, link)))

    def answer(self, operation_id: str, answer: bytes) -> str:
        """Gives the keyed digest of an answer before it is sealed; without the key it helps nobody guess answers."""
        return self._hash(_pack((_ANSWER, operation_id, answer)))

    def explanation(self, text: bytes) -> str:
        """Gives the keyed digest of an explanation, which signs it."""
        return self._hash(_pack((_EXPLANATION, text)))

    def checkpoint(self, *values: Value) -> str:
        """Gives the keyed digest of values that stand for cleared entries."""
        return self._hash(_pack((_CHECKPOINT, values)))

    def anchor(self, previous: str, span: AnchoredSpan) -> "AnchorDigest":
        """Begins the digest of an anchor; ``previous`` is the digest of the anchor before it."""
        return self._begin((_ANCHOR, previous, span))

    def _begin(self, head: tuple[object, ...]) -> "AnchorDigest":
        inner = self._inner.copy()
        inner.update(_pack(head))
        return AnchorDigest(inner, self._outer)

    def _hash(self, message: bytes) -> str:
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.hexdigest()


class AnchorDigest:
    """The digest over any number of journal entries; an anchor's are in the order of time, operation and version."""

    def __init__(self, inner: "hashlib._Hash", outer: "hashlib._Hash") -> None:
        self._inner = inner
        self._outer = outer
        self.entries = 0

    def add(self, operation_id: str, version: int, entry: str) -> None:
        """Adds the hash of the next journal entry."""
        self._inner.update(_pack((operation_id, version, entry)))
        self.entries += 1

    def end(self) -> str:
        """Gives the digest of all entries that were added; their number is part of it."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(_pack(self.entries))
        outer.update(inner.digest())
        return outer.hexdigest()


class HistoryCheckpoint(NamedTuple):
    """What stands for the cleared beginning of a history.

    Attributes:
        operation_id: the operation.
        version: of the first entry that is kept.
        previous: the hash of the entry before it.
        state: the state that the entry before it left.
    """

    operation_id: str
    version: int
    previous: str
    state: str

    def signature(self, key: ChainKey) -> str:
        """Gives the keyed digest that signs it; 64 hex digits."""
        return key.checkpoint("history", *self)


class AnchorCheckpoint(NamedTuple):
    """What is left of the entries of an anchor.

    Attributes:
        number, anchor: the number and the digest of the anchor.
        entries: how many entries of its span must be there.
        total: the sum over them, 64 hex digits.
        cleared: how many were cleared.
    """

    number: int
    anchor: str
    entries: int
    total: str
    cleared: int

    def without(self, weights: list[int]) -> "AnchorCheckpoint":
        """Takes cleared entries off, by their weights."""
        left = (int(self.total, 16) - sum(weights)) % SUM_MODULUS
        return self._replace(
            entries=self.entries - len(weights), total=sum_text(left), cleared=self.cleared + len(weights)
        )

    def signature(self, key: ChainKey) -> str:
        """Gives the keyed digest that signs it; 64 hex digits."""
        return key.checkpoint("anchor", *self)


def weight(key: ChainKey, operation_id: str, version: int, entry: str) -> int:
    """Gives the weight of an entry with this hash in the sum of its span; without the key nobody can choose one."""
    return int(key.checkpoint("weight", operation_id, version, entry), 16)


def sum_text(total: int) -> str:
    """Writes a sum as it is stored."""
    return f"{total % SUM_MODULUS:0{_SUM_DIGITS}x}"


_Kept: TypeAlias = tuple[int, str, str, str, str | None, str, msgspec.Raw]
"""Of a closed history: the version, the hash and the state before its newest entry, the checkpoint's signature, the
entry's event, the digest of its answer, and its evidence. The version comes first: statements compare it."""
_encode_kept: Final = msgspec.json.Encoder().encode
_decode_kept: Final = msgspec.json.Decoder(_Kept).decode
_PLACES: Final = {name: place for place, name in enumerate(Operation.__struct_fields__)}
_HASHED_PLACES: Final = tuple(_PLACES[name] for name in HASHED)


class ClosedHistory(NamedTuple):
    """A cleared history, as it follows from the row of its operation.

    Attributes:
        checkpoint: what stands for the cleared entries.
        is_signed: whether the key of the chain has signed the checkpoint.
        newest: the hashed members of the newest entry.
        hash: the hash of the newest entry, as the row has it.
    """

    checkpoint: HistoryCheckpoint
    is_signed: bool
    newest: Link
    hash: str

    def is_right(self, key: ChainKey) -> bool:
        """Tells whether the service closed it, and the row is as the newest entry left it."""
        return self.is_signed and key.entry(self.checkpoint.previous, self.newest) == self.hash


def closed_text(checkpoint: HistoryCheckpoint, newest: Link, key: ChainKey) -> str:
    """Gives what the row of an operation keeps of a history that is cleared up to its newest entry."""
    kept: _Kept = (
        checkpoint.version,
        _short(checkpoint.previous),
        checkpoint.state,
        _short(checkpoint.signature(key)),
        newest.event,
        _short(newest.answer_digest),
        msgspec.Raw(newest.evidence.encode()),
    )
    return _encode_kept(kept).decode()


def closed_history(text: Value, row: Sequence[Value], key: ChainKey) -> ClosedHistory | None:
    """Reads what is kept of a history; None where it can't be read. ``row`` has the columns of its operation."""
    try:
        version, previous, state, signature, event, answer_digest, evidence = _decode_kept(str(text))
        checkpoint = HistoryCheckpoint(str(row[0]), version, _long(previous), state)
        is_signed = checkpoint.signature(key) == _long(signature)
        newest = Link(
            checkpoint.operation_id,
            version,
            row[_PLACES["updated_at_ms"]],  # type: ignore[arg-type] # columns have their types by the schema
            event,
            str(row[_PLACES["state"]]),
            bytes(evidence).decode(),
            digest_of_values(tuple(row[place] for place in _HASHED_PLACES)),
            _long(answer_digest),
        )
    except (msgspec.DecodeError, ValueError):
        return None
    return ClosedHistory(checkpoint, is_signed, newest, str(row[_PLACES["chain"]]))


def _short(digest: str) -> str:
    """Writes hex digits as base64, which takes a third less."""
    return base64.urlsafe_b64encode(bytes.fromhex(digest)).decode().rstrip("=")


def _long(text: str) -> str:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).hex()
