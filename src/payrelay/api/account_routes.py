"""What stands under ``/{account}/api/``: known caller, checked request, one story, one answer.

Rules:

1. Nothing here answers without a credential, not even that there is nothing.
2. Whoever may not do something is told so before anything of the request is read.
"""

from collections.abc import Iterable
from functools import partial

from payrelay.api.auth.admission import CallerAdmission
from payrelay.api.http.queries import decoded
from payrelay.api.http.visit import Visit
from payrelay.api.requests.reading import AddressedRequest, read_request
from payrelay.api.requests.route import Route, require_open
from payrelay.api.requests.router import Router
from payrelay.api.routes.policies import narrowed
from payrelay.core.access.credential import require
from payrelay.core.answers import Answer
from payrelay.errors import Code, Refusal
from payrelay.flows.payments.await_outcome import answer_when_known
from payrelay.flows.relay import Relay


class AccountRoutes:
    """Answers requests on accounts.

    Args:
        routes: the table.
        relay: what the stories work with; its accounts are the names that paths begin with.
        admission: lets callers in.
        body_timeout_s: how long a body may take to arrive.
    """

    def __init__(
        self, routes: Iterable[Route], relay: Relay, admission: CallerAdmission, body_timeout_s: float
    ) -> None:
        self._router = Router(routes)
        self._relay = relay
        self._admission = admission
        self._body_timeout_s = body_timeout_s

    async def answered(self, visit: Visit, segments: list[bytes]) -> Answer:
        """Answers a request for this path, split at its slashes; raises Refusal, StoreUnavailable."""
        credential = await self._admission.begin(visit)
        to = self._addressed(visit, segments)
        route, account = to.route, to.account
        visit.scope_needed = route.scope
        require(credential, route.scope, account)
        if credential.bound is not None:
            require_open(route.bound)
        asked = await read_request(visit, to, credential, self._relay.clock, self._body_timeout_s)
        asked = await narrowed(route.bound, self._relay, asked)
        if asked.wait_preference is None:
            return await route.handler(self._relay, asked)
        if not route.is_effect:
            answer = await route.handler(self._relay, asked)
            # What was read after a wait is for those who may read it then.
            require(await self._admission.admit(visit), route.scope, account)
            return answer
        ask = partial(route.handler, self._relay, asked)
        return await answer_when_known(self._relay, asked.request, asked.wait_preference, ask)

    def _addressed(self, visit: Visit, segments: list[bytes]) -> AddressedRequest:
        """Finds where a request goes; raises Refusal (not_found, method_not_allowed)."""
        account = decoded(segments[1])
        found = self._router.find(segments[3:])
        if found is None or account not in self._relay.accounts:
            raise Refusal(Code.NOT_FOUND, "there is nothing at this address; /docs tells what there is")
        visit.log_record.account = account
        route = found.methods.get(visit.scope["method"])
        if route is None:
            visit.log_record.route = next(iter(found.methods.values())).template
            msg = f"this address takes {found.allow} only"
            raise Refusal(Code.METHOD_NOT_ALLOWED, msg, headers=(("Allow", found.allow),))
        visit.log_record.route = route.template
        return AddressedRequest(route=route, account=account, segment=found.segment)
