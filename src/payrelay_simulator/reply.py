"""Answers of the imitated gateway, as values that are not yet on the wire."""

from collections.abc import Mapping
from typing import Final

import msgspec

# Texts that the real gateway has never been seen to send begin with this, so that nobody learns them by heart.
MARK: Final = "Simulator: "

JSON_TYPE: Final = "application/json;charset=UTF-8"

_encoder = msgspec.json.Encoder(decimal_format="number")


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One answer: a JSON document, or a text of another kind where `document` is None.

    `is_business_error` marks an envelope whose HTTP status the gateway does not document.
    """

    http_status: int
    document: object | None = None
    text: str = ""
    media_type: str = JSON_TYPE
    headers: Mapping[str, str] = {}
    is_business_error: bool = False

    def encoded(self) -> bytes:
        """Return the body as it goes over the wire."""
        return self.text.encode() if self.document is None else _encoder.encode(self.document)


def success(msg: str, data: object) -> Reply:
    """Return the envelope of a call that was carried out."""
    return Reply(http_status=200, document={"status": 1, "msg": msg, "data": data})


def failure(msg: str, *, status: int = -1) -> Reply:
    """Return the envelope of a call that the gateway's rules turned down."""
    document = {"status": status, "msg": msg, "data": None}
    return Reply(http_status=200, document=document, is_business_error=True)


def marked_failure(msg: str) -> Reply:
    """Return a refusal whose wording is the simulator's own."""
    return failure(MARK + msg)


def protocol_failure(http_status: int, msg: str) -> Reply:
    """Return a refusal of a call that is no call of the protocol at all: wrong method, not JSON and the like."""
    return Reply(http_status=http_status, document={"status": -1, "msg": MARK + msg, "data": None})


def oauth_failure(http_status: int, error: str, description: str) -> Reply:
    """Return an OAuth refusal, with the header that goes with a 401."""
    challenge = f'Bearer realm="simulator", error="{error}"'
    headers = {"WWW-Authenticate": challenge} if http_status == 401 else {}  # noqa: PLR2004 - the number is the protocol's own name
    document = {"error": error, "error_description": description}
    return Reply(http_status=http_status, document=document, headers=headers)
