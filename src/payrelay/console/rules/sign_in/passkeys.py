"""Passkeys: what a browser is asked to do with one, and what its answer proves (Web Authentication by the W3C).

Rules:

1. An answer counts for one challenge, which is made for one session and one purpose.
2. It counts for the origin of the console alone, as the browser writes it, and for the host that the passkey was made
   for. A page at another address gets an answer for itself.
3. The device must have asked for its PIN, a finger or a face. So a passkey that was found lying about opens nothing.
4. A device that counts its signatures counts up. A number that was seen before means that there are two of it.

The library reads what a device has written, and compares keys and signatures. What is made of it is decided here. It
copies all that is left of a list for each item of it, so longer lists than a device writes are refused before.
"""

import hmac
import ipaddress
import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from fido2.server import Fido2Server
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import (
    AttestationConveyancePreference,
    AttestedCredentialData,
    AuthenticationResponse,
    PublicKeyCredentialDescriptor,
    PublicKeyCredentialParameters,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialType,
    PublicKeyCredentialUserEntity,
    RegistrationResponse,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from payrelay.core.operators.operator import Operator, OperatorTextError, Passkey

NAME_LENGTH_MAX: Final = 60
ANSWER_LENGTH_MAX: Final = 16_384
"""Characters of an answer; one without an attestation has some 1,500."""
CREDENTIAL_LENGTH_MAX: Final = 2_048
"""Bytes of an id and a public key: the longest id has 1,023, and a key of 4,096 bits some 600."""
DEVICE_DATA_LENGTH_MAX: Final = 4_096
"""Bytes of what a device says of a passkey: a new one's id and key, 55 before them, and a few extensions behind."""
ITEMS_MAX: Final = 256
"""Items of CBOR in an attestation: the longest have some 30, such as certificates."""
ALGORITHMS: Final = (-7, -8, -257)
"""ES256, EdDSA and RS256: between them every device has one."""
_WIDTHS: Final = range(24, 28)
"""Sizes in the head of an item of CBOR: its length stands behind it, in 1, 2, 4 or 8 bytes."""
_TEXTS: Final = (2, 3)
_SIMPLE: Final = 7
"""Kinds of items of CBOR: those of which as many bytes follow as their length says; and yes and no."""
_NAME: Final = "Payrelay console"
_TYPE: Final = PublicKeyCredentialType.PUBLIC_KEY


class Purpose(StrEnum):
    """What a challenge is for; an answer to one kind is none to the other."""

    ADD = "add"
    SHOW = "show"


class RelyingParty(msgspec.Struct, frozen=True):
    """The console as browsers know it: ``origin`` as they write it, and its host, for which passkeys are made."""

    origin: str
    host: str


class MadePasskey(msgspec.Struct, frozen=True):
    """What a device says of a passkey that it has made; texts as in ``Passkey``."""

    credential_id: str
    credential: str
    sign_count: int


class ShownPasskey(msgspec.Struct, frozen=True):
    """A passkey that a device has signed with; ``is_copied`` where its number was seen before."""

    passkey: Passkey
    sign_count: int
    is_copied: bool


class PasskeyError(Exception):
    """An answer proves nothing: it can't be read, or is for something else, or nobody signed it."""


def relying_party_of(origin: str) -> RelyingParty | None:
    """Gives the console at an origin as browsers know it; None where no browser makes passkeys.

    They do over https at a name, and at ``localhost``. They don't at an address in numbers.
    """
    address = urlsplit(origin)
    host = address.hostname or ""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return RelyingParty(origin, host) if address.scheme == "https" or host == "localhost" else None
    return None


def passkey_name_of(text: str) -> str:
    """Reads what an operator calls a passkey; raises OperatorTextError."""
    name = " ".join(text.split())
    if not 1 <= len(name) <= NAME_LENGTH_MAX or not name.isprintable():
        raise OperatorTextError(f"must have 1 to {NAME_LENGTH_MAX} printable characters")
    return name


def challenge_of(token: str, purpose: Purpose, nonce: str, shown_for: str = "") -> bytes:
    """Makes what a device signs, from what the browser's cookie has and what the store keeps once.

    ``shown_for`` is what is done once a passkey was shown; empty where it opens a session. Whoever reads or writes the
    store alone can't make one, nor bring an earlier one back.
    """
    return hmac.digest(token.encode(), f"payrelay passkey {purpose} {nonce} {shown_for}".encode(), "sha256")


def usable(passkeys: list[Passkey], party: RelyingParty | None) -> list[Passkey]:
    """Gives those that open a session at this console now."""
    return [each for each in passkeys if party is not None and each.host == party.host and each.copied_at_ms is None]


def asked_to_make(party: RelyingParty, operator: Operator, known: list[Passkey], challenge: bytes) -> str:
    """Writes what a browser is asked, to make a passkey on a device that has none of ``known``; as JSON."""
    user = PublicKeyCredentialUserEntity(
        id=operator.id.encode(), name=operator.email, display_name=operator.name or operator.email
    )
    options, _ = _server(party).register_begin(
        user,
        credentials=_descriptors(known),
        resident_key_requirement=ResidentKeyRequirement.PREFERRED,
        user_verification=UserVerificationRequirement.REQUIRED,
        challenge=challenge,
    )
    return json.dumps(options.public_key, default=dict)


def asked_to_show(party: RelyingParty, known: list[Passkey], challenge: bytes) -> str:
    """Writes what a browser is asked, to sign with one of ``known``; as JSON."""
    options, _ = _server(party).authenticate_begin(
        _descriptors(known), user_verification=UserVerificationRequirement.REQUIRED, challenge=challenge
    )
    return json.dumps(options.public_key, default=dict)


def made_passkey(text: str, party: RelyingParty, operator: Operator, challenge: bytes) -> MadePasskey:
    """Reads a browser's answer, as JSON, to ``asked_to_make``. Raises PasskeyError."""
    answer = _read(text, _MadeAnswer)
    try:
        _require_usual(websafe_decode(answer.response.attestation))
        response = RegistrationResponse.from_dict(msgspec.to_builtins(answer))
        server = _server(party)
        user = PublicKeyCredentialUserEntity(id=operator.id.encode(), name=operator.email)
        _, asked = server.register_begin(
            user, user_verification=UserVerificationRequirement.REQUIRED, challenge=challenge
        )
        device = server.register_complete(asked, response)
        credential = device.credential_data
        is_known = credential is not None and credential.public_key.get(3) in ALGORITHMS
        is_framed = response.response.client_data.cross_origin is not False
    except Exception as error:  # the library reads bytes that anybody may send, and fails in many ways
        raise PasskeyError from error
    if credential is None or not is_known or is_framed:
        raise PasskeyError("of another kind than was asked for")
    if response.raw_id != credential.credential_id or len(credential) > CREDENTIAL_LENGTH_MAX:
        raise PasskeyError("named otherwise than it says, or too long")
    return MadePasskey(websafe_encode(credential.credential_id), websafe_encode(bytes(credential)), device.counter)


def shown_passkey(
    text: str, party: RelyingParty, operator: Operator, known: list[Passkey], challenge: bytes
) -> ShownPasskey:
    """Reads a browser's answer, as JSON, to ``asked_to_show``. Raises PasskeyError.

    ``known`` are the passkeys of ``operator`` that count; one of anybody else proves nothing.
    """
    answer = _read(text, _ShownAnswer)
    try:
        _require_short(websafe_decode(answer.response.device))
        response = AuthenticationResponse.from_dict(msgspec.to_builtins(answer))
        credentials = {each.credential_id: AttestedCredentialData(websafe_decode(each.credential)) for each in known}
        server = _server(party)
        _, asked = server.authenticate_begin(
            user_verification=UserVerificationRequirement.REQUIRED, challenge=challenge
        )
        found = server.authenticate_complete(asked, list(credentials.values()), response)
        is_framed = response.response.client_data.cross_origin is not False
        count, user = response.response.authenticator_data.counter, response.response.user_handle
    except Exception as error:  # the library reads bytes that anybody may send, and fails in many ways
        raise PasskeyError from error
    if is_framed or (user and user != operator.id.encode()):
        raise PasskeyError("shown in a frame, or for somebody else")
    passkey = next(each for each in known if each.credential_id == websafe_encode(found.credential_id))
    is_copied = bool(count or passkey.sign_count) and count <= passkey.sign_count
    return ShownPasskey(passkey, count, is_copied)


class _MadeTexts(msgspec.Struct, frozen=True):
    """What a device has written about a new passkey, in base64url."""

    client_data: str = msgspec.field(name="clientDataJSON")
    attestation: str = msgspec.field(name="attestationObject")


class _MadeAnswer(msgspec.Struct, frozen=True):
    id: str
    raw_id: str = msgspec.field(name="rawId")
    type: str
    response: _MadeTexts


class _ShownTexts(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a device has signed, in base64url."""

    client_data: str = msgspec.field(name="clientDataJSON")
    device: str = msgspec.field(name="authenticatorData")
    signature: str
    user: str | None = msgspec.field(name="userHandle", default=None)


class _ShownAnswer(msgspec.Struct, frozen=True):
    id: str
    raw_id: str = msgspec.field(name="rawId")
    type: str
    response: _ShownTexts


_AnswerT = TypeVar("_AnswerT", _MadeAnswer, _ShownAnswer)


def _read(text: str, kind: type[_AnswerT]) -> _AnswerT:
    if len(text) > ANSWER_LENGTH_MAX:
        raise PasskeyError("too long")
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise PasskeyError from error


def _require_usual(attestation: bytes) -> None:
    """Raises PasskeyError for an attestation that is longer, in items or about the key, than any device writes it."""
    before = b""
    for number, content in enumerate(_items_in(attestation)):
        if number >= ITEMS_MAX:
            raise PasskeyError("of more items than a device writes")
        if before == b"authData":
            _require_short(content)
        before = content


def _require_short(data: bytes) -> None:
    """Raises PasskeyError for more than a device says of a passkey."""
    if len(data) > DEVICE_DATA_LENGTH_MAX:
        raise PasskeyError("longer than a device writes")


def _items_in(written: bytes) -> Iterator[bytes]:
    """Gives what each item of CBOR has in itself: a text its bytes, anything else nothing (RFC 8949, 3).

    What is in a list or a table follows it. Widths and lengths are those that the library reads.
    """
    place = 0
    while place < len(written):
        kind, size = divmod(written[place], 32)
        width = 1 << (size - 24) if size in _WIDTHS and kind != _SIMPLE else 0
        begin = place + 1 + width
        length = int.from_bytes(written[place + 1 : begin], "big") if width else size
        place = begin + (length if kind in _TEXTS else 0)
        yield written[begin:place]


def _server(party: RelyingParty) -> Fido2Server:
    server = Fido2Server(
        PublicKeyCredentialRpEntity(name=_NAME, id=party.host),
        attestation=AttestationConveyancePreference.NONE,
        verify_origin=lambda origin: origin == party.origin,
    )
    server.allowed_algorithms = [PublicKeyCredentialParameters(type=_TYPE, alg=alg) for alg in ALGORITHMS]
    return server


def _descriptors(passkeys: list[Passkey]) -> list[PublicKeyCredentialDescriptor]:
    return [PublicKeyCredentialDescriptor(type=_TYPE, id=websafe_decode(each.credential_id)) for each in passkeys]
