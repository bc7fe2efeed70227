"""The settings: one frozen value, read and checked once at start, and passed down.

Rules:

1. No other module reads the environment.
2. A value comes from the environment or, where it isn't there, from ``payrelay.toml`` (the same names, nested).
   An empty variable counts as not set.
3. Any setting may be given as a file: its name with ``_FILE`` behind it, and a path for its value.
4. What is not a setting is refused by name: a mistyped one must not pass in silence.
5. An error names the setting in its environment form and never shows its value.

What an account at a gateway has beyond what all have is read by the model of its kind (``gateways.registry``).

To be changed together: the fields below and ``docs/configuration.md``; a test compares them.
"""

import contextlib
import ipaddress
import os
import re
import shlex
import tomllib
import zoneinfo
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    create_model,
)
from pydantic_core import ErrorDetails, InitErrorDetails

from payrelay.core.access.client_token import CLIENT_SCOPES, PAYING, USUAL_SCOPES
from payrelay.core.access.credential import Scope
from payrelay.core.checkouts.return_links import LinkRule, parse_rule
from payrelay.core.database_url import embedded_file
from payrelay.core.durations import span_s
from payrelay.core.events.destinations import Allowed, allowed_of
from payrelay.core.gateways.rate_limit import CALLS_MIN, RateLimit
from payrelay.core.seal_keys import parse_keys
from payrelay.core.secret import Secret, secret_of
from payrelay.errors import SettingsError
from payrelay.gateways.kinds import GatewayKind
from payrelay.gateways.registry import DEFAULT_KIND, KINDS

PREFIX: Final = "PAYRELAY_"
CONFIG_VARIABLE: Final = "PAYRELAY_CONFIG"
"""Names the configuration file; the only variable that is not itself a setting."""
CONFIG_NAME: Final = "payrelay.toml"
"""The configuration file in the working directory; it need not be there."""

REPEAT_WINDOW_MAX_S: Final = 30 * 86_400
"""As long as an answer is kept under an Idempotency-Key."""
ORIGINS_MAX: Final = 100
RETURN_LINKS_MAX: Final = 100
NETWORKS_MAX: Final = 100
"""Every request's address is held against the list."""
FILE_BYTES_MAX: Final = 65_536
"""A secret is short; a larger file is the wrong one."""
PROBLEMS_SHOWN_MAX: Final = 5
"""The one line that names what is wrong stays readable."""
KEY_IS_MISSING: Final = "PAYRELAY_ENCRYPTION_KEY is missing; it is required with postgresql://"

_DELIMITER: Final = "__"
_FILE_SUFFIX: Final = "_file"
_GATEWAYS: Final = "gateways"
_EVENTS: Final = "events"
_IDENTITY: Final = "identity"
_NESTED: Final = {_GATEWAYS, _EVENTS, _IDENTITY}
GATEWAY_NAME: Final = re.compile(r"[a-z0-9-]{1,32}")
_POSTGRESQL: Final = "postgresql://"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_Tree = dict[str, object]


def _database_url(url: Secret) -> Secret:
    try:
        embedded_file(url.reveal())
    except SettingsError as error:
        raise ValueError(str(error).removeprefix(f"{PREFIX}DATABASE_URL ")) from None
    return url


def _web_address(text: str) -> str:
    """Checks an absolute address without query, fragment or password, and cuts the slash at its end."""
    parts = urlsplit("")
    is_address = False
    with contextlib.suppress(ValueError):  # a port or an IPv6 address that can't be read
        parts = urlsplit(text)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    if not is_address or parts.query or parts.fragment or parts.username or parts.password:
        raise ValueError("must be an absolute http or https address without user, query and fragment")
    return text.rstrip("/")


def _origin(text: str) -> str:
    """Checks an origin as browsers write it: small letters, no slash at its end, no port that goes without saying."""
    parts = urlsplit(_web_address(text))
    usual = {"http": 80, "https": 443}[parts.scheme]
    if parts.path or text != text.lower() or text.endswith("/") or parts.port == usual:
        raise ValueError("must be an origin as browsers write it, such as https://shop.example")
    return text


def _gateway_address(text: str) -> str:
    """As above; and http only on this machine, because the gateway's secrets go there."""
    address = _web_address(text)
    parts = urlsplit(address)
    if parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        raise ValueError("must be https; http is for a simulator on this machine (127.0.0.1, localhost) only")
    return address


def _keys_address(text: str) -> str:
    """As above, but some providers want a query."""
    address, question, query = text.partition("?")
    if question and not query.isprintable():
        raise ValueError("must be an absolute address")
    try:
        _gateway_address(address)
    except ValueError:
        raise ValueError("must be an absolute https address; http is for this machine only") from None
    return text


def _client_scopes(value: object, info: ValidationInfo) -> frozenset[Scope]:
    """Checks what bearers of a provider's tokens may do: what phones may do at all, and paying only with an order."""
    names = _parts(value)
    if not isinstance(names, list | tuple) or not names or not all(name in CLIENT_SCOPES for name in names):
        raise ValueError(f"must be some of {', '.join(sorted(CLIENT_SCOPES))}")
    scopes = frozenset(map(Scope, names))
    paying = sorted(scopes & PAYING)
    if paying and info.data.get("order_claim") is None:
        raise ValueError(f"has {paying[0]}, which needs {PREFIX}IDENTITY__ORDER_CLAIM")
    return scopes


def _alert_address(url: Secret) -> Secret:
    """As above, but whoever takes alerts may want a query."""
    address, question, query = url.reveal().partition("?")
    if question and not query.isprintable():
        raise ValueError("must be an absolute address")
    try:
        _gateway_address(address)
    except ValueError:
        raise ValueError("must be an absolute https address; http is for this machine only") from None
    return url


def _command(value: object) -> tuple[str, ...]:
    """Reads a command as a shell would split it, or as a list."""
    try:
        arguments = shlex.split(value) if isinstance(value, str) else value
    except ValueError:
        arguments = None
    if not isinstance(arguments, list | tuple) or not arguments or not all(isinstance(part, str) for part in arguments):
        raise ValueError("must be a command such as /usr/local/bin/call-me --loudly, well quoted")
    return tuple(arguments)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _gateway_name(name: str) -> str:
    if GATEWAY_NAME.fullmatch(name) is None:
        raise ValueError("must be a name of 1 to 32 small letters, digits and hyphens")
    return name


def _timezone(name: str) -> str:
    try:
        zoneinfo.ZoneInfo(name)
    except (OSError, ValueError, zoneinfo.ZoneInfoNotFoundError):
        raise ValueError("must be a time zone such as Asia/Colombo") from None
    return name


def _rate_limit(value: object) -> RateLimit | None:
    try:
        return RateLimit.parse(str(value))
    except ValueError:
        raise ValueError(
            f"must be a limit such as 20/10s, at least {CALLS_MIN} call in whole seconds, or off"
        ) from None


def _repeat_window_s(value: object) -> int:
    seconds = span_s(str(value))
    if seconds > REPEAT_WINDOW_MAX_S:
        raise ValueError("must be at most 30d")
    return seconds


def _parts(value: object) -> object:
    """Splits a list that was written as text with commas; a list stays as it is."""
    if not isinstance(value, str):
        return value
    return tuple(part for part in (piece.strip() for piece in value.split(",")) if part)


def _network(value: object) -> Network:
    try:
        return ipaddress.ip_network(str(value))
    except ValueError:
        raise ValueError("must be addresses or networks such as 10.0.0.0/8, separated by commas") from None


def _link_rules(value: object) -> tuple[LinkRule, ...]:
    texts = _parts(value)
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise ValueError("must be links, separated by commas")
    if len(texts) > RETURN_LINKS_MAX:
        raise ValueError(f"must be at most {RETURN_LINKS_MAX} links")
    return tuple(parse_rule(text) for text in texts)


def _encryption_keys(secret: Secret) -> Secret:
    try:
        parse_keys(secret.reveal())
    except SettingsError as error:
        raise ValueError(str(error).removeprefix(f"{PREFIX}ENCRYPTION_KEY ")) from None
    return secret


_Secret = Annotated[Secret, PlainValidator(secret_of)]
_Networks = Annotated[
    tuple[Annotated[Network, PlainValidator(_network)], ...],
    BeforeValidator(_parts),
    Field(max_length=NETWORKS_MAX),
]


class GatewaySettings(BaseModel):
    """One account at a gateway: what every kind has; ``gateway_settings`` gives one with the fields of its kind."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    kind: str = DEFAULT_KIND
    environment: Literal["sandbox", "live"] = "sandbox"
    base_url: Annotated[str, AfterValidator(_gateway_address)] | None = None
    """None for the gateway's own address in that environment."""
    rate_limit: Annotated[RateLimit | None, PlainValidator(_rate_limit)]
    """Calls upstream; None for no limit."""
    timeout_s: Annotated[float, Field(ge=0.1, le=120)] = 30
    queue_s: Annotated[float, Field(ge=0, le=60)] = 5
    timezone: Annotated[str, AfterValidator(_timezone)]


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


def _allowed_hosts(value: object) -> Allowed:
    texts = _parts(value)
    if not isinstance(texts, list | tuple) or len(texts) > NETWORKS_MAX:
        raise ValueError(f"must be at most {NETWORKS_MAX} names or networks, separated by commas")
    return allowed_of(str(text) for text in texts)


class EventSettings(BaseModel):
    """How events are sent out."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, arbitrary_types_allowed=True)

    allowed_hosts: Annotated[Allowed, PlainValidator(_allowed_hosts)] = Allowed()
    """Where events may be sent although it is no public address, or not over https."""


class IdentitySettings(BaseModel):
    """An identity provider whose own tokens are taken; see ``core.access.identity_provider.Provider``."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    jwks_url: Annotated[str, AfterValidator(_keys_address)]
    """Where its keys are."""
    issuer: Annotated[str, Field(min_length=1)]
    audience: Annotated[str, Field(min_length=1)]
    principal: Annotated[str, Field(min_length=1)]
    """Whose customers its people are: the name of a server's key."""
    customer_claim: Annotated[str, Field(min_length=1)] = "sub"
    customer_claim_is: Literal["reference", "customer"] = "reference"
    order_claim: Annotated[str, Field(min_length=1)] | None = None
    scopes: Annotated[frozenset[Scope], PlainValidator(_client_scopes)] = USUAL_SCOPES
    accounts: Annotated[frozenset[str], BeforeValidator(_parts)] = frozenset()
    """None named is all of them."""


class Settings(BaseModel):
    """All settings, made by ``read_settings``; a field is named as its variable, in small letters."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    database_url: Annotated[_Secret, AfterValidator(_database_url)] = Secret("sqlite:///payrelay.db")
    """A secret because it may hold a password; ``shown_database`` is fit to be printed."""
    gateways: dict[
        Annotated[str, AfterValidator(_gateway_name)], Annotated[GatewaySettings, PlainValidator(gateway_settings)]
    ] = {}
    identity: IdentitySettings | None = None
    repeat_window: Annotated[int, PlainValidator(_repeat_window_s)] = 86_400
    """Seconds; 0 for none."""
    encryption_key: Annotated[_Secret, AfterValidator(_encryption_keys)] | None = None
    """As ``core.seal_keys.parse_keys`` reads it; None where the embedded database keeps its own."""
    alert_command: Annotated[tuple[str, ...] | None, PlainValidator(_command), Field(repr=False)] = None
    """The program and its arguments that an alert is given to; not printed, because they may hold a secret."""
    alert_url: Annotated[_Secret, AfterValidator(_alert_address)] | None = None
    """The address that an alert is posted to; a secret because it often holds one."""
    public_url: Annotated[str, AfterValidator(_web_address)] | None = None
    trusted_proxies: _Networks = ()
    metrics_networks: _Networks = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))
    """Who may read /metrics."""
    browser_origins: Annotated[
        tuple[Annotated[str, AfterValidator(_origin)], ...], BeforeValidator(_parts), Field(max_length=ORIGINS_MAX)
    ] = ()
    """The pages whose scripts may use the API, by their origins."""
    events: EventSettings = EventSettings()
    return_links: Annotated[tuple[LinkRule, ...], PlainValidator(_link_rules)] = ()
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


def read_settings(environ: Mapping[str, str] | None = None, directory: Path | None = None) -> Settings:
    """Reads and checks the settings of the environment and the configuration file; raises SettingsError.

    Without arguments, the process's environment and its working directory.
    """
    variables = _variables(os.environ if environ is None else environ)
    config_path = _config_path(variables.pop(CONFIG_VARIABLE, None), directory or Path())
    _require_known(variables)
    tree = _merged(_read_config(config_path), _nested(_resolved(variables)))
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise SettingsError(_one_line(error.errors(include_input=False))) from None


def surroundings(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Gives what a program that we start may see of our environment: all but our own settings, secrets among them."""
    variables = os.environ if environ is None else environ
    return {name: value for name, value in variables.items() if not name.upper().startswith(PREFIX)}


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
            raise SettingsError(f"{PREFIX}IDENTITY__ACCOUNTS names {name}, and no gateway is called so")


def variable_name(location: tuple[int | str, ...]) -> str:
    """Names a setting in its environment form: ("gateways", "a", "app_id") is PAYRELAY_GATEWAYS__A__APP_ID."""
    names = [part.upper() for part in location if isinstance(part, str) and part != "[key]"]
    return PREFIX + _DELIMITER.join(names)


def _variables(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if name.startswith(PREFIX) and value}


def _require_known(variables: Mapping[str, str]) -> None:
    """Refuses a variable that can't be a setting; what stands inside a gateway is checked with its values."""
    for name in variables:
        first, *rest = name.removeprefix(PREFIX).lower().split(_DELIMITER)
        is_gateway = first == _GATEWAYS and len(rest) == 2  # noqa: PLR2004  a name and a field
        is_of_events = first == _EVENTS and [name.removesuffix(_FILE_SUFFIX) for name in rest] == ["allowed_hosts"]
        is_identity = first == _IDENTITY and len(rest) == 1
        is_plain = first.removesuffix(_FILE_SUFFIX) in Settings.model_fields.keys() - _NESTED and not rest
        if not (is_gateway or is_of_events or is_identity or is_plain):
            raise SettingsError(f"{name} is not a setting")


def _resolved(variables: Mapping[str, str]) -> dict[str, str]:
    """Reads the files that are named in place of values."""
    values: dict[str, str] = {}
    for name, value in variables.items():
        plain = name[: -len(_FILE_SUFFIX)] if name.lower().endswith(_FILE_SUFFIX) else name
        if plain in values or (plain != name and plain in variables):
            raise SettingsError(f"{plain} and {plain}_FILE are both set; one must go")
        values[plain] = value if plain == name else _read_file(name, Path(value))
    return values


def _nested(values: Mapping[str, str]) -> _Tree:
    """Makes ``{"gateways": {"a": {"app_id": …}}}`` of PAYRELAY_GATEWAYS__A__APP_ID."""
    tree: _Tree = {}
    for name, value in values.items():
        *parents, last = name.removeprefix(PREFIX).lower().split(_DELIMITER)
        branch: _Tree = {last: value}
        for parent in reversed(parents):
            branch = {parent: branch}
        tree = _merged(tree, branch)
    return tree


def _merged(below: _Tree, above: _Tree) -> _Tree:
    """Lays one tree over another; where both have a value, the upper one counts."""
    merged = dict(below)
    for key, value in above.items():
        lower = below.get(key)
        merged[key] = _merged(lower, value) if isinstance(lower, dict) and isinstance(value, dict) else value
    return merged


def _read_file(name: str, path: Path) -> str:
    """Gives a file's text without the newline at its end."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise SettingsError(f"{name} names a file that can't be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{name} names a file that is not text") from None
    if len(text) > FILE_BYTES_MAX:
        raise SettingsError(f"{name} names a file of more than {FILE_BYTES_MAX} bytes")
    return text.rstrip("\r\n")


def _config_path(named: str | None, directory: Path) -> Path | None:
    """Gives the configuration file: the named one, which must be there, or the usual one, if it is."""
    path = directory / (named or CONFIG_NAME)
    if path.is_file():
        return path
    if named is not None:
        raise SettingsError(f"{CONFIG_VARIABLE} names a file that isn't there")
    return None


def _read_config(path: Path | None) -> _Tree:
    if path is None:
        return {}
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        # The parser's text names line and column, never the line itself.
        raise SettingsError(f"{path.name} can't be read: {error}") from None
    for key in tree:
        if key.removesuffix(_FILE_SUFFIX) not in Settings.model_fields:
            raise SettingsError(f"{key} in {path.name} is not a setting")
    return _with_files(tree, ())


def _with_files(tree: _Tree, location: tuple[str, ...]) -> _Tree:
    """Reads the files that a configuration file names in place of values, at every depth."""
    values: _Tree = {}
    for key, value in tree.items():
        plain = key.removesuffix(_FILE_SUFFIX)
        name = variable_name((*location, key))
        if isinstance(value, dict):
            values[key] = _with_files(value, (*location, key))
        elif plain == key:
            values[key] = value
        elif plain in tree:
            raise SettingsError(f"{name.removesuffix('_FILE')} and {name} are both set; one must go")
        else:
            values[plain] = _read_file(name, Path(str(value)))
    return values


def _one_line(errors: list[ErrorDetails]) -> str:
    """Names what is wrong, setting by setting, in one line and without a value."""
    problems = [f"{variable_name(error['loc'])} {_complaint(error)}" for error in errors]
    hidden = len(problems) - PROBLEMS_SHOWN_MAX
    tail = f"; and {hidden} more" if hidden > 0 else ""
    return "; ".join(problems[:PROBLEMS_SHOWN_MAX]) + tail


def _complaint(error: ErrorDetails) -> str:
    match error["type"]:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return "is not a setting"
        case "value_error":
            return str(error["ctx"]["error"])
        case _:
            return error["msg"].replace("Input should", "must").replace("String should", "must")
