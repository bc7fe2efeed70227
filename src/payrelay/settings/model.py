"""The model of the settings: one frozen value, with the type and the checks of each field.

An account at a gateway has fields of its own, which the model of its kind of gateway reads (``gateways.registry``).

Change the fields below together with ``docs/configuration.md``; a test compares them.
"""

from collections.abc import Mapping
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

from payrelay.core.checkouts.return_links import LinkRule
from payrelay.core.checkouts.shop import Logo, Rgb, Shop
from payrelay.core.database.database_url import embedded_file
from payrelay.core.gateways.rate_limit import RateLimit
from payrelay.core.secret import Secret, secret_of
from payrelay.errors import SettingsError
from payrelay.gateways.gateway_kind import CommonSettings, GatewayKind
from payrelay.gateways.registry import DEFAULT_KIND, KINDS
from payrelay.settings import parse
from payrelay.settings.console import ConsoleSettings, problem_of_console
from payrelay.settings.identity import IdentitySettings
from payrelay.settings.sections import EventSettings, ReconciliationSettings, RetentionSettings

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
    """The fields that every account at a gateway has; ``gateway_settings`` adds those of its kind."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    kind: str = DEFAULT_KIND
    environment: Literal["sandbox", "live"] = "sandbox"
    simulator: bool = False
    """True where ``base_url`` is a simulator's: it may then be http on a private network."""
    base_url: Annotated[str, AfterValidator(parse.gateway_address)] | None = None
    """None for the gateway's own address in that environment."""
    rate_limit: Annotated[RateLimit | None, PlainValidator(parse.rate_limit)]
    """The gateway's budget of calls; None for no limit."""
    timeout_s: Annotated[float, Field(ge=0.1, le=120)] = 30
    queue_s: Annotated[float, Field(ge=0, le=60)] = 5
    timezone: Annotated[str, AfterValidator(parse.timezone)]
    shop_name: Annotated[str, AfterValidator(parse.shop_name)] | None = None
    shop_logo: Annotated[Logo | None, PlainValidator(parse.logo)] = None
    """The picture in the file that the setting names."""
    shop_colour: Annotated[Rgb | None, PlainValidator(parse.colour)] = None

    @property
    def shop(self) -> Shop:
        """How the customers' pages of this account look."""
        return Shop(name=self.shop_name, logo=self.shop_logo, colour=self.shop_colour)

    def common(self, name: str) -> CommonSettings:
        """Returns the settings of the account of that name that every kind of gateway has."""
        return CommonSettings(
            name=name,
            environment=self.environment,
            base_url=self.base_url,
            limit=self.rate_limit,
            timeout_s=self.timeout_s,
            queue_s=self.queue_s,
            timezone=self.timezone,
        )


def model_of(kind: GatewayKind) -> type[GatewaySettings]:
    """Makes the model of a kind of gateway: the common fields and its own."""
    bases: tuple[type[Any], ...] = (GatewaySettings, kind.settings)
    made: type[GatewaySettings] = create_model(GatewaySettings.__name__, __base__=bases)
    return made


_MODELS: Final = {name: model_of(kind) for name, kind in KINDS.items()}


def gateway_settings(value: object) -> GatewaySettings:
    """Reads the settings of one account, by the model of its kind. Raises ValidationError."""
    if isinstance(value, GatewaySettings):
        return value
    fields = value if isinstance(value, dict) else {}
    name = fields.get("kind", DEFAULT_KIND)
    if not isinstance(name, str) or name not in KINDS:
        error = ValueError(f"must be a known kind of gateway: {', '.join(KINDS)}")
        detail = InitErrorDetails(type="value_error", loc=("kind",), input=None, ctx={"error": error})
        raise ValidationError.from_exception_data(GatewaySettings.__name__, [detail])
    return _MODELS[name].model_validate({**KINDS[name].defaults, **fields} if isinstance(value, dict) else value)


class Settings(BaseModel):
    """All settings, made by ``read_settings``; a field has the name of its variable, in lower case."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    database_url: Annotated[_Secret, AfterValidator(parse.database_url)] = Secret("sqlite:///payrelay.db")
    """A secret because it may contain a password; print ``shown_database`` instead."""
    pool_size: Annotated[int, Field(ge=2, le=1000)] = 16
    """Connections to a shared database that the process may have."""
    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """The address of this machine that the service listens on."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8080
    """The port that the service listens on; 0 for any free one."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe level that the service logs."""
    gateways: dict[
        Annotated[str, AfterValidator(parse.gateway_name)], Annotated[GatewaySettings, PlainValidator(gateway_settings)]
    ] = {}
    identity: IdentitySettings | None = None
    partition: Annotated[str, AfterValidator(parse.gateway_name)] | None = None
    """The partition that this installation is; None where the accounts are not divided."""
    partition_map: Annotated[Mapping[str, str] | None, PlainValidator(parse.partition_map)] = None
    """The partition of each account, from the file that the setting names."""
    repeat_window: Annotated[int, PlainValidator(parse.repeat_window_s)] = 86_400
    """Seconds; 0 for none."""
    recovery_lag: Annotated[int, PlainValidator(parse.recovery_lag_s)] = 600
    """Seconds that a gateway may take to show an effect; a recovery from lost commits waits so long."""
    encryption_key: Annotated[_Secret, AfterValidator(parse.encryption_keys)] | None = None
    """As ``core.seal_keys.parse_keys`` reads it; None where the key beside the embedded database is used."""
    alert_command: Annotated[tuple[str, ...] | None, PlainValidator(parse.command), Field(repr=False)] = None
    """The program for alerts, with its arguments; not printed, because they may contain a secret."""
    alert_url: Annotated[_Secret, AfterValidator(parse.alert_address)] | None = None
    """The address that alerts are posted to; a secret because it often contains one."""
    anchor_path: Path | None = None
    """The file that gets the audit's newest anchor once a day; None for none."""
    anchor_alerts: bool = False
    """Whether the alert channels get the audit's newest anchor once a day."""
    mark_path: Path | None = None
    """The folder of the high-water marks; None for the one beside an embedded database."""
    public_url: Annotated[str, AfterValidator(parse.web_address)] | None = None
    trusted_proxies: _Networks = ()
    metrics_address: Annotated[parse.ListeningAddress | None, PlainValidator(parse.listening_address)] = None
    """Where /metrics is served in place of the API's address."""
    metrics_networks: _Networks = ()
    """The networks that may read /metrics; on the API's address nobody may where there is none."""
    address_connections_max: Annotated[int, Field(ge=4, le=4096)] = 256
    """Connections that one address may have without a valid credential."""
    principal_connections_max: Annotated[int, Field(ge=4, le=12_288)] = 512
    """Connections that one principal may have, and requests that it may have under way."""
    browser_origins: Annotated[
        tuple[Annotated[str, AfterValidator(parse.origin)], ...],
        BeforeValidator(parse.parts),
        Field(max_length=ORIGINS_MAX),
    ] = ()
    """The origins of pages whose scripts may use the API."""
    shutdown_delay: Annotated[int, Field(ge=0, le=300)] = 0
    """Seconds between the signal to stop, when the service calls itself not ready, and the end of its listening."""
    tracing: bool = False
    """Whether spans are recorded, and sent where OpenTelemetry's own variables say."""
    events: EventSettings = EventSettings()
    console: ConsoleSettings = ConsoleSettings()
    retention: RetentionSettings = RetentionSettings()
    reconciliation: ReconciliationSettings = ReconciliationSettings()
    return_links: Annotated[tuple[LinkRule, ...], PlainValidator(parse.link_rules)] = ()
    """The apps' links that a customer may be sent back to."""

    @property
    def embedded_path(self) -> Path | None:
        """The file of the embedded database; None with PostgreSQL."""
        name = embedded_file(self.database_url.reveal())
        return None if name is None else Path(name)

    @property
    def marks_folder(self) -> Path | None:
        """The folder of the high-water marks; None with PostgreSQL where none is named: no marks are kept then."""
        if self.mark_path is not None or self.embedded_path is None:
            return self.mark_path
        return marks_beside(self.embedded_path)

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
        """The environment that new keys are marked with: ``live`` where at least one account is live."""
        is_live = any(gateway.environment == "live" for gateway in self.gateways.values())
        return "live" if is_live else "sandbox"


def marks_beside(database: Path) -> Path:
    """Gives the folder of the marks of an embedded database, unless the settings name another."""
    return database.with_name(f"{database.name}.marks")


def require_serving(settings: Settings) -> None:
    """Raises SettingsError where a setting is missing or wrong that only the server needs."""
    if not settings.gateways:
        raise SettingsError(
            "no gateway is configured: set PAYRELAY_GATEWAYS__GATEWAY__APP_ID and"
            " PAYRELAY_GATEWAYS__GATEWAY__APP_SECRET (or try `payrelay demo`, which needs neither)"
        )
    if settings.embedded_path is None and settings.encryption_key is None:
        raise SettingsError(KEY_IS_MISSING)
    problem = problem_of_console(settings.console, settings.host, frozenset(settings.gateways))
    if problem is not None:
        raise SettingsError(problem)
    if settings.identity is not None:
        for name in sorted(settings.identity.accounts - settings.gateways.keys()):
            raise SettingsError(f"{parse.PREFIX}IDENTITY__ACCOUNTS names {name}, but no gateway has that name")
