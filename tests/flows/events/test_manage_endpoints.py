"""Endpoints as their owners manage them: what is refused, and what each change means."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec
import pytest
from tests.databases import sqlite_url
from tests.digests import digests_of
from tests.runtime.receivers import OWNER, SetClock, dispatch_on, event, put, register

from payrelay.clock import Clock
from payrelay.core.events.delivery import Endpoint, EndpointState
from payrelay.core.secret import STARS
from payrelay.errors import Code, Refusal
from payrelay.flows.events.manage_endpoints import (
    Changes,
    NewEndpoint,
    ReplayedEvents,
    change_endpoint,
    create_endpoint,
    list_endpoints,
    remove_endpoint,
    replay_events,
    rotate_endpoint,
    send_test_event,
    show_endpoint,
)
from payrelay.runtime.event_delivery import Dispatch
from payrelay.store import open_database
from payrelay.store.engine.database import Database
from payrelay.store.engine.sealing import Seal
from payrelay.store.events.endpoints import ENDPOINTS_MAX, Endpoints

URL = "https://shop.example/events"
STRANGER = msgspec.structs.replace(OWNER, principal="stranger")


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """Opens an empty database."""
    opened = await open_database(sqlite_url(tmp_path / "payrelay.db"), clock=Clock(), owner=True)
    yield opened
    await opened.close()


@pytest.fixture
async def dispatch(database: Database) -> AsyncIterator[Dispatch]:
    """Gives what endpoints are managed with."""
    made = dispatch_on(database, SetClock())
    yield made
    await made.close(0)


@pytest.mark.parametrize(
    ("new", "path"),
    [
        (NewEndpoint(url="http://shop.example/"), "url"),
        (NewEndpoint(url="https://10.0.0.1/"), "url"),
        (NewEndpoint(url=URL, types=()), "types"),
        (NewEndpoint(url=URL, types=("*",) * 21), "types"),
        (NewEndpoint(url=URL, types=("*", "operations.*")), "types[1]"),
        (NewEndpoint(url=URL, label=" "), "label"),
        (NewEndpoint(url=URL, label="x" * 101), "label"),
    ],
)
async def test_what_is_wrong_is_named(dispatch: Dispatch, new: NewEndpoint, path: str) -> None:
    """The command and the API say the same."""
    with pytest.raises(Refusal) as refused:
        await create_endpoint(dispatch, OWNER, new)
    assert refused.value.code is Code.INVALID_REQUEST
    assert [field.path for field in refused.value.fields] == [path]
    assert await list_endpoints(dispatch, OWNER) == []


async def test_a_secret_is_shown_once_and_never_printed(dispatch: Dispatch) -> None:
    """In no list, in no log."""
    issued = await register(dispatch, URL)
    rotated = await rotate_endpoint(dispatch, OWNER, issued.id)

    assert issued.secret.startswith("whsec_")
    assert issued.secret != rotated.secret
    assert STARS in repr(issued)
    assert issued.secret not in repr(issued)
    assert rotated.secret not in repr(await list_endpoints(dispatch, OWNER))


async def test_a_principal_has_so_many(dispatch: Dispatch) -> None:
    """One more is a conflict, and another principal's are its own."""
    for _ in range(ENDPOINTS_MAX):
        await register(dispatch, URL)
    with pytest.raises(Refusal) as refused:
        await register(dispatch, URL)
    assert refused.value.code is Code.CONFLICT
    await create_endpoint(dispatch, STRANGER, NewEndpoint(url=URL))


async def test_a_stranger_finds_nothing(dispatch: Dispatch) -> None:
    """Not even that there is something."""
    issued = await register(dispatch, URL)
    stories = (
        show_endpoint(dispatch, STRANGER, issued.id),
        change_endpoint(dispatch, STRANGER, issued.id, Changes(url=URL)),
        remove_endpoint(dispatch, STRANGER, issued.id),
        rotate_endpoint(dispatch, STRANGER, issued.id),
        send_test_event(dispatch, STRANGER, issued.id),
        replay_events(dispatch, STRANGER, issued.id, ReplayedEvents()),
    )
    for story in stories:
        with pytest.raises(Refusal) as refused:
            await story
        assert refused.value.code is Code.NOT_FOUND


async def test_a_change_changes_what_it_names(dispatch: Dispatch) -> None:
    """And nothing else."""
    issued = await register(dispatch, URL, "customer.*")
    changed = await change_endpoint(dispatch, OWNER, issued.id, Changes(types=("*", "*"), label="all"))
    assert (changed.url, changed.types, changed.label) == (URL, ("*",), "all")
    paused = await change_endpoint(dispatch, OWNER, issued.id, Changes(state=EndpointState.PAUSED))
    assert (paused.state, paused.reason) == (EndpointState.PAUSED, "it was paused by its owner")
    kept = await change_endpoint(dispatch, OWNER, issued.id, Changes(label=None))
    assert (kept.state, kept.reason, kept.label) == (EndpointState.PAUSED, "it was paused by its owner", None)


async def test_one_that_is_stopped_takes_neither_tests_nor_replays(dispatch: Dispatch) -> None:
    """They would never be sent."""
    issued = await register(dispatch, URL)
    await change_endpoint(dispatch, OWNER, issued.id, Changes(state=EndpointState.STOPPED))
    for story in (
        send_test_event(dispatch, OWNER, issued.id),
        replay_events(dispatch, OWNER, issued.id, ReplayedEvents()),
    ):
        with pytest.raises(Refusal) as refused:
            await story
        assert refused.value.code is Code.CONFLICT


async def test_ids_of_no_event_are_refused(dispatch: Dispatch, database: Database) -> None:
    """Another principal's are none."""
    issued = await register(dispatch, URL)
    await put(database, event(1), event(2, principal="stranger"))
    await dispatch.feed.publish(0)
    with pytest.raises(Refusal, match="1 of the ids") as refused:
        await replay_events(dispatch, OWNER, issued.id, ReplayedEvents(ids=(event(1).id, event(2).id)))
    assert refused.value.code is Code.NOT_FOUND


class Meddling(Endpoints):
    """Changes an endpoint each time right after it was read, so many times, as another process might.

    It gets what ``others`` says; without that it is stopped, or started where it was.
    """

    times = 0
    others: Mapping[str, object] | None = None

    async def get(self, endpoint_id: str) -> Endpoint | None:
        """Reads one, and changes it."""
        found = await super().get(endpoint_id)
        if self.times and found is not None:
            self.times -= 1
            is_started = found.state is not EndpointState.STOPPED
            others = self.others or {"state": EndpointState.ACTIVE, "reason": None}
            changed = msgspec.structs.replace(found, **others)
            stops = is_started and self.others is None
            await (self.stop(endpoint_id, "gone", 1) if stops else self.change(changed, was=found))
        return found


async def test_a_new_label_does_not_start_what_was_stopped_meanwhile(dispatch: Dispatch, database: Database) -> None:
    """The receiver answered 410 while its owner changed the label: the 410 stands."""
    issued = await register(dispatch, URL)
    meddling = Meddling(database, Seal((b"k" * 32,)), digests_of(database))
    dispatch.endpoints = meddling
    meddling.times = 1
    changed = await change_endpoint(dispatch, OWNER, issued.id, Changes(label="orders"))

    assert (changed.label, changed.state, changed.reason) == ("orders", EndpointState.STOPPED, "gone")
    meddling.times = 100
    with pytest.raises(Refusal) as refused:
        await change_endpoint(dispatch, OWNER, issued.id, Changes(label="others"))
    assert refused.value.code is Code.UNAVAILABLE


async def test_no_change_takes_another_one_of_the_same_moment_back(dispatch: Dispatch, database: Database) -> None:
    """Its owner moves it, as the old address was lost, while somebody pauses it: no event goes to the old one again."""
    issued = await register(dispatch, URL)
    meddling = Meddling(database, Seal((b"k" * 32,)), digests_of(database))
    dispatch.endpoints = meddling
    for others in ({"url": "https://new.example/"}, {"types": ("checkout.*",)}, {"label": "orders"}):
        meddling.others, meddling.times = others, 1
        await change_endpoint(dispatch, OWNER, issued.id, Changes(state=EndpointState.PAUSED))
    changed = await meddling.get(issued.id)

    assert changed is not None
    assert (changed.url, changed.types, changed.label) == ("https://new.example/", ("checkout.*",), "orders")
    assert changed.state is EndpointState.PAUSED


async def test_a_replay_reads_so_many_pages_and_returns_where_to_continue(
    dispatch: Dispatch, database: Database
) -> None:
    """Where few of many events are wanted, one request doesn't read the whole feed."""
    issued = await register(dispatch, URL, "checkout.*")
    dispatch.is_closing = True  # it sends nothing
    await put(database, event(1), event(2, type="checkout.completed"))
    await dispatch.feed.publish(0)
    first = await replay_events(dispatch, OWNER, issued.id, ReplayedEvents(), pages_max=1)
    assert first.after is not None
    rest = await replay_events(dispatch, OWNER, issued.id, ReplayedEvents(), after=first.after, pages_max=1)

    assert (first.events, rest.events, rest.after) == (1, 0, None)
