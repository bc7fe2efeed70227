"""The members of a JSON body, read one by one with an answer for each way in which they can be wrong."""

from collections.abc import Mapping
from decimal import Decimal

import msgspec

from payrelay_simulator.errors import RefusalError
from payrelay_simulator.reply import marked_failure, protocol_failure

# Digits of the largest 64-bit number: no identifier of the gateway is longer.
ID_DIGITS_MAX = 19

_decoder = msgspec.json.Decoder(float_hook=Decimal)


class Fields:
    """A request's members; reading a wrong one raises the RefusalError that answers it."""

    def __init__(self, members: Mapping[str, object]) -> None:
        self._members = members

    def __contains__(self, name: str) -> bool:
        return self._members.get(name) is not None

    def raw(self, name: str) -> object:
        """Return the member as it came; None where it is missing or null."""
        return self._members.get(name)

    def text(self, name: str) -> str:
        """Return a text that must be there and not empty."""
        value = self._members.get(name)
        if value is None or value == "":
            raise RefusalError(marked_failure(f"{name} is missing"))
        if not isinstance(value, str):
            raise RefusalError(marked_failure(f"{name} must be a text"))
        return value

    def optional_text(self, name: str) -> str | None:
        """Return a text, or None where it is missing or null."""
        value = self._members.get(name)
        if value is not None and not isinstance(value, str):
            raise RefusalError(marked_failure(f"{name} must be a text"))
        return value

    def identifier(self, name: str) -> int:
        """Return an id that came as a number or as a text of digits."""
        value = self._members.get(name)
        if value is None or value == "":
            raise RefusalError(marked_failure(f"{name} is missing"))
        return identifier_of(value, name)


def identifier_of(value: object, name: str) -> int:
    """Return the id that a number or a text of digits names; a RefusalError answers anything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= ID_DIGITS_MAX:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**ID_DIGITS_MAX:
        return value
    raise RefusalError(marked_failure(f"{name} must be a number"))


def parse_json(content_type: str, body: bytes) -> Fields:
    """Read a JSON object from a body; a RefusalError answers anything else."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise RefusalError(protocol_failure(415, "Content-Type must be application/json"))
    try:
        document = _decoder.decode(body)
    except (ValueError, RecursionError):
        raise RefusalError(protocol_failure(400, "the body is not JSON")) from None
    if not isinstance(document, dict):
        raise RefusalError(protocol_failure(400, "the body must be a JSON object"))
    return Fields(document)
