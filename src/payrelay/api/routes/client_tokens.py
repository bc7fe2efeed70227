"""Client tokens: short-lived credentials for apps."""

from functools import partial
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from payrelay.api.requests.amounts import AMOUNT_SCHEMAS, Amount, Currency, StartupFee, WholeNumber, positive_minor
from payrelay.api.requests.body import Body, CheckedValue, Text, given
from payrelay.api.requests.parameters import LIMIT, OF_CUSTOMER, own_cursor, own_id, page_of, text
from payrelay.api.requests.route import Route, refused
from payrelay.api.routes.checkout_texts import Duration, Period
from payrelay.core.access.allowance import PAYMENTS_MAX
from payrelay.core.access.client_token import CLIENT_SCOPES, LIFE_MAX_S, LIFE_MIN_S, LIFE_USUAL_S, PAYING
from payrelay.core.access.credential import Scope
from payrelay.flows.access.issue_client_token import ClientTokenRequest, issue_client_token
from payrelay.flows.access.list_client_tokens import list_client_tokens
from payrelay.flows.access.revoke_client_token import revoke_client_token, revoke_client_tokens

SCOPES_MAX: Final = 20
"""The scopes that a body may name; there are fewer."""
OPEN: Final = "open"
"""The word in place of an amount that the app chooses."""
_CLIENT_SCOPES: Final = tuple(sorted(CLIENT_SCOPES))

CLIENT_TOKEN: Final = own_id("ct", "client token")
TOKEN_CURSOR: Final = own_cursor("ct", "a client token")
OF_CREDENTIAL: Final = text(
    "credential_id",
    "Only client tokens that the key with this id issued; `payrelay keys list` shows the id.",
    "Q7nGb2LxT0ap",
)


def _exact_or_open(value: object) -> int:
    if value == OPEN:
        return 0
    try:
        return positive_minor(value)
    except ValueError as error:
        raise ValueError(f'{error}, or "{OPEN}"') from None


def _client_scope(value: object) -> str:
    if not isinstance(value, str) or value not in _CLIENT_SCOPES:
        raise ValueError(f"must be one of {', '.join(_CLIENT_SCOPES)}")
    return value


class Lifetime(
    WholeNumber,
    least=LIFE_MIN_S,
    most=LIFE_MAX_S,
    words=f"must be a whole number of seconds, {LIFE_MIN_S} to {LIFE_MAX_S}",
    default=LIFE_USUAL_S,
):
    """How long a client token is valid, in seconds."""


class PaymentsMax(
    WholeNumber,
    least=1,
    most=PAYMENTS_MAX,
    words=f"must be a whole number, 1 to {PAYMENTS_MAX}",
    default=1,
    description="How many payments the order may have in all, whoever makes them.",
):
    """How many payments an order may have."""


class ExactOrOpenAmount(
    CheckedValue,
    int,
    check=_exact_or_open,
    schema={
        "anyOf": [*AMOUNT_SCHEMAS, {"const": OPEN}],
        "description": "The exact amount of each payment, or `open`: then the app chooses it.",
    },
):
    """The exact amount of a payment in hundredths; 0 where the app chooses it."""


class ClientScope(CheckedValue, str, check=_client_scope, schema={"type": "string", "enum": list(_CLIENT_SCOPES)}):
    """One scope of a client token."""

    __slots__ = ()


class ClientTokenBody(Body, frozen=True, kw_only=True):
    """The body of a request for a client token: for a customer, for an order, or for both."""

    needs_one_of = ("customer_id", "order_id")

    customer_id: Annotated[Text, Meta(description="The only customer of the token, `cus_…`.")] | UnsetType = UNSET
    order_id: Annotated[Text, Meta(description="The only order of the token.")] | UnsetType = UNSET
    type: (
        Annotated[
            Literal["payment", "preapproval", "recurring", "authorization"],
            Meta(description="What is paid; a charge of type AUTHORIZE is an `authorization`. Default: `payment`."),
        ]
        | UnsetType
    ) = UNSET
    amount: ExactOrOpenAmount | UnsetType = UNSET
    amount_max: (
        Annotated[Amount, Meta(description="Only with `open`: the most that the app may choose.")] | UnsetType
    ) = UNSET
    currency: (
        Annotated[
            Currency,
            Meta(description="Required of a token that may pay. A token for pages alone names one that they take."),
        ]
        | UnsetType
    ) = UNSET
    payments: PaymentsMax | UnsetType = UNSET
    recurrence: Annotated[Period, Meta(description="How often; for `recurring` only.")] | UnsetType = UNSET
    duration: Annotated[Duration, Meta(description="For how long; for `recurring` only.")] | UnsetType = UNSET
    startup_fee: StartupFee | UnsetType = UNSET
    scopes: (
        Annotated[
            list[ClientScope],
            Meta(min_length=1, max_length=SCOPES_MAX, description="What it may do; by default, read and not pay."),
        ]
        | UnsetType
    ) = UNSET
    expires_in_s: Lifetime | UnsetType = UNSET

    def call(self) -> ClientTokenRequest:
        """Gives the request for a token that this body describes."""
        return ClientTokenRequest(
            customer_id=None if self.customer_id is UNSET else self.customer_id,
            order_id=None if self.order_id is UNSET else self.order_id,
            kind=None if self.type is UNSET else self.type,
            amount_minor=None if self.amount is UNSET else int(self.amount) or None,
            is_open=self.amount is not UNSET and int(self.amount) == 0,
            amount_max_minor=None if self.amount_max is UNSET else int(self.amount_max),
            currency=None if self.currency is UNSET else self.currency,
            payments_max=None if self.payments is UNSET else int(self.payments),
            recurrence=None if self.recurrence is UNSET else str(self.recurrence),
            duration=None if self.duration is UNSET else str(self.duration),
            startup_fee_minor=None if self.startup_fee is UNSET else int(self.startup_fee),
            scopes=None if self.scopes is UNSET else tuple(map(Scope, self.scopes)),
            life_s=LIFE_USUAL_S if self.expires_in_s is UNSET else int(self.expires_in_s),
        )


def _with_one_of(*scopes: Scope) -> dict[str, object]:
    """Gives the condition that the body names one of these scopes; without its type, null would meet it."""
    return _where(scopes={"type": "array", "items": {"type": "string"}, "contains": {"enum": sorted(scopes)}})


def _without(*names: str) -> dict[str, object]:
    """Gives the rule that none of these members is there."""
    return {"not": {"anyOf": [given(name) for name in names]}}


def _where(**members: dict[str, object]) -> dict[str, object]:
    """Gives the condition that these members are there, and as described."""
    return {"properties": members, "required": [*members]}


_PLAN: Final = ("recurrence", "duration", "startup_fee")
_PAYS: Final = _with_one_of(*PAYING)
_IS_OPEN: Final = _where(amount={"const": OPEN})
CLIENT_TOKEN_RULES: Final[dict[str, object]] = {
    "anyOf": [given("customer_id"), given("order_id")],
    "allOf": [
        {
            "if": _PAYS,
            "then": {"allOf": [given("order_id"), given("currency")]},
            "else": _without("type", "amount", "amount_max", "currency", "payments", *_PLAN),
        },
        {"if": _with_one_of(Scope.PAYMENTS_CHARGE), "then": given("customer_id")},
        {
            "if": {"allOf": [_PAYS, {"not": _where(type={"const": "preapproval"})}]},
            "then": given("amount"),
        },
        {"if": given("amount_max"), "then": _IS_OPEN},
        {
            "if": _where(type={"enum": ["preapproval", "recurring"]}),
            "then": _with_one_of(Scope.CHECKOUTS_CREATE),
        },
        {
            "if": {"allOf": [_where(type={"const": "recurring"}), given("amount"), {"not": _IS_OPEN}]},
            "then": {"allOf": [given("recurrence"), given("duration")]},
            "else": _without(*_PLAN),
        },
    ],
}
"""The rules between the members of a ClientTokenBody, as JSON Schema."""


_route: Final = partial(Route, scope=Scope.CLIENT_TOKENS_CREATE, bound=refused)

ROUTES: Final[tuple[Route, ...]] = (
    _route(
        name="issueClientToken",
        method="POST",
        path="/client-tokens",
        sentence="Issue a client token for an app",
        handler=lambda relay, parsed: issue_client_token(relay, parsed.request, parsed.body_as(ClientTokenBody).call()),
        answer="client_token",
        body=ClientTokenBody,
    ),
    _route(
        name="listClientTokens",
        path="/client-tokens",
        sentence="List the client tokens that have not expired, newest first",
        handler=lambda relay, parsed: list_client_tokens(
            relay, parsed.request, customer_id=parsed.query.get("customer_id"), **page_of(parsed.query)
        ),
        answer="client_tokens",
        query=(OF_CUSTOMER, TOKEN_CURSOR, LIMIT),
    ),
    _route(
        name="revokeClientTokens",
        method="DELETE",
        path="/client-tokens",
        sentence="Revoke client tokens: those of a customer, those that a key issued, or all of yours",
        handler=lambda relay, parsed: revoke_client_tokens(
            relay,
            parsed.request,
            customer_id=parsed.query.get("customer_id"),
            credential_id=parsed.query.get("credential_id"),
        ),
        answer="revoked",
        query=(OF_CUSTOMER, OF_CREDENTIAL),
    ),
    _route(
        name="revokeClientToken",
        method="DELETE",
        path="/client-tokens/{id}",
        sentence="Revoke a client token",
        handler=lambda relay, parsed: revoke_client_token(relay, parsed.request, parsed.id),
        answer="nothing",
        segment=CLIENT_TOKEN,
    ),
)
