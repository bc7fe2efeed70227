"""A device with passkeys, as a browser speaks to it: it makes keys and signs, and lies where a test says so."""

import json
from typing import Final

import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2.cose import ES256, CoseKey
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import AttestationObject, AttestedCredentialData, AuthenticatorData, CollectedClientData

FLAGS: Final = AuthenticatorData.FLAG.UP | AuthenticatorData.FLAG.UV


class Lie(msgspec.Struct, frozen=True):
    """What a device, or the page that asks it, says otherwise than it should; None where it says the truth."""

    origin: str | None = None
    host: str | None = None
    kind: str | None = None
    challenge: bytes | None = None
    flags: AuthenticatorData.FLAG | None = None
    count: int | None = None
    user: bytes | None = None
    is_framed: bool = False


TRUTH: Final = Lie()


class Device:
    """A device with one passkey, which counts what it signs; ``origin`` is of the page that asks it."""

    def __init__(self, origin: str, credential_id: bytes = b"a device's own name") -> None:
        self.origin = origin
        self.credential_id = credential_id
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.count = 0
        self.user = b""

    def public(self) -> CoseKey:
        """The public key, as devices write it."""
        written: CoseKey = ES256.from_cryptography_key(self.key.public_key())  # type: ignore[no-untyped-call]
        return written

    def makes(self, asked: str, lie: Lie = TRUTH) -> str:
        """Answers what a browser is asked to make."""
        options = json.loads(asked)
        self.user = websafe_decode(options["user"]["id"])
        made = AttestedCredentialData.create(bytes(16), self.credential_id, self.public())
        client = self._client("webauthn.create", options["challenge"], lie)
        data = self._data(options["rp"]["id"], lie, made)
        attestation = AttestationObject.create("none", data, {})
        return self._answer(clientDataJSON=client.b64, attestationObject=websafe_encode(attestation))

    def shows(self, asked: str, lie: Lie = TRUTH) -> str:
        """Answers what a browser is asked to sign."""
        options = json.loads(asked)
        self.count += 1
        client = self._client("webauthn.get", options["challenge"], lie)
        data = self._data(options["rpId"], lie, None)
        signature = self.key.sign(data + client.hash, ec.ECDSA(hashes.SHA256()))
        user = self.user if lie.user is None else lie.user
        return self._answer(
            clientDataJSON=client.b64,
            authenticatorData=websafe_encode(data),
            signature=websafe_encode(signature),
            userHandle=websafe_encode(user) or None,
        )

    def _client(self, kind: str, challenge: str, lie: Lie) -> CollectedClientData:
        said = websafe_decode(challenge) if lie.challenge is None else lie.challenge
        return CollectedClientData.create(lie.kind or kind, said, lie.origin or self.origin, cross_origin=lie.is_framed)

    def _data(self, host: str, lie: Lie, made: AttestedCredentialData | None) -> AuthenticatorData:
        digest = hashes.Hash(hashes.SHA256())
        digest.update((lie.host or host).encode())
        flags = FLAGS if lie.flags is None else lie.flags
        if made is not None:
            flags |= AuthenticatorData.FLAG.AT
        count = self.count if lie.count is None else lie.count
        data: AuthenticatorData = AuthenticatorData.create(
            digest.finalize(), flags, count, b"" if made is None else made
        )
        return data

    def _answer(self, **response: str | None) -> str:
        name = websafe_encode(self.credential_id)
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})
