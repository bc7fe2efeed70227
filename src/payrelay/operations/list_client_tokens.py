"""Lists client tokens whose time is not over, the revoked ones too, so that somebody can see and revoke them."""

from urllib.parse import urlencode

import msgspec

from payrelay.core.answers import Answer, found
from payrelay.operations.client_token_views import view
from payrelay.operations.relay import Relay, Request
from payrelay.operations.revoke_client_token import desk_of


async def list_client_tokens(
    relay: Relay, request: Request, *, customer_id: str | None, before: str | None, limit: int
) -> Answer:
    """Answers a page of the caller's tokens on this account, newest first, of one customer where one is named.

    A Link header leads to the next page. Tokens that have ended are forgotten soon after.
    """
    issued = await desk_of(relay).tokens.list(
        request.principal, request.account, customer_id=customer_id, before=before, limit=limit + 1
    )
    page = issued[:limit]
    answer = found([view(each.token, each.revoked_at_ms) for each in page])
    if len(issued) <= limit:
        return answer
    named = {} if customer_id is None else {"customer_id": customer_id}
    following = urlencode({**named, "cursor": page[-1].token.id, "limit": limit})
    link = f'</{request.account}/api/client-tokens?{following}>; rel="next"'
    return msgspec.structs.replace(answer, headers=(("Link", link),))
