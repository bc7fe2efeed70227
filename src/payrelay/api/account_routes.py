"""The routes under ``/{account}/api/``: authenticate the caller, check the request, run one flow, give one answer.

Rules:

1. Nothing here answers without a credential, not even with "not found".
2. A caller without permission is refused before the query or the body is read.
3. A bound credential, an app's, gets no signature and no authorization token, whatever the route.
"""

from asyncio import CancelledError
from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from payrelay.api.auth.admission import CallerAdmission
from payrelay.api.http.queries import decoded
from payrelay.api.http.visit import Visit
from payrelay.api.requests.reading import AddressedRequest, RequestReader
from payrelay.api.requests.route import EmptyBody, Route, require_open
from payrelay.api.requests.router import Router
from payrelay.api.routes.policies import narrowed
from payrelay.core.access.credential import Credential, require
from payrelay.core.answers import Answer, without_signatures
from payrelay.errors import Code, Refusal, StoreError
from payrelay.flows.payments.await_outcome import answer_when_known
from payrelay.flows.relay import Relay


class AccountRoutes:
    """Answers requests on accounts.

    Args:
        routes: the table.
        relay: what the flows work with; its accounts are the names that paths begin with.
        admission: authenticates callers.
        body_timeout_s: how long a body may take to arrive.
    """

    def __init__(
        self, routes: Iterable[Route], relay: Relay, admission: CallerAdmission, body_timeout_s: float
    ) -> None:
        self._router = Router(routes)
        self._relay = relay
        self._admission = admission
        self._reader = RequestReader(relay.clock, body_timeout_s)

    async def answered(self, visit: Visit, segments: list[bytes]) -> Answer:
        """Answers a request for this path, split at its slashes; raises Refusal, StoreUnavailable."""
        try:
            credential = await self._admission.begin(visit)
        except BaseException as error:  # a cancellation too, which is answered with 503
            if _is_unavailable(error):
                self._name_route(visit, segments)
            raise
        answer = await self._routed(visit, segments, credential)
        return answer if credential.bound is None else without_signatures(answer)

    async def _routed(self, visit: Visit, segments: list[bytes], credential: Credential) -> Answer:
        addressed = self._addressed(visit, segments)
        route, account = addressed.route, addressed.gateway.name
        visit.scope_needed = route.scope
        require(credential, route.scope, account)
        if credential.bound is not None:
            require_open(route.bound)
        parsed = await self._reader.read(visit, addressed, credential)
        parsed = await narrowed(route.bound, self._relay, parsed)
        if route.body is EmptyBody:
            parsed.require_empty()
        if parsed.wait_preference is None:
            return await route.handler(self._relay, parsed)
        if not route.is_effect:
            answer = await route.handler(self._relay, parsed)
            # After the wait, the caller must still have the permission.
            require(await self._admission.admit(visit), route.scope, account)
            return answer
        run = partial(route.handler, self._relay, parsed)
        return await answer_when_known(self._relay, parsed.request, parsed.wait_preference, run)

    def _name_route(self, visit: Visit, segments: list[bytes]) -> None:
        """Names the route for the log and the metrics; an address that has none stays unmatched."""
        with suppress(Refusal):
            self._addressed(visit, segments)

    def _addressed(self, visit: Visit, segments: list[bytes]) -> AddressedRequest:
        """Finds the route of a request; raises Refusal (not_found, method_not_allowed)."""
        account = decoded(segments[1])
        match, gateway = self._router.find(segments[3:]), self._relay.accounts.get(account)
        if match is None or gateway is None:
            raise Refusal(Code.NOT_FOUND, "there is nothing at this address; /docs lists the routes")
        visit.log_record.account = account
        route = match.methods.get(visit.scope["method"])
        if route is None:
            visit.log_record.route = next(iter(match.methods.values())).template
            msg = f"this address accepts {match.allow} only"
            raise Refusal(Code.METHOD_NOT_ALLOWED, msg, headers=(("Allow", match.allow),))
        visit.log_record.route = route.template
        return AddressedRequest(route=route, gateway=gateway, segment=match.segment)


def _is_unavailable(error: BaseException) -> bool:
    """True where the answer is 503 because the caller can't be authenticated here and now."""
    if isinstance(error, Refusal):
        return error.code is Code.UNAVAILABLE
    return isinstance(error, StoreError | CancelledError)
