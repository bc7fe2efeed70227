"""Client tokens: what a phone is let in with."""

from decimal import Decimal
from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from payrelay.api.requests.amounts import Amount, Currency
from payrelay.api.requests.body import Body, CheckedValue, Text
from payrelay.api.requests.parameters import (
    LIMIT,
    OF_CUSTOMER,
    PAGE_SIZE_USUAL,
    TEXT_LENGTH_MAX,
    TEXT_SCHEMA,
    Parameter,
    anything,
    at_most_long,
    matches,
)
from payrelay.api.requests.route import TAKES_BODY, Route, refused
from payrelay.core.access.client_token import CLIENT_SCOPES, LIFE_MAX_S, LIFE_MIN_S, LIFE_USUAL_S
from payrelay.core.access.credential import Scope
from payrelay.flows.access.issue_client_token import ClientTokenRequest, issue_client_token
from payrelay.flows.access.list_client_tokens import list_client_tokens
from payrelay.flows.access.revoke_client_token import revoke_client_token, revoke_client_tokens

SCOPES_MAX: Final = 20
"""Of a client token; there are fewer."""
_CLIENT_SCOPES: Final = tuple(sorted(CLIENT_SCOPES))
_CT_ID: Final = r"ct_[0-9a-f]{32}"

CLIENT_TOKEN: Final = Parameter(
    name="id",
    sentence="Identifier of the client token.",
    schema={"type": "string", "pattern": f"^{_CT_ID}$"},
    validator=anything,
    example="ct_019c8b2f5a7e4d10b6f3a92c7e08d154",
)
TOKEN_CURSOR: Final = Parameter(
    name="cursor",
    sentence="Goes on behind this token; the Link header of a page has it.",
    schema={"type": "string", "pattern": f"^{_CT_ID}$"},
    validator=matches(_CT_ID, "must be the id of a client token"),
    example="ct_019c8b2f5a7e4d10b6f3a92c7e08d154",
)
OF_CREDENTIAL: Final = Parameter(
    name="credential_id",
    sentence="Only those that this key has issued; its id as `payrelay keys list` shows it.",
    schema=TEXT_SCHEMA,
    validator=at_most_long(TEXT_LENGTH_MAX),
    example="Q7nGb2LxT0ap",
)


def _lifetime(value: object) -> int:
    if type(value) is Decimal and value <= LIFE_MAX_S and value == value.to_integral_value():
        value = int(value)  # 900.0 is the integer 900 to JSON Schema
    if type(value) is not int or not LIFE_MIN_S <= value <= LIFE_MAX_S:
        raise ValueError(f"must be a whole number of seconds, {LIFE_MIN_S} to {LIFE_MAX_S}")
    return value


def _client_scope(value: object) -> str:
    if not isinstance(value, str) or value not in _CLIENT_SCOPES:
        raise ValueError(f"must be one of {', '.join(_CLIENT_SCOPES)}")
    return value


class Lifetime(
    CheckedValue,
    int,
    check=_lifetime,
    schema={"type": "integer", "minimum": LIFE_MIN_S, "maximum": LIFE_MAX_S, "default": LIFE_USUAL_S},
):
    """How long a client token is good for, in seconds."""


class ClientScope(CheckedValue, str, check=_client_scope, schema={"type": "string", "enum": list(_CLIENT_SCOPES)}):
    """What a client token may be allowed to do."""

    __slots__ = ()


class ClientTokenBody(Body, frozen=True, kw_only=True):
    """The body that asks for a client token: for a customer, for an order, or for both."""

    needs_one_of = ("customer_id", "order_id")

    customer_id: Annotated[Text, Meta(description="The only customer it is good for, `cus_…`.")] | UnsetType = UNSET
    order_id: Annotated[Text, Meta(description="The only order it is good for.")] | UnsetType = UNSET
    amount_max: Amount | UnsetType = UNSET
    currency: Annotated[Currency, Meta(description="Of `amount_max`; the two come together.")] | UnsetType = UNSET
    scopes: (
        Annotated[
            list[ClientScope],
            Meta(min_length=1, max_length=SCOPES_MAX, description="What it may do; without it, look and not pay."),
        ]
        | UnsetType
    ) = UNSET
    expires_in_s: Lifetime | UnsetType = UNSET

    def wanted(self) -> ClientTokenRequest:
        """Gives the token that is asked for."""
        return ClientTokenRequest(
            customer_id=None if self.customer_id is UNSET else self.customer_id,
            order_id=None if self.order_id is UNSET else self.order_id,
            amount_max_minor=None if self.amount_max is UNSET else int(self.amount_max),
            currency=None if self.currency is UNSET else self.currency,
            scopes=None if self.scopes is UNSET else tuple(map(Scope, self.scopes)),
            life_s=LIFE_USUAL_S if self.expires_in_s is UNSET else int(self.expires_in_s),
        )


ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="issueClientToken",
        method="POST",
        path="/client-tokens",
        sentence="Issue a client token for an app",
        scope=Scope.CLIENT_TOKENS_CREATE,
        handler=lambda relay, asked: issue_client_token(relay, asked.request, asked.parsed(ClientTokenBody).wanted()),
        answer="client_token",
        bound=refused,
        body=ClientTokenBody,
        codes=TAKES_BODY,
    ),
    Route(
        name="listClientTokens",
        method="GET",
        path="/client-tokens",
        sentence="List the client tokens that have not expired, newest first",
        scope=Scope.CLIENT_TOKENS_CREATE,
        handler=lambda relay, asked: list_client_tokens(
            relay,
            asked.request,
            customer_id=asked.query.get("customer_id"),
            before=asked.query.get("cursor"),
            limit=int(asked.query.get("limit", PAGE_SIZE_USUAL)),
        ),
        answer="client_tokens",
        bound=refused,
        query=(OF_CUSTOMER, TOKEN_CURSOR, LIMIT),
    ),
    Route(
        name="revokeClientTokens",
        method="DELETE",
        path="/client-tokens",
        sentence="Revoke client tokens: those of a customer, those that a key has issued, or all of yours",
        scope=Scope.CLIENT_TOKENS_CREATE,
        handler=lambda relay, asked: revoke_client_tokens(
            relay,
            asked.request,
            customer_id=asked.query.get("customer_id"),
            credential_id=asked.query.get("credential_id"),
        ),
        answer="revoked",
        bound=refused,
        query=(OF_CUSTOMER, OF_CREDENTIAL),
    ),
    Route(
        name="revokeClientToken",
        method="DELETE",
        path="/client-tokens/{id}",
        sentence="Revoke a client token",
        scope=Scope.CLIENT_TOKENS_CREATE,
        handler=lambda relay, asked: revoke_client_token(relay, asked.request, asked.id),
        answer="nothing",
        bound=refused,
        segment=CLIENT_TOKEN,
    ),
)
