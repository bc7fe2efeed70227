"""Tries the service's own address from outside, as the gateway and the customers' browsers would call it."""

from enum import StrEnum
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from payrelay.core.events.destinations import literal_of
from payrelay.core.events.public_addresses import is_public

TRIED_FOR_S: Final = 5.0
"""How long the address may take, from the look-up of its name to the answer."""
_LIVE: Final = "/health/live"
_READ_MAX: Final = 200


class PublicAddressState(StrEnum):
    """What a trial of the address showed."""

    PRIVATE = "private"
    """It is an address of this machine or of a private network, which the gateway can't reach."""
    SILENT = "silent"
    """Nothing answers there, as seen from this machine."""
    OTHER = "other"
    """Something answers there that is not Payrelay."""
    ANSWERS = "answers"
    """Payrelay answers there, as seen from this machine; the gateway may see something else."""


async def try_public_address(public_url: str, *, connector: aiohttp.BaseConnector | None = None) -> PublicAddressState:
    """Calls the service at its public address, as far as that can lead to it; never raises for what the network does.

    No private address is called: that a service answers there says nothing of what the gateway can reach. ``connector``
    makes the connections; None for aiohttp's own.
    """
    host = urlsplit(public_url).hostname or ""
    address = literal_of(host)
    if host == "localhost" or host.endswith(".localhost") or (address is not None and not is_public(address)):
        return PublicAddressState.PRIVATE
    timeout = aiohttp.ClientTimeout(total=TRIED_FOR_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, connector=connector) as session,
            session.get(public_url + _LIVE, allow_redirects=False) as reply,
        ):
            content = await reply.content.read(_READ_MAX)
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError):
        return PublicAddressState.SILENT
    is_ours = reply.status == HTTPStatus.OK and b'"status"' in content
    return PublicAddressState.ANSWERS if is_ours else PublicAddressState.OTHER
