"""Lists the client tokens that have not expired, also revoked ones, so that their issuer can see and revoke them."""

from payrelay.core.answers import Answer
from payrelay.flows.access.client_token_views import view
from payrelay.flows.pagination import answer_page
from payrelay.flows.relay import Relay, Request


async def list_client_tokens(
    relay: Relay, request: Request, *, customer_id: str | None, before: str | None, limit: int
) -> Answer:
    """Answers a page of the caller's tokens on this account, newest first; ``customer_id`` keeps one customer's.

    A Link header leads to the next page. Expired tokens are deleted soon after.
    """
    issued = await relay.access.client_tokens.list(
        request.principal, request.account, customer_id=customer_id, before=before, limit=limit + 1
    )
    return answer_page(
        request,
        "client-tokens",
        issued,
        limit,
        show=lambda each: view(each.token, each.revoked_at_ms),
        id_of=lambda each: each.token.id,
        query={"customer_id": customer_id},
    )
