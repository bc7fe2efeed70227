"""Reads addresses: the segments of a path and the parameters of a query."""

import re
from typing import Final
from urllib.parse import unquote_to_bytes

from payrelay.api.http.json_text import printable
from payrelay.errors import Code, FieldError, Refusal, wrong_fields

PARAMETERS_MAX: Final = 20
"""Twice as many as any route has."""

_bad_escape: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})").search


def decoded(segment: bytes) -> str:
    """Decodes one piece of an address.

    Raises Refusal (malformed_request) for a percent sign that is no escape, for bytes that are not UTF-8, and for NUL.
    """
    if b"%" in segment:
        if _bad_escape(segment):
            raise Refusal(Code.MALFORMED_REQUEST, "a percent sign in the address is not followed by two hex digits")
        segment = unquote_to_bytes(segment)
    try:
        text = segment.decode()
    except UnicodeDecodeError:
        raise Refusal(Code.MALFORMED_REQUEST, "the address is not UTF-8") from None
    if "\0" in text:
        raise Refusal(Code.MALFORMED_REQUEST, "the address contains NUL")
    return text


def parse_query(query: bytes, allowed: frozenset[str]) -> dict[str, str]:
    """Gives the parameters of a query string by name.

    Raises Refusal: malformed_request where a parameter can't be decoded, invalid_request that names every unknown and
    every repeated parameter.
    """
    if not query:
        return {}
    pieces = [piece for piece in query.split(b"&") if piece]
    if len(pieces) > PARAMETERS_MAX:
        raise Refusal(Code.MALFORMED_REQUEST, f"there are more than {PARAMETERS_MAX} query parameters")
    parameters: dict[str, str] = {}
    errors: list[FieldError] = []
    for piece in pieces:
        raw_name, _, raw_value = piece.replace(b"+", b" ").partition(b"=")
        name, value = decoded(raw_name), decoded(raw_value)
        if name not in allowed:
            errors.append(FieldError(printable(name), "is not a known parameter"))
        elif name in parameters:
            errors.append(FieldError(name, "is there twice"))
        parameters[name] = value
    if errors:
        raise wrong_fields(errors)
    return parameters
