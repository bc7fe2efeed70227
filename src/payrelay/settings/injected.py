"""Tells the variables that a cluster sets for its services from settings.

Kubernetes sets variables in every container for each service of its namespace. They begin with the service's name, so
those of a service called ``payrelay``, or ``payrelay-metrics``, look like settings.

Such a variable is known by name and value together. One of them alone could be a mistyped setting, which must be
refused.
"""

import ipaddress
import re
from typing import Final

from payrelay.settings.parse import PREFIX

_SERVICE: Final = f"{PREFIX}(?:[A-Z0-9_]+_)?"
_URL: Final = re.compile(r"(?:tcp|udp|sctp)://(?:[0-9.]+|\[[0-9a-f:.]+\]):[0-9]{1,5}")
_PORT: Final = re.compile(r"[0-9]{1,5}")
_PROTOCOL: Final = re.compile(r"tcp|udp|sctp")
_ENDPOINT: Final = f"{_SERVICE}PORT_[0-9]+_(?:TCP|UDP|SCTP)"

_IS_URL: Final = re.compile(f"{_SERVICE}PORT|{_ENDPOINT}")
_IS_PORT: Final = re.compile(f"{_SERVICE}SERVICE_PORT(?:_[A-Z0-9_]+)?|{_ENDPOINT}_PORT")
_IS_PROTOCOL: Final = re.compile(f"{_ENDPOINT}_PROTO")
_IS_ADDRESS: Final = re.compile(f"{_SERVICE}SERVICE_HOST|{_ENDPOINT}_ADDR")


def is_injected(name: str, value: str) -> bool:
    """True where a cluster sets a variable of this name to a value of this form.

    The setting ``PAYRELAY_PORT`` has a number; the cluster's variable of the same name has an address with its scheme.
    """
    return (
        (_IS_URL.fullmatch(name) is not None and _URL.fullmatch(value) is not None)
        or (_IS_PORT.fullmatch(name) is not None and _PORT.fullmatch(value) is not None)
        or (_IS_PROTOCOL.fullmatch(name) is not None and _PROTOCOL.fullmatch(value) is not None)
        or (_IS_ADDRESS.fullmatch(name) is not None and _is_address(value))
    )


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True
