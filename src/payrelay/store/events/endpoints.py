"""Endpoints in the store: the addresses for a principal's events, and the secrets that sign these.

Addresses and secrets are sealed, each bound to its row: the path of an address is often a secret too. Only a sender
opens the secrets. A keyed hash of the address tells whether two of one principal are equal.
"""

from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

import msgspec

from payrelay.core.events.delivery import Endpoint, EndpointState
from payrelay.core.events.event import STOPPED, OutgoingEvent, event_id
from payrelay.core.secret import Secret
from payrelay.errors import StoreUnusable
from payrelay.store.digests.rows import RowDigests, RowKey
from payrelay.store.engine.database import Database, Row, Statement, Unit, Value, all_rows, count_rows, first_row
from payrelay.store.engine.sealing import Seal
from payrelay.store.events import outbox
from payrelay.store.events.feed import Reader
from payrelay.store.statements import alerts as alert_statements
from payrelay.store.statements.events import deliveries as delivery_statements
from payrelay.store.statements.events import endpoints as statements
from payrelay.store.statements.events.endpoints import ENDPOINTS

ENDPOINTS_MAX: Final = 20
"""Of one principal on one merchant account: each event may go to all of them."""
LISTED_MAX: Final = 10_000
FORGOTTEN_AT_ONCE: Final = 1_000
"""Deliveries of a removed endpoint that one unit of work forgets."""

_SEPARATOR: Final = ","
_COLUMNS: Final = tuple(Endpoint.__struct_fields__)
"""In the order of the stored ones; in place of ``url`` a hash of it is stored."""
_URL_HASH: Final = _COLUMNS.index("url")
_Endpoints: TypeAlias = list[Endpoint]


class _StoredRow(NamedTuple):
    """What is stored of an endpoint beside its secrets: its columns, its sealed address, and the digest."""

    columns: tuple[Value, ...]
    sealed_url: bytes
    digest: str


class Target(msgspec.Struct, frozen=True):
    """An endpoint with the secrets for its webhooks, and the hash of its address; ``older`` may have ended."""

    endpoint: Endpoint
    url_hash: str
    newest: Secret
    older: Secret | None


class Endpoints:
    """Stores endpoints in a database.

    A row whose digest is wrong counts as not existing. So does one whose address is another's, or can't be opened.
    """

    def __init__(self, database: Database, seal: Seal, rows: RowDigests) -> None:
        self._database = database
        self._rows = rows
        self._seal = seal

    async def add(self, endpoint: Endpoint, secret: Secret) -> bool:
        """Adds an endpoint; gives False, and adds nothing, where its principal has as many as it may have."""
        sealed = self._seal.seal(secret.reveal().encode(), statements.secret_context(endpoint.id))
        row = self._row(endpoint)
        return await self._database.write(_add(endpoint, (*row.columns, row.sealed_url, sealed, row.digest)))

    async def get(self, endpoint_id: str) -> Endpoint | None:
        """Reads one endpoint."""
        found = await self._many(Statement(statements.GET_ENDPOINT, (endpoint_id,)))
        return found[0] if found else None

    async def target(self, endpoint_id: str) -> Target | None:
        """Reads one endpoint with its secrets."""
        row = await self._database.read(first_row(Statement(statements.GET_WITH_SECRETS, (endpoint_id,))))
        if row is None:
            return None
        newest, older, *members = row
        endpoint = await self._trusted(members)
        if endpoint is None:
            return None
        opened = self._secret(endpoint_id, newest)
        if opened is None:
            raise TypeError("an endpoint has a sealed secret")
        return Target(endpoint, self._url_hash(endpoint), opened, self._secret(endpoint_id, older))

    async def list(self, reader: Reader) -> _Endpoints:
        """Reads a principal's endpoints on a merchant account, oldest first."""
        parameters = (reader.merchant, reader.principal, LISTED_MAX)
        return await self._many(Statement(statements.LIST_ENDPOINTS, parameters))

    async def list_all(self) -> _Endpoints:
        """Reads the endpoints of all principals."""
        return await self._many(Statement(statements.LIST_ALL_ENDPOINTS, (LISTED_MAX,)))

    async def change(self, endpoint: Endpoint, *, was: Endpoint) -> Endpoint | None:
        """Stores the changeable members of an endpoint; None where it is gone, or no longer has those of ``was``.

        With the state ``stopped``, its waiting deliveries are given up in the same unit of work.
        """
        row = await self._database.write(_change(endpoint, was, self._row(endpoint), self._url_hash(was)))
        return None if row is None else endpoint_of(row, endpoint.url)

    async def rotate(self, endpoint_id: str, secret: Secret, *, older_ends_at_ms: int, now_ms: int) -> Endpoint | None:
        """Stores a new secret. The one before stays in use until its end; an older one is forgotten."""
        sealed = self._seal.seal(secret.reveal().encode(), statements.secret_context(endpoint_id))
        statement = Statement(statements.ROTATE_SECRET, (endpoint_id, sealed, older_ends_at_ms, now_ms), is_whole=True)
        row = await self._database.write(first_row(statement))
        return None if row is None else await self._opened(row[:-1])

    async def stop(self, endpoint_id: str, reason: str, now_ms: int, *, url_hash: str | None = None) -> Endpoint | None:
        """Stops an endpoint, gives its deliveries up, writes the event and the alert; None where it was stopped before.

        None too where its address no longer has the hash ``url_hash``: it caused the stop, and was replaced.
        """
        row = await self._database.write(_stop(endpoint_id, reason, now_ms, url_hash, self._rows.key))
        return None if row is None else await self._opened(row[:-1])

    async def remove(self, endpoint_id: str) -> bool:
        """Removes an endpoint, then its deliveries; gives False where there was none.

        The endpoint is gone at once. Its deliveries go a limited number at a time, so that no charge waits for them.
        Those that are left where the process ends meanwhile go with their events.
        """
        removed, forgotten = await self._database.write(_remove(endpoint_id))
        while forgotten == FORGOTTEN_AT_ONCE:
            statement = Statement(
                delivery_statements.FORGET_OF_ENDPOINT, (endpoint_id, FORGOTTEN_AT_ONCE), is_whole=True
            )
            forgotten = await self._database.write(count_rows(statement))
        return removed

    async def put(self, event: OutgoingEvent) -> None:
        """Writes an event that stands for no change, such as a test."""
        await self._database.write(outbox.put(event, self._rows.key))

    async def count_by_state(self) -> dict[EndpointState, int]:
        """Counts all endpoints by state."""
        rows = await self._database.read(all_rows(Statement(statements.COUNT_BY_STATE, ())))
        found = {EndpointState(str(state)): int(count or 0) for state, count in rows}
        return {state: found.get(state, 0) for state in EndpointState}

    async def _many(self, statement: Statement) -> _Endpoints:
        rows = await self._database.read(all_rows(statement))
        found = [await self._trusted(row) for row in rows]
        return [endpoint for endpoint in found if endpoint is not None]

    async def _trusted(self, row: Row) -> Endpoint | None:
        """Gives the endpoint of a row that has its sealed address before its columns, and its digest behind them."""
        return await self._opened(row[:-1]) if await self._rows.is_right(ENDPOINTS, row[1:]) else None

    async def _opened(self, row: Row) -> Endpoint | None:
        """Opens the address of a row; reports the row where that isn't the one that its hash is of."""
        sealed, *columns = row
        endpoint_id = str(columns[0])
        url = ""
        if isinstance(sealed, bytes):
            with suppress(StoreUnusable):
                url = self._seal.open(sealed, statements.url_context(endpoint_id)).decode()
        endpoint = endpoint_of(columns, url)
        if self._url_hash(endpoint) == columns[_URL_HASH]:
            return endpoint
        await self._rows.report(f"{ENDPOINTS.name}/{endpoint_id}")
        return None

    def _row(self, endpoint: Endpoint) -> _StoredRow:
        values = msgspec.structs.asdict(endpoint)
        values |= {"url": self._url_hash(endpoint), "types": _SEPARATOR.join(endpoint.types)}
        columns = tuple(values[name] for name in _COLUMNS)
        sealed_url = self._seal.seal(endpoint.url.encode(), statements.url_context(endpoint.id))
        return _StoredRow(columns, sealed_url, self._rows.of(ENDPOINTS, columns))

    def _url_hash(self, endpoint: Endpoint) -> str:
        return self._rows.lookups.address(endpoint.merchant, endpoint.principal, endpoint.url)

    def _secret(self, endpoint_id: str, sealed: Value) -> Secret | None:
        if not isinstance(sealed, bytes):
            return None
        return Secret(self._seal.open(sealed, statements.secret_context(endpoint_id)).decode())


def endpoint_of(row: Row, url: str) -> Endpoint:
    """Converts a row that has the columns of an endpoint in their order; ``url`` is its address, opened."""
    members = dict(zip(_COLUMNS, row, strict=True))
    return msgspec.convert(members | {"url": url, "types": str(members["types"]).split(_SEPARATOR)}, Endpoint)


def _add(endpoint: Endpoint, row: Row) -> Unit[bool]:
    owner = (endpoint.merchant, endpoint.principal)
    yield Statement(statements.LOCK_ENDPOINTS, owner)
    [[count]] = yield Statement(statements.COUNT_ENDPOINTS, owner)
    if int(count or 0) >= ENDPOINTS_MAX:
        return False
    yield Statement(statements.ADD_ENDPOINT, tuple(row))
    return True


def _change(endpoint: Endpoint, was: Endpoint, row: _StoredRow, hash_before: str) -> Unit[Row | None]:
    parameters = (
        endpoint.id,
        row.columns[_URL_HASH],
        _SEPARATOR.join(endpoint.types),
        endpoint.label,
        endpoint.state,
        endpoint.reason,
        endpoint.failing_since_ms,
        endpoint.deferred_until_ms,
        endpoint.updated_at_ms,
        was.state,
        row.digest,
        row.sealed_url,
        hash_before,
        _SEPARATOR.join(was.types),
        was.label,
    )
    rows = yield Statement(statements.CHANGE_ENDPOINT, parameters)
    if rows and endpoint.state is EndpointState.STOPPED:
        yield Statement(delivery_statements.GIVE_ALL_UP, (endpoint.id, "the endpoint was stopped"))
    return rows[0] if rows else None


def _stop(endpoint_id: str, reason: str, now_ms: int, url_hash: str | None, key: RowKey) -> Unit[Row | None]:
    rows = yield Statement(statements.STOP_ENDPOINT, (endpoint_id, reason, now_ms, url_hash))
    if not rows:
        return None
    row = rows[0]
    owner = dict(zip(_COLUMNS, row[1:-1], strict=True))
    yield Statement(delivery_statements.GIVE_ALL_UP, (endpoint_id, "the endpoint was stopped"))
    yield Statement(alert_statements.ADD_ENDPOINT_ALERT, (endpoint_id, now_ms, now_ms, now_ms))
    if not key.fits(ENDPOINTS, row[1:]):
        return row  # whose it is, nobody can tell
    yield from outbox.put(
        OutgoingEvent(
            id=event_id(now_ms, f"{endpoint_id}/stopped/{now_ms}"),
            type=STOPPED,
            account=str(owner["account"]),
            merchant=str(owner["merchant"]),
            principal=str(owner["principal"]),
            subject=f"endpoint:{endpoint_id}",
            at_ms=now_ms,
            data={"endpoint_id": endpoint_id, "reason": reason},
        ),
        key,
    )
    return row


def _remove(endpoint_id: str) -> Unit[tuple[bool, int]]:
    rows = yield Statement(statements.REMOVE_ENDPOINT, (endpoint_id,))
    forgotten = yield Statement(delivery_statements.FORGET_OF_ENDPOINT, (endpoint_id, FORGOTTEN_AT_ONCE))
    yield Statement(alert_statements.FORGET_ENDPOINT_ALERTS, (endpoint_id,))
    return bool(rows), len(forgotten)
