"""Parsers of settings; each function reads and checks one kind of value.

A wrong value raises ValueError, which says what the setting must be. The error never has the value, which may be a
secret in the wrong place.
"""

import contextlib
import ipaddress
import re
import shlex
import zoneinfo
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from pydantic import ValidationInfo

from payrelay.core.access.client_token import CLIENT_SCOPES, PAYING
from payrelay.core.access.credential import Scope
from payrelay.core.checkouts.return_links import LinkRule, is_near, parse_rule
from payrelay.core.checkouts.shop import LOGO_BYTES_MAX, Logo, Rgb, logo_of, parse_colour
from payrelay.core.database.database_url import embedded_file
from payrelay.core.events.destinations import AllowedDestinations, allowed_of
from payrelay.core.gateways.rate_limit import CALLS_MIN, RateLimit
from payrelay.core.moments import span_s
from payrelay.core.seal_keys import parse_keys
from payrelay.core.secret import Secret
from payrelay.errors import SettingsError
from payrelay.settings.file_modes import require_own

PREFIX: Final = "PAYRELAY_"
REPEAT_WINDOW_MAX_S: Final = 30 * 86_400
RECOVERY_LAG_MAX_S: Final = 86_400
"""As long as the store keeps an answer under an Idempotency-Key."""
RETURN_LINKS_MAX: Final = 100
SHOP_NAME_LENGTH_MAX: Final = 60
NETWORKS_MAX: Final = 100
"""A limit, because every request's address is compared with the list."""
PORT_MAX: Final = 65_535
GATEWAY_NAME: Final = re.compile(r"[a-z0-9-]{1,32}")
_port_match: Final = re.compile(r"[0-9]{1,5}").fullmatch

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def database_url(url: Secret) -> Secret:
    """Checks that an address names a database of a known kind."""
    try:
        embedded_file(url.reveal())
    except SettingsError as error:
        raise ValueError(str(error).removeprefix(f"{PREFIX}DATABASE_URL ")) from None
    return url


def web_address(text: str) -> str:
    """Checks an absolute address without user, password, query and fragment, and removes slashes at its end."""
    parts = urlsplit("")
    is_address = False
    with contextlib.suppress(ValueError):  # a port or an IPv6 address that can't be read
        parts = urlsplit(text)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    if not is_address or parts.query or parts.fragment or parts.username or parts.password:
        raise ValueError("must be an absolute http or https address without user, query and fragment")
    return text.rstrip("/")


def origin(text: str) -> str:
    """Checks an origin as browsers write it: lower case, no slash at its end, no default port."""
    parts = urlsplit(web_address(text))
    default_port = {"http": 80, "https": 443}[parts.scheme]
    if parts.path or text != text.lower() or text.endswith("/") or parts.port == default_port:
        raise ValueError("must be an origin as browsers write it, such as https://shop.example")
    return text


def private_address(text: str) -> str:
    """Checks a web address to which secrets are sent: https, or http on this machine alone."""
    address = web_address(text)
    parts = urlsplit(address)
    if parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        raise ValueError("must be https; http is for a simulator on this machine (127.0.0.1, localhost) only")
    return address


def gateway_address(text: str, info: ValidationInfo) -> str:
    """Checks a gateway's address: a ``private_address``, or for a simulator http on a private network, by its number.

    A simulator stands for the sandbox alone: the live environment has no second gateway.
    """
    if not info.data.get("simulator", False):
        return private_address(text)
    if info.data.get("environment") == "live":
        raise ValueError("is a simulator's, and the environment is live")
    address = web_address(text)
    parts = urlsplit(address)
    host = parts.hostname or ""
    if parts.scheme == "http" and not (_is_loopback(host) or is_near(host)):
        raise ValueError("must be https, or the number of a machine on a private network, such as 192.168.1.5")
    return address


def private_address_with_query(text: str) -> str:
    """Checks a ``private_address`` that may have a query, which some identity providers need."""
    address, question, query = text.partition("?")
    if question and not query.isprintable():
        raise ValueError("must be an absolute address")
    try:
        private_address(address)
    except ValueError:
        raise ValueError("must be an absolute https address; http is for this machine only") from None
    return text


def client_scopes(value: object, info: ValidationInfo) -> frozenset[Scope]:
    """Checks the scopes of an identity provider's tokens: those of client tokens.

    Paying needs the claims that name order, amount and currency.
    """
    names = parts(value)
    if not isinstance(names, list | tuple) or not names or not all(name in CLIENT_SCOPES for name in names):
        raise ValueError(f"must be some of {', '.join(sorted(CLIENT_SCOPES))}")
    scopes = frozenset(map(Scope, names))
    paying = sorted(scopes & PAYING)
    for claim in ("order_claim", "amount_claim", "currency_claim"):
        if paying and info.data.get(claim) is None:
            raise ValueError(f"has {paying[0]}, which needs {PREFIX}IDENTITY__{claim.upper()}")
    return scopes


def alert_address(url: Secret) -> Secret:
    """Checks the address that alerts are posted to, which may have a query."""
    private_address_with_query(url.reveal())
    return url


def command(value: object) -> tuple[str, ...]:
    """Reads a command from a text, split as a shell would, or from a list."""
    try:
        arguments = shlex.split(value) if isinstance(value, str) else value
    except ValueError:
        arguments = None
    if not isinstance(arguments, list | tuple) or not arguments or not all(isinstance(part, str) for part in arguments):
        raise ValueError("must be a command such as /usr/local/bin/call-me --loudly, properly quoted")
    return tuple(arguments)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def gateway_name(name: str) -> str:
    """Checks the name of an account, which is a segment of addresses."""
    if GATEWAY_NAME.fullmatch(name) is None:
        raise ValueError("must be a name of 1 to 32 lower-case letters, digits and hyphens")
    return name


def partition_map(value: object) -> Mapping[str, str]:
    """Reads the partition of each account from a map of HAProxy's: a line for each, and comments behind # in front.

    Of two lines for one account HAProxy takes the first, and says nothing; here they are refused.
    """
    path = Path(str(value))
    try:
        require_own(path, "is not safe", is_secret=False)
        lines = path.read_text(encoding="utf-8").splitlines()
    except SettingsError as error:
        raise ValueError(str(error)) from None
    except OSError as error:
        raise ValueError(f"names a file that can't be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise ValueError("names a file that is not text") from None
    partition_of: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match [] if line.startswith("#") else line.split():
            case []:
                pass
            case [account, partition] if GATEWAY_NAME.fullmatch(account) and GATEWAY_NAME.fullmatch(partition):
                if account in partition_of:
                    raise ValueError(f"has the account {account} twice: {partition_of[account]}, {partition}")
                partition_of[account] = partition
            case _:
                raise ValueError(f"has something else in line {number} than an account and its partition")
    return partition_of


def timezone(name: str) -> str:
    """Checks that a time zone is known."""
    try:
        zoneinfo.ZoneInfo(name)
    except (OSError, ValueError, RecursionError, zoneinfo.ZoneInfoNotFoundError):
        raise ValueError("must be a time zone such as Asia/Colombo") from None
    return name


def rate_limit(value: object) -> RateLimit | None:
    """Reads a limit of calls; None for ``off``."""
    try:
        return RateLimit.parse(str(value))
    except ValueError:
        raise ValueError(
            f"must be a limit such as 20/10s, at least {CALLS_MIN} call in whole seconds, or off"
        ) from None


def repeat_window_s(value: object) -> int:
    """Reads a duration, in seconds."""
    seconds = span_s(str(value))
    if seconds > REPEAT_WINDOW_MAX_S:
        raise ValueError("must be at most 30d")
    return seconds


def recovery_lag_s(value: object) -> int:
    """Reads a duration, in seconds."""
    seconds = span_s(str(value))
    if seconds > RECOVERY_LAG_MAX_S:
        raise ValueError("must be at most 1d")
    return seconds


def parts(value: object) -> object:
    """Splits a text at its commas, without empty parts; any other value stays as it is."""
    if not isinstance(value, str):
        return value
    return tuple(part for part in (piece.strip() for piece in value.split(",")) if part)


def network(value: object) -> Network:
    """Reads a network; a single address is a network of one address."""
    try:
        return ipaddress.ip_network(str(value))
    except ValueError:
        raise ValueError("must be addresses or networks such as 10.0.0.0/8, separated by commas") from None


class ListeningAddress(NamedTuple):
    """An address of this machine to listen on."""

    host: str
    port: int


def listening_address(value: object) -> ListeningAddress:
    """Reads an address and a port, such as ``127.0.0.1:9464`` or ``[::1]:9464``."""
    parts = urlsplit("")
    port = None
    with contextlib.suppress(ValueError):
        parts = urlsplit(f"//{value}")
        port = parts.port
    if not parts.hostname or not port or parts.netloc != value or parts.username is not None:
        raise ValueError("must be an address and a port such as 127.0.0.1:9464")
    return ListeningAddress(parts.hostname, port)


def link_rules(value: object, info: ValidationInfo) -> tuple[LinkRule, ...]:
    """Reads the list of apps' links that a customer may be sent back to.

    Where all accounts are at simulators, a link may be http on a private network: no customer has paid.
    """
    gateways = info.data.get("gateways") or {}
    may_be_near = bool(gateways) and all(account.simulator for account in gateways.values())
    texts = parts(value)
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise ValueError("must be links, separated by commas")
    if len(texts) > RETURN_LINKS_MAX:
        raise ValueError(f"must be at most {RETURN_LINKS_MAX} links")
    return tuple(parse_rule(text, may_be_near=may_be_near) for text in texts)


def shop_name(text: str) -> str:
    """Checks the name of a shop as its pages show it: one line."""
    if not 0 < len(text.strip()) <= SHOP_NAME_LENGTH_MAX or not text.isprintable():
        raise ValueError(f"must be a name of 1 to {SHOP_NAME_LENGTH_MAX} characters, in one line")
    return text.strip()


def logo(value: object, info: ValidationInfo) -> Logo:
    """Reads the picture in a file; it needs the name of the shop, which is read aloud in its place."""
    if info.data.get("shop_name", "") is None:
        raise ValueError("needs SHOP_NAME beside it, for those who don't see the logo")
    try:
        with Path(str(value)).open("rb") as file:
            return logo_of(file.read(LOGO_BYTES_MAX + 1))
    except OSError as error:
        raise ValueError(f"names a file that can't be read ({error.strerror})") from None


def colour(value: object) -> Rgb:
    """Reads a colour."""
    return parse_colour(str(value))


def encryption_keys(secret: Secret) -> Secret:
    """Checks one key, or several separated by commas."""
    try:
        parse_keys(secret.reveal())
    except SettingsError as error:
        raise ValueError(str(error).removeprefix(f"{PREFIX}ENCRYPTION_KEY ")) from None
    return secret


def allowed_hosts(value: object) -> AllowedDestinations:
    """Reads a list of host names and networks."""
    texts = parts(value)
    if not isinstance(texts, list | tuple) or len(texts) > NETWORKS_MAX:
        raise ValueError(f"must be at most {NETWORKS_MAX} names or networks, separated by commas")
    return allowed_of(str(text) for text in texts)


def ports(value: object) -> frozenset[int]:
    """Reads a list of ports."""
    given = parts(value)
    texts = [str(each) for each in given] if isinstance(given, list | tuple) else []
    numbers = [int(text) for text in texts if _port_match(text)]
    if not texts or len(numbers) != len(texts) or not all(1 <= number <= PORT_MAX for number in numbers):
        raise ValueError("must be ports such as 443,8443, separated by commas")
    return frozenset(numbers)
