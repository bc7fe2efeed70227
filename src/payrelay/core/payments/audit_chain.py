"""The audit chain: the hashes that tie every line of history to the one before it, and all of them to an anchor.

Rules:

1. What is hashed is packed first: a list of texts, numbers and nothings, each with its own length, so that no two
   lists come out as the same bytes. Each kind of hash begins with a word of its own.
2. Hashes that prove something are keyed. Whoever can write to the database, and has not the key, can make none.
3. What is kept of a line is enough to compute it again; nothing depends on a column that others may change.

To be changed together: ``UNHASHED``, the columns of the table ``operations``, and ``docs/operations.md``, which says
what the audit can find.
"""

import hashlib
from collections.abc import Callable
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

import msgspec

from payrelay.core.payments.operation import Operation

KEY_BYTES: Final = 32
_BLOCK_BYTES: Final = 64
_INNER: Final = bytes(byte ^ 0x36 for byte in range(256))
_OUTER: Final = bytes(byte ^ 0x5C for byte in range(256))

UNHASHED: Final = frozenset({"chain", "inquire_at_ms", "claim", "claim_ends_at_ms"})
"""What changes without a line of history: when to look next, and claims, which are taken back when they have lapsed.
The chain itself is the hash."""

HASHED: Final = tuple(name for name in Operation.__struct_fields__ if name not in UNHASHED)
"""The columns of an operation that its lines answer for, in the order in which they came to be."""

FIRST_HASHED: Final = HASHED.index("customer_id")
"""How many of them the first chains had. Those that came later are left out from the end on while they are nothing, so
that the digests of rows from before them hold: ``customer_id`` is the first such. Another one goes behind it."""

Value: TypeAlias = str | int | bytes | None

_pack = msgspec.msgpack.Encoder().encode
_hashed_values: Callable[[Operation], tuple[Value, ...]] = attrgetter(
    *("kind.stored" if name == "kind" else name for name in HASHED)
)

_ROW: Final = "row"
_ENTRY: Final = "line"
_ANSWER: Final = "answer"
_ANCHOR: Final = "anchor"


class Link(NamedTuple):
    """What is hashed of one line of history.

    Attributes:
        operation_id, version, at_ms, event, state: as the line has them.
        evidence: the JSON text, as it is stored.
        row_digest: of the operation's row as this line left it.
        answer_digest: of the answer that came with this line; empty where none did.
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
    """What an anchor covers: all lines of history from one moment up to, and without, another."""

    number: int
    from_ms: int
    until_ms: int
    made_at_ms: int


def row_digest(operation: Operation) -> str:
    """Gives the digest of an operation's row; 64 hex digits, like every other hash here."""
    return digest_of_values(_hashed_values(operation))


def digest_of_values(values: tuple[Value, ...]) -> str:
    """Gives the same from the values of the columns HASHED, in their order, whatever they are."""
    while len(values) > FIRST_HASHED and values[-1] is None:
        values = values[:-1]
    return hashlib.sha256(_pack((_ROW, values))).hexdigest()


class ChainKey:
    """The key of the chain. It keeps the state of HMAC-SHA256 behind its key, which halves the cost of a hash."""

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise ValueError(f"the key of the chain has {KEY_BYTES} bytes")
        block = secret.ljust(_BLOCK_BYTES, b"\0")
        self._inner = hashlib.sha256(block.translate(_INNER))
        self._outer = hashlib.sha256(block.translate(_OUTER))

    def entry(self, previous: str, link: Link) -> str:
        """Gives the hash of a line, and by ``previous``, the hash of the line before it, of all before it."""
        return self._hash(_pack((_ENTRY, previous, link)))

    def answer(self, operation_id: str, answer: bytes) -> str:
        """Gives the digest of an answer before it is sealed. It is keyed: no answer can be guessed from it."""
        return self._hash(_pack((_ANSWER, operation_id, answer)))

    def anchor(self, previous: str, span: AnchoredSpan) -> "AnchorDigest":
        """Begins the digest of an anchor; ``previous`` is the digest of the one before it."""
        inner = self._inner.copy()
        inner.update(_pack((_ANCHOR, previous, span)))
        return AnchorDigest(inner, self._outer)

    def _hash(self, message: bytes) -> str:
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.hexdigest()


class AnchorDigest:
    """The digest of an anchor, over any number of lines in the order of time, operation and version."""

    def __init__(self, inner: "hashlib._Hash", outer: "hashlib._Hash") -> None:
        self._inner = inner
        self._outer = outer
        self.entries = 0

    def add(self, operation_id: str, version: int, entry: str) -> None:
        """Takes the hash of the next line."""
        self._inner.update(_pack((operation_id, version, entry)))
        self.entries += 1

    def end(self) -> str:
        """Gives the digest of all that was taken; how many there were is part of it."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(_pack(self.entries))
        outer.update(inner.digest())
        return outer.hexdigest()
