"""Reads which hosts a database's URL names: one or several, of which one at a time can be written to."""

import ipaddress
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from payrelay.errors import SettingsError

_PORT: Final = 5432
_VERIFIED: Final = "verify-full"
"""The one mode of the driver in which the certificate must be of the host's name, and of a known authority."""


class Host(NamedTuple):
    """One host of a URL, as the driver takes it; None for the driver's own choice."""

    host: str | None
    port: int | None


def hosts_of(url: str) -> tuple[Host, ...]:
    """Gives the hosts of a URL, in their order. Raises SettingsError where they can't be read."""
    try:
        parts = urlsplit(url)
        query = _query_of(parts)
        listed = _hosts_of(parts)
        if listed:
            named = [_split(each) for each in listed.split(",")]
        else:
            named = [_split(each) for each in query.get("host", "").split(",") if each]
        ports = [int(each) for each in query.get("port", "").split(",") if each]
    except ValueError:
        raise unreadable() from None
    if not named:
        return (Host(None, ports[0] if ports else None),)
    if len(ports) not in {0, 1, len(named)}:
        raise unreadable()
    others = ports if len(ports) == len(named) else (ports or [_PORT]) * len(named)
    return tuple(Host(unquote(host), own or other) for (host, own), other in zip(named, others, strict=True))


def name_of(url: str) -> str:
    """Names the database without its password. Raises SettingsError for a URL that can't be read."""
    hosts_of(url)
    parts = urlsplit(url)
    return f"postgresql://{_hosts_of(parts)}{parts.path}"


def unverified_hosts(url: str, environment: Mapping[str, str]) -> list[str]:
    """Names the hosts of other machines on the way to which anybody may pose as the server.

    What the URL leaves out, the driver takes from a service of libpq's file, and from the ``environment``. The file
    isn't read here, so that whatever a service names counts as unverified.

    Raises SettingsError for a URL that can't be read.
    """
    hosts = [each.host or "" for each in hosts_of(url)]
    query = _query_of(urlsplit(url))
    service = query.get("service") or environment.get("PGSERVICE", "")
    mode = query.get("sslmode") or (None if service else environment.get("PGSSLMODE"))
    if hosts == [""]:
        try:
            hosts = [_split(each)[0] for each in environment.get("PGHOST", "").split(",")]
        except ValueError:
            raise unreadable() from None
        hosts = [f"what the service {service} names"] if service else hosts
    return [] if mode == _VERIFIED else [each for each in hosts if not _is_here(each)]


def unreadable() -> SettingsError:
    """Makes the error for a URL that can't be read, without quoting it."""
    return SettingsError("PAYRELAY_DATABASE_URL can't be read as postgresql://user@host/database")


def _query_of(parts: SplitResult) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(parts.query).items()}


def _hosts_of(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _is_here(host: str) -> bool:
    """True for a folder of sockets, the driver's own choice, and this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in {"", "localhost"} or host.startswith(("/", "@"))


def _split(host: str) -> tuple[str, int | None]:
    """Splits a host from its port. A folder of sockets has none, and an IPv6 address is in brackets."""
    if host.startswith(("/", "%2F", "%2f")):
        return host, None
    if host.startswith("["):
        name, _, port = host[1:].partition("]")
        return name, int(port.removeprefix(":")) if port else None
    name, _, port = host.partition(":")
    return name, int(port) if port else None
