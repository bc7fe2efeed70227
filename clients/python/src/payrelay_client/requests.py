"""What is sent: one request, and one payment."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, Literal, TypeVar
from urllib.parse import quote, urlencode

from payrelay_client import exact_json
from payrelay_client.replies import NoReply, Reply

Method = Literal["GET", "POST", "PATCH", "DELETE"]
Data = TypeVar("Data")

_CARRIED_OUT_TWICE_UNLESS = frozenset({409, 429, 503})


class Repeat(Enum):
    """Whether a request may be sent again where its answer was lost."""

    FREELY = "freely"
    """It changes nothing, or its second send does nothing more."""
    NOT_DONE_ONLY = "not_done_only"
    """The service would carry it out twice: it is sent again only where the service says that it did nothing."""

    def allows(self, got: Reply | NoReply) -> bool:
        """Tells whether the request may be sent again after this."""
        if self is Repeat.FREELY:
            return True
        return (
            isinstance(got, Reply)
            and got.http_status in _CARRIED_OUT_TWICE_UNLESS
            and got.error.get("retry") == "after"
        )


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request: its path begins behind the account's address, and its body is the same at every send."""

    method: Method
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    repeat: Repeat = Repeat.FREELY

    @property
    def target(self) -> str:
        """The path with its query."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


@dataclass(frozen=True, kw_only=True)
class Effect(Generic[Data]):
    """A payment, or another thing that must happen once.

    Attributes:
        request: what is sent for it.
        kind: of the key.
        name: what it is called, the same after a crash; None where it has no name by itself.
        again: whether another attempt is wanted.
        read: makes its data of the answer's.
    """

    request: Request
    kind: str
    name: str | None
    again: bool
    read: Callable[[object], Data]


def segment(text: str) -> str:
    """Writes a text as one segment of a path."""
    return quote(text, safe="")


def get(path: str, query: Mapping[str, object] | None = None, *, no_cache: bool = False) -> Request:
    """A read; members of the query that are None are left out."""
    headers = {"Cache-Control": "no-cache"} if no_cache else {}
    return Request(method="GET", path=path, query=_query(query), headers=headers)


def post(path: str, body: Mapping[str, object] | None, *, repeat: Repeat = Repeat.FREELY) -> Request:
    """A POST of a JSON object; members that are None are left out. Raises InvalidAmount for a float."""
    return Request(method="POST", path=path, body=_json(body), repeat=repeat)


def patch(path: str, body: Mapping[str, object]) -> Request:
    """A PATCH with a JSON object, which has None where a member is to be removed."""
    return Request(method="PATCH", path=path, body=exact_json.encode(body))


def delete(path: str, query: Mapping[str, object] | None = None) -> Request:
    """A DELETE."""
    return Request(method="DELETE", path=path, query=_query(query))


def _query(query: Mapping[str, object] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (query or {}).items() if value is not None}


def _json(body: Mapping[str, object] | None) -> bytes | None:
    return None if body is None else exact_json.encode({name: each for name, each in body.items() if each is not None})
