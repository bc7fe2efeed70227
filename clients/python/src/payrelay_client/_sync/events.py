"""Events: the feed, the stream of one subject, and the endpoints to which events are sent."""

from collections.abc import Iterator, Sequence
from typing import Literal

from payrelay_client import requests
from payrelay_client._sync.following import Follower
from payrelay_client._sync.sending import Sender
from payrelay_client.decoding import models
from payrelay_client.models import Delivery, Endpoint, Event, EventPage, IssuedEndpoint, Replayed
from payrelay_client.requests import Repeat
from payrelay_client.unchanged import UNCHANGED, Unchanged, changes


class Events:
    """What happened, as it is told."""

    def __init__(self, sender: Sender, follower: Follower) -> None:
        self._sender = sender
        self._follower = follower

    def page(
        self,
        *,
        after: int = 0,
        type: str | None = None,  # noqa: A002 - the interface's word
        subject: str | None = None,
        limit: int | None = None,
        wait_s: int = 0,
    ) -> EventPage:
        """Gives some events after a position. ``wait_s`` holds an empty page until there is an event.

        Raises PositionLost where the feed must be read anew from 0.
        """
        query = {"after": after, "type": type, "subject": subject, "limit": limit}
        headers = {"Prefer": f"wait={wait_s}"} if wait_s else {}
        read = requests.get("/events", query)
        reply = self._sender.ask(requests.Request(method="GET", path=read.path, query=read.query, headers=headers))
        return EventPage.of(reply.data)

    def list(
        self,
        *,
        after: int = 0,
        type: str | None = None,  # noqa: A002 - the interface's word
        subject: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Event]:
        """Gives all events after a position, oldest first, until there are no more now.

        Store the ``position`` of each event with what you did, and go on after it.
        """
        position = after
        while True:
            page = self.page(after=position, type=type, subject=subject, limit=limit)
            for event in page.events:
                yield event
            if page.next <= position:
                return
            position = page.next

    def follow(self, subject: str, *, after: int | None = None) -> Iterator[Event]:
        """Gives the events of an operation or a checkout as they come (``operation:op_…``, ``checkout:chk_…``).

        Goes on where the stream breaks, and ends with the limits of a call. Raises PayrelayError where it is refused.
        """
        for event in self._follower.events(subject, self._sender.budget(), after):
            yield event


class Endpoints:
    """Addresses to which events are sent."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def register(self, *, url: str, types: Sequence[str] | None = None, label: str | None = None) -> IssuedEndpoint:
        """Registers an address. Its ``secret`` is shown this once.

        A lost answer is raised as NoAnswer, because a repeat would register it twice: list the endpoints then.
        """
        body = {"url": url, "types": None if types is None else list(types), "label": label}
        request = requests.post("/endpoints", body, repeat=Repeat.NOT_DONE_ONLY)
        return IssuedEndpoint.of((self._sender.ask(request)).data)

    def list(self) -> tuple[Endpoint, ...]:
        """Gives all endpoints: there are 20 at most."""
        return models(Endpoint, (self._sender.ask(requests.get("/endpoints"))).data)

    def show(self, endpoint_id: str) -> Endpoint:
        """Gives an endpoint."""
        return Endpoint.of((self._sender.ask(requests.get(_path(endpoint_id)))).data)

    def change(
        self,
        endpoint_id: str,
        *,
        url: str | Unchanged = UNCHANGED,
        types: Sequence[str] | Unchanged = UNCHANGED,
        label: str | Unchanged | None = UNCHANGED,
        state: Literal["active", "paused", "stopped"] | Unchanged = UNCHANGED,
    ) -> Endpoint:
        """Changes, pauses, stops or starts an endpoint; None removes the label."""
        given = types if types is UNCHANGED else list(types)
        body = changes(url=url, types=given, label=label, state=state)
        return Endpoint.of((self._sender.ask(requests.patch(_path(endpoint_id), body))).data)

    def remove(self, endpoint_id: str) -> None:
        """Removes an endpoint."""
        self._sender.ask(requests.delete(_path(endpoint_id)))

    def rotate(self, endpoint_id: str) -> IssuedEndpoint:
        """Gives an endpoint a new secret; the old one stays valid for a day."""
        request = requests.post(f"{_path(endpoint_id)}/rotate", None, repeat=Repeat.NOT_DONE_ONLY)
        return IssuedEndpoint.of((self._sender.ask(request)).data)

    def test(self, endpoint_id: str) -> str:
        """Sends a test event; gives its id."""
        request = requests.post(f"{_path(endpoint_id)}/test", None, repeat=Repeat.NOT_DONE_ONLY)
        data = (self._sender.ask(request)).data
        return str(data.get("event_id", "")) if isinstance(data, dict) else ""

    def replay(
        self,
        endpoint_id: str,
        *,
        ids: Sequence[str] | None = None,
        since: str | None = None,
        until: str | None = None,
        after: int | None = None,
    ) -> Replayed:
        """Sends events again: those with these ids, or all of a span of time (RFC 3339)."""
        body = {"ids": None if ids is None else list(ids), "since": since, "until": until}
        post = requests.post(f"{_path(endpoint_id)}/replay", body, repeat=Repeat.NOT_DONE_ONLY)
        query = {} if after is None else {"after": str(after)}
        request = requests.Request(method="POST", path=post.path, query=query, body=post.body, repeat=post.repeat)
        return Replayed.of((self._sender.ask(request)).data)

    def deliveries(
        self,
        endpoint_id: str,
        *,
        state: Literal["waiting", "delivered", "given_up"] | None = None,
        limit: int | None = None,
    ) -> Iterator[Delivery]:
        """Gives the deliveries to an endpoint, newest first, page by page."""
        before: int | None = None
        while True:
            query = {"state": state, "limit": limit, "before": before}
            reply = self._sender.ask(requests.get(f"{_path(endpoint_id)}/deliveries", query))
            page = models(Delivery, reply.data)
            for each in page:
                yield each
            if not page:
                return
            before = page[-1].position


def _path(endpoint_id: str) -> str:
    return f"/endpoints/{requests.segment(endpoint_id)}"
