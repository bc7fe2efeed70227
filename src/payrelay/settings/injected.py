"""Tells the variables that a cluster sets for its services, and those of our clients, from settings.

Kubernetes sets variables in every container for each service of its namespace. They begin with the service's name, so
those of a service called ``payrelay``, or ``payrelay-metrics``, look like settings.

Clients are given a key and a secret of webhooks by variables that begin as settings do. Whoever tries a client and
types a command in the same terminal has them in its environment.

Such a variable is known by name and value together. One of them alone could be a mistyped setting, which must be
refused.
"""

import ipaddress
import re
from typing import Final

from payrelay.settings.parse import PREFIX

_OF_CLIENTS: Final = {"PAYRELAY_KEY": ("prk_", "prt_"), "PAYRELAY_WEBHOOK_SECRET": ("whsec_",)}
_SERVICE: Final = rf"(?=[A-Z0-9_]+\Z){PREFIX}(?:[A-Z0-9_]+_)?"
"""How such a name begins. All of its characters are looked at first: a wrong one at its end would be come to anew from
each place where the rest may begin."""
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


def is_of_client(name: str, value: str) -> bool:
    """True where a variable gives a client of ours its key, or the secret of its webhooks."""
    return value.startswith(_OF_CLIENTS.get(name, ()))


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True
