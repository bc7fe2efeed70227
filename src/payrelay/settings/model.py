"""The settings as one frozen value, with what each may be.

What an account at a gateway has beyond what all have is read by the model of its kind (``gateways.registry``).

To be changed together: the fields below and ``docs/configuration.md``; a test compares them.
"""

import ipaddress
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    create_model,
)
from pydantic_core import InitErrorDetails

from payrelay.core.access.client_token import USUAL_SCOPES
from payrelay.core.access.credential import Scope
from payrelay.core.checkouts.return_links import LinkRule
from payrelay.core.database_url import embedded_file
from payrelay.core.events.destinations import AllowedDestinations
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.secret import Secret, secret_of
from payrelay.errors import SettingsError
from payrelay.gateways.gateway_kind import GatewayKind
from payrelay.gateways.registry import DEFAULT_KIND, KINDS
from payrelay.settings import parse

ORIGINS_MAX: Final = 100
KEY_IS_MISSING: Final = "PAYRELAY_ENCRYPTION_KEY is missing; it is required with postgresql://"

_POSTGRESQL: Final = "postgresql://"

_Secret = Annotated[Secret, PlainValidator(secret_of)]
_Networks = Annotated[
    tuple[Annotated[parse.Network, PlainValidator(parse.network)], ...],
    BeforeValidator(parse.parts),
    Field(max_length=parse.NETWORKS_MAX),
]


class GatewaySettings(BaseModel):
    """One account at a gateway: what every kind has; ``gateway_settings`` gives one with the fields of its kind."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    kind: str = DEFAULT_KIND
    environment: Literal["sandbox", "live"] = "sandbox"
    base_url: Annotated[str, AfterValidator(parse.private_address)] | None = None
    """None for the gateway's own address in that environment."""
    rate_limit: Annotated[RateLimit | None, PlainValidator(parse.rate_limit)]
    """Calls upstream; None for no limit."""
    timeout_s: Annotated[float, Field(ge=0.1, le=120)] = 30
    queue_s: Annotated[float, Field(ge=0, le=60)] = 5
    timezone: Annotated[str, AfterValidator(parse.timezone)]


def model_of(kind: GatewayKind) -> type[GatewaySettings]:
    """Gives the settings of a kind of gateway: everybody's and its own, as one model."""
    bases: tuple[type[Any], ...] = (GatewaySettings, kind.settings)
    made: type[GatewaySettings] = create_model(GatewaySettings.__name__, __base__=bases)
    return made


_MODELS: Final = {name: model_of(kind) for name, kind in KINDS.items()}


def gateway_settings(value: object) -> GatewaySettings:
    """Reads the settings of one account, by the model of its kind. Raises ValidationError."""
    if isinstance(value, GatewaySettings):
        return value
    given = value if isinstance(value, dict) else {}
    name = given.get("kind", DEFAULT_KIND)
    if not isinstance(name, str) or name not in KINDS:
        error = ValueError(f"must be a kind of gateway that there is: {', '.join(KINDS)}")
        detail = InitErrorDetails(type="value_error", loc=("kind",), input=None, ctx={"error": error})
        raise ValidationError.from_exception_data(GatewaySettings.__name__, [detail])
    usual = KINDS[name].defaults
    return _MODELS[name].model_validate({**usual, **given} if isinstance(value, dict) else value)


class EventSettings(BaseModel):
    """How events are sent out."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, arbitrary_types_allowed=True)

    allowed_hosts: Annotated[AllowedDestinations, PlainValidator(parse.allowed_hosts)] = AllowedDestinations()
    """Where events may be sent although it is no public address, or not over https."""


class IdentitySettings(BaseModel):
    """An identity provider whose own tokens are taken; see ``core.access.identity_provider.IdentityProvider``."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    jwks_url: Annotated[str, AfterValidator(parse.private_address_with_query)]
    """Where its keys are."""
    issuer: Annotated[str, Field(min_length=1)]
    audience: Annotated[str, Field(min_length=1)]
    principal: Annotated[str, Field(min_length=1)]
    """Whose customers its people are: the name of a server's key."""
    customer_claim: Annotated[str, Field(min_length=1)] = "sub"
    customer_claim_is: Literal["reference", "customer"] = "reference"
    order_claim: Annotated[str, Field(min_length=1)] | None = None
    scopes: Annotated[frozenset[Scope], PlainValidator(parse.client_scopes)] = USUAL_SCOPES
    accounts: Annotated[frozenset[str], BeforeValidator(parse.parts)] = frozenset()
    """None named is all of them."""


class Settings(BaseModel):
    """All settings, made by ``read_settings``; a field is named as its variable, in small letters."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    database_url: Annotated[_Secret, AfterValidator(parse.database_url)] = Secret("sqlite:///payrelay.db")
    """A secret because it may hold a password; ``shown_database`` is fit to be printed."""
    gateways: dict[
        Annotated[str, AfterValidator(parse.gateway_name)], Annotated[GatewaySettings, PlainValidator(gateway_settings)]
    ] = {}
    identity: IdentitySettings | None = None
    repeat_window: Annotated[int, PlainValidator(parse.repeat_window_s)] = 86_400
    """Seconds; 0 for none."""
    encryption_key: Annotated[_Secret, AfterValidator(parse.encryption_keys)] | None = None
    """As ``core.seal_keys.parse_keys`` reads it; None where the embedded database keeps its own."""
    alert_command: Annotated[tuple[str, ...] | None, PlainValidator(parse.command), Field(repr=False)] = None
    """The program and its arguments that an alert is given to; not printed, because they may hold a secret."""
    alert_url: Annotated[_Secret, AfterValidator(parse.alert_address)] | None = None
    """The address that an alert is posted to; a secret because it often holds one."""
    public_url: Annotated[str, AfterValidator(parse.web_address)] | None = None
    trusted_proxies: _Networks = ()
    metrics_networks: _Networks = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
    """Who may read /metrics."""
    browser_origins: Annotated[
        tuple[Annotated[str, AfterValidator(parse.origin)], ...],
        BeforeValidator(parse.parts),
        Field(max_length=ORIGINS_MAX),
    ] = ()
    """The pages whose scripts may use the API, by their origins."""
    events: EventSettings = EventSettings()
    return_links: Annotated[tuple[LinkRule, ...], PlainValidator(parse.link_rules)] = ()
    """The apps' own links that a customer may be sent back to."""

    @property
    def embedded_path(self) -> Path | None:
        """The file of the embedded database, or None where another server is the store."""
        name = embedded_file(self.database_url.reveal())
        return None if name is None else Path(name)

    @property
    def shown_database(self) -> str:
        """The database's address without its password and its options."""
        url = self.database_url.reveal()
        if self.embedded_path is not None:
            return url
        address = url.removeprefix(_POSTGRESQL).partition("?")[0]
        user, at, rest = address.rpartition("@")
        return _POSTGRESQL + user.partition(":")[0] + at + rest

    @property
    def key_environment(self) -> Literal["sandbox", "live"]:
        """What new keys are marked with: ``live`` as soon as one of the accounts is."""
        is_live = any(gateway.environment == "live" for gateway in self.gateways.values())
        return "live" if is_live else "sandbox"


def require_serving(settings: Settings) -> None:
    """Raises SettingsError where something is missing that only a server needs."""
    if not settings.gateways:
        raise SettingsError(
            "no gateway is configured: set PAYRELAY_GATEWAYS__GATEWAY__APP_ID and"
            " PAYRELAY_GATEWAYS__GATEWAY__APP_SECRET (or try `payrelay demo`, which needs neither)"
        )
    if settings.embedded_path is None and settings.encryption_key is None:
        raise SettingsError(KEY_IS_MISSING)
    if settings.identity is not None:
        for name in sorted(settings.identity.accounts - settings.gateways.keys()):
            raise SettingsError(f"{parse.PREFIX}IDENTITY__ACCOUNTS names {name}, and no gateway is called so")
