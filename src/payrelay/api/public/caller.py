"""A request without a credential, as the handlers of public paths get it."""

from dataclasses import dataclass, field

from payrelay.api.http.incoming_request import BodyTimeout, Headers, Receive
from payrelay.api.public.refused_senders import RefusedSenders
from payrelay.core.checkouts.shop import UNNAMED_SHOP, Shop


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """A request as a public handler gets it.

    Attributes:
        account: the configured name in the path.
        segments: the variable segments of the path, decoded, in their order.
        headers, receive, query_string: of the request, unread.
        client: the address that the request came from.
        refused_senders: says which refused notifications are stored.
        request_id: identifies this request in logs and answers.
        body_timeout: how long a body may take to arrive.
        shop: how the pages of the account look.
    """

    account: str
    segments: tuple[str, ...]
    headers: Headers
    receive: Receive
    query_string: bytes
    client: str
    refused_senders: RefusedSenders
    request_id: str
    body_timeout: BodyTimeout = field(default_factory=BodyTimeout)
    shop: Shop = UNNAMED_SHOP
