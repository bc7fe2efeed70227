"""Keys of payments: how they are made, what is stored of them, and when another attempt is allowed.

Rules:

1. A key is sent only where its record was stored durably before the request left.
2. A record changes from ``open`` to ``done`` or ``nothing`` by a final answer alone.
3. A new attempt, with a new key, needs a final answer that nothing was charged.
"""

import json
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol
from urllib.parse import quote, urlsplit

from payrelay_client.errors import NameNeeded, StoreFailed

KEY_LENGTH_MAX: Final = 255
"""The longest Idempotency-Key that the service takes."""
VERSION: Final = 1
NOTHING_TAKEN: Final = frozenset({"declined", "refused", "failed"})
"""States of an operation that took no effect, for good. ``not_sent`` is none: a late copy of it may still arrive."""
PAGES_ENDED: Final = frozenset({"failed", "cancelled", "expired"})
"""States of a checkout after which the order may have another one."""

AttemptState = Literal["open", "done", "nothing"]


class Store(Protocol):
    """Where keys are stored: two functions over texts. Any number of threads may call them."""

    def get(self, name: str) -> str | None:
        """Gives what was put last under a name; None where nothing was. Raises where it can't be read."""

    def put(self, name: str, text: str) -> None:
        """Stores a text in place of the last one, and returns once it is durable. Raises where it isn't."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """What is stored of a payment: its newest attempt.

    Attributes:
        name: of the payment, in the store.
        attempt, key: the number of the attempt, and its Idempotency-Key.
        state: ``open`` while it may be sent, or was. ``done``: it took effect. ``nothing``: nothing was charged.
        refused: whether the service refused the request.
        checkout_id: of a checkout that was opened.
    """

    name: str
    attempt: int
    state: AttemptState = "open"
    refused: bool = False
    checkout_id: str | None = None

    @property
    def key(self) -> str:
        """The Idempotency-Key."""
        return f"{self.name}/{self.attempt}"

    def text(self) -> str:
        """Gives the record as it is stored."""
        members: dict[str, object] = {"v": VERSION, "attempt": self.attempt, "key": self.key, "state": self.state}
        if self.refused:
            members["refused"] = True
        if self.checkout_id is not None:
            members["checkout_id"] = self.checkout_id
        return json.dumps(members, separators=(",", ":"))

    def ended(self, state: AttemptState, *, refused: bool = False, checkout_id: str | None = None) -> "Record":
        """Gives the record after an answer."""
        return replace(self, state=state, refused=refused, checkout_id=checkout_id or self.checkout_id)


def account_of(address: str) -> str:
    """Gives the account that an address of the API names: the second last segment of its path."""
    segments = [each for each in urlsplit(address).path.split("/") if each]
    if len(segments) < 2:  # noqa: PLR2004 - the account, and "api"
        raise ValueError(f"{address} is no address of an account's API, such as https://pay.example.com/gateway/api")
    return segments[-2]


def store_name(kind: str, account: str, name: str | None) -> str:
    """Gives the name of a payment in the store; raises NameNeeded where it has none, or one that is no Unicode."""
    if not name:
        raise NameNeeded(f"a {kind} needs a name of its own, which is the same after a crash")
    try:
        return f"{kind}/{account}/{quote(name, safe='')}"
    except UnicodeEncodeError as error:
        raise NameNeeded(f"the name of the {kind} is no valid Unicode") from error


def begun(name: str, attempt: int) -> Record:
    """Gives the record of an attempt that begins; raises NameNeeded where its key would be too long."""
    record = Record(name=name, attempt=attempt)
    if len(record.key) > KEY_LENGTH_MAX:
        raise NameNeeded(f"the key would have {len(record.key)} characters, and {KEY_LENGTH_MAX} are allowed")
    return record


def read_record(name: str, text: str) -> Record:
    """Reads what the store has under a name; raises StoreFailed for what is no record."""
    try:
        members = json.loads(text)
        record = Record(
            name=name,
            attempt=int(members["attempt"]),
            state=members["state"],
            refused=members.get("refused") is True,
            checkout_id=members.get("checkout_id"),
        )
        is_record = members["v"] == VERSION and members["key"] == record.key and record.attempt > 0
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreFailed(f"the store has no record of this package under {name}") from error
    if not is_record or record.state not in {"open", "done", "nothing"}:
        raise StoreFailed(f"the store has another record than this package's under {name}")
    return record
