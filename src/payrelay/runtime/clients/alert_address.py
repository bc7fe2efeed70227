"""Sends alerts to an address (``runtime.alert_channels`` has the other channels)."""

from http import HTTPStatus
from typing import Final

import aiohttp

from payrelay.runtime.alert_channels import NotGivenError
from payrelay.runtime.connections import session_to_others

ADDRESS_MAX_S: Final = 10.0
"""How long an address may take, from the look-up of its name to the status of its answer."""
_HEADERS: Final = {"Content-Type": "application/json", "User-Agent": "payrelay"}


class Address:
    """Posts the alert to an address; any status from 200 to 299 means that the address accepted it."""

    def __init__(self, url: str, *, limit_s: float = ADDRESS_MAX_S) -> None:
        self._url = url
        self._limit_s = limit_s

    async def __call__(self, body: bytes) -> None:
        """Sends an alert; raises NotGivenError where the address did not accept it."""
        try:
            async with (
                session_to_others(self._limit_s) as session,
                session.post(self._url, data=body, headers=_HEADERS, allow_redirects=False) as response,
            ):
                status = response.status
        except TimeoutError:
            raise NotGivenError(f"the address had not answered after {self._limit_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NotGivenError("the address could not be reached") from error
        if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
            raise NotGivenError(f"the address answered with HTTP {status}")
