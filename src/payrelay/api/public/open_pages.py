"""Requests without a credential: health, metrics and docs outside the accounts, and the public paths under them."""

from collections.abc import Mapping
from typing import Final

from payrelay.api.http.incoming_request import BodyTimeout, peer_of
from payrelay.api.http.outgoing import PlainAnswer
from payrelay.api.http.visit import Visit
from payrelay.api.public.caller import Caller
from payrelay.api.public.refused_senders import RefusedSenders
from payrelay.api.public.router import PublicMatch, PublicRouter
from payrelay.api.public.site import Pages
from payrelay.core.answers import Answer
from payrelay.core.checkouts.shop import UNNAMED_SHOP, Shop
from payrelay.errors import Code, Refusal
from payrelay.flows.relay import Relay

_METHODS: Final = ("GET", "HEAD")


class OpenPages:
    """Answers requests without a credential.

    Args:
        relay: what the flows work with; its accounts are the names that public paths begin with.
        pages: the pages outside the accounts.
        body_timeout_s: how long a body may take to arrive.
        shops: how the pages of the accounts look, by account.
    """

    def __init__(self, relay: Relay, pages: Pages, body_timeout_s: float, shops: Mapping[str, Shop]) -> None:
        self._relay = relay
        self._pages = pages
        self._router = PublicRouter(relay.accounts)
        self._body_timeout = BodyTimeout(body_timeout_s)
        self._shops = shops
        self._refused_senders = RefusedSenders()
        self._api_hint = f"/{next(iter(relay.accounts), 'gateway')}/api/"

    async def answered(self, visit: Visit, raw_path: bytes, segments: list[bytes]) -> Answer | PlainAnswer:
        """Answers a request; ``segments`` is the raw path split at its slashes. Raises Refusal, StoreUnavailable."""
        match = self._router.find(segments)
        if match is not None:
            return await self._public_answer(visit, match)
        page = self._pages.find(raw_path)
        if page is None:
            msg = f"there is nothing at this address; the API begins at {self._api_hint}, its docs at /docs"
            raise Refusal(Code.NOT_FOUND, msg)
        log_record = visit.log_record
        log_record.route = raw_path.decode()
        if visit.scope["method"] not in _METHODS:
            allow = ", ".join(_METHODS)
            raise Refusal(Code.METHOD_NOT_ALLOWED, f"this address accepts {allow} only", headers=(("Allow", allow),))
        # The peer is a proxy where it forwards, or is trusted: where it is all that is known, the client is not known.
        is_proxied = visit.connection.is_shared or visit.headers.is_forwarded()
        is_known = not is_proxied or log_record.client != peer_of(visit.scope)
        return await page(log_record.client, is_known=is_known)

    async def _public_answer(self, visit: Visit, match: PublicMatch) -> Answer | PlainAnswer:
        visit.log_record.account = match.account
        visit.log_record.route = next(iter(match.routes.values())).template
        route = match.route(visit.scope["method"])
        visit.log_record.route = route.template
        caller = Caller(
            account=match.account,
            segments=match.segments,
            headers=visit.headers,
            receive=visit.receive,
            query_string=visit.scope["query_string"],
            client=visit.log_record.client,
            refused_senders=self._refused_senders,
            request_id=visit.log_record.request_id,
            body_timeout=self._body_timeout,
            shop=self._shops.get(match.account, UNNAMED_SHOP),
        )
        return await route.handler(self._relay, caller)
