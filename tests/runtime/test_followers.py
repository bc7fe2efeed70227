"""Followers get events in their order."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.databases import sqlite_url
from tests.digests import digests_of
from tests.runtime.receivers import OWNER, event, put

from payrelay.clock import Clock
from payrelay.core.events.event import PublishedEvent
from payrelay.errors import Code, Refusal
from payrelay.runtime.followers import WAITING_MAX, Follower, Followers, Holder, wait_for
from payrelay.store import open_database
from payrelay.store.engine.database import Database
from payrelay.store.events.feed import Feed, Reader

SHOP = OWNER.reader
KEY = Holder("k1", 10)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """Opens an empty database."""
    opened = await open_database(sqlite_url(tmp_path / "payrelay.db"), clock=Clock(), owner=True)
    yield opened
    await opened.close()


class LeavingFeed(Feed):
    """A feed whose one follower leaves while it is read."""

    followers: Followers | None = None
    follower: Follower | None = None

    async def tail(self, after: int, limit: int) -> list[PublishedEvent]:
        """Reads on, and has the follower leave."""
        events = await super().tail(after, limit)
        if self.followers is not None and self.follower is not None:
            self.followers.leave(self.follower)
        return events


async def never() -> None:
    """Doesn't go away."""
    await asyncio.Event().wait()


async def test_a_follower_gets_its_own_events_about_its_subject(database: Database) -> None:
    """A subject's events to those who follow that, all of a reader's to those who follow all."""
    feed = Feed(database, digests_of(database))
    followers = Followers(feed)
    await put(database, event(0))
    await feed.publish(0)
    one, everything = (
        await followers.slot(SHOP, "customer:cus_1", holder=KEY),
        await followers.slot(SHOP, None, holder=KEY),
    )
    stranger = await followers.slot(Reader("m", "stranger"), "customer:cus_1", holder=KEY)
    assert one is not None
    assert everything is not None
    assert stranger is not None
    await put(database, event(1), event(2))
    await feed.publish(0)
    await followers.poll()
    await followers.poll()

    told = await one.next(0.01)
    assert told is not None
    assert told.data == {"number": 1}
    assert await one.next(0.01) is None
    assert [(await everything.next(0.01)) is not None for _ in range(3)] == [True, True, False]
    assert await stranger.next(0.01) is None
    assert followers.count == 3
    for follower in (one, everything, stranger, stranger):
        followers.leave(follower)
    assert followers.count == 0
    await followers.poll()


async def test_the_last_one_may_leave_while_the_feed_is_read(database: Database) -> None:
    """An app hangs up while an event is on its way to it: what sends events to endpoints goes on all the same."""
    feed = LeavingFeed(database, digests_of(database))
    followers = Followers(feed)
    feed.follower = await followers.slot(SHOP, None, holder=KEY)
    feed.followers = followers
    await put(database, event(0))
    await feed.publish(0)
    await followers.poll()

    assert followers.count == 0
    await put(database, event(1))
    await feed.publish(0)
    follower = await followers.slot(SHOP, None, holder=KEY)
    assert follower is not None
    await put(database, event(2))
    await feed.publish(0)
    await followers.poll()
    told = await follower.next(0.01)
    assert told is not None
    assert told.data == {"number": 2}


async def test_there_is_room_for_so_many_and_none_at_the_end(database: Database) -> None:
    """A stop ends those who follow."""
    followers = Followers(Feed(database, digests_of(database)), limit=1)
    follower = await followers.slot(SHOP, None, holder=KEY)
    assert follower is not None
    assert await followers.slot(SHOP, None, holder=KEY) is None
    followers.close()
    assert follower.is_over
    assert await follower.next(5) is None
    followers.leave(follower)
    assert await followers.slot(SHOP, None, holder=KEY) is None


async def test_one_credential_does_not_take_everybodys_room(database: Database) -> None:
    """An app that opens stream after stream keeps only itself from following; a slot given back is free."""
    followers, phone = Followers(Feed(database, digests_of(database))), Holder("ct_1", 2)
    held = [await followers.slot(SHOP, None, holder=phone) for _ in range(2)]
    with pytest.raises(Refusal) as refused:
        await followers.slot(SHOP, None, holder=phone)
    assert refused.value.code is Code.RATE_LIMITED
    assert await followers.slot(SHOP, None, holder=KEY) is not None
    assert held[0] is not None
    followers.leave(held[0])
    followers.leave(held[0])
    assert await followers.slot(SHOP, None, holder=phone) is not None


async def test_who_takes_nothing_is_let_go(database: Database) -> None:
    """Its connection hangs; it resumes where it was when it comes again."""
    followers = Followers(Feed(database, digests_of(database)))
    follower = await followers.slot(SHOP, None, holder=KEY)
    assert follower is not None
    await put(database, event(1))
    await Feed(database, digests_of(database)).publish(0)
    [published] = await Feed(database, digests_of(database)).tail(0, 1)
    for _ in range(WAITING_MAX):
        follower.put(published)
    assert follower.is_over


async def test_a_wait_ends_with_an_event_with_time_and_with_the_client(database: Database) -> None:
    """Only the first of them counts."""
    followers = Followers(Feed(database, digests_of(database)))
    follower = await followers.slot(SHOP, None, holder=KEY)
    assert follower is not None

    async def gone() -> None:
        """Is gone already."""

    assert not await wait_for(follower, 5, gone)
    assert not await wait_for(follower, 0.001, never)
    await put(database, event(1))
    await Feed(database, digests_of(database)).publish(0)
    await followers.poll()
    assert await wait_for(follower, 5, never)
