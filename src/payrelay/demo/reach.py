"""How a phone in the same network reaches the demo: the address that it is printed with, and a code to scan."""

import io
import ipaddress
import socket
from typing import Final

import segno

_SOMEWHERE: Final = {socket.AF_INET: ("192.0.2.1", 9), socket.AF_INET6: ("2001:db8::1", 9)}
"""Addresses of documentations. To say which way leads there sends nothing."""


def reached_at(host: str) -> str:
    """Gives the host that others reach: the one to listen on, or where that is all of them, this machine's own.

    Without a network this is the machine's loopback address.
    """
    if not _is_any(host):
        return host
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(_SOMEWHERE[family])
        except OSError:
            return "::1" if family == socket.AF_INET6 else "127.0.0.1"
        return str(asking.getsockname()[0])


def is_this_machines_usual(host: str) -> bool:
    """True for the addresses that no phone can open, and that nobody asked for."""
    return host in {"127.0.0.1", "::1", "localhost"}


def code_of(address: str) -> list[str]:
    """Draws the QR code of an address, in half blocks: light where the text is."""
    drawn = io.StringIO()
    segno.make_qr(address, error="l").terminal(drawn, border=2, compact=True)
    return drawn.getvalue().splitlines()


def _is_any(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return host == ""
