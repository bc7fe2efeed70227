import json
from collections.abc import Mapping
from itertools import product

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from fido2 import cbor
from fido2.cose import ES384, CoseKey
from fido2.utils import websafe_decode, websafe_encode
from fido2.webauthn import AttestationObject, AuthenticatorData
from tests.console.device import TRUTH, Device, Lie
from tests.store.console.samples import ADA

from payrelay.console.rules.sign_in.passkeys import (
    ANSWER_LENGTH_MAX,
    DEVICE_DATA_LENGTH_MAX,
    ITEMS_MAX,
    PasskeyError,
    Purpose,
    RelyingParty,
    asked_to_make,
    asked_to_show,
    challenge_of,
    made_passkey,
    passkey_name_of,
    relying_party_of,
    shown_passkey,
    usable,
)
from payrelay.core.operators.operator import OperatorTextError, Passkey

PARTY = RelyingParty("https://console.example", "console.example")
CHALLENGE = challenge_of("the cookie", Purpose.ADD, "a nonce")
LIES = [
    Lie(origin="https://console.example.evil.example"),
    Lie(origin="http://console.example"),
    Lie(origin="https://console.example:444"),
    Lie(host="evil.example"),
    Lie(kind="payment.get"),
    Lie(challenge=challenge_of("the cookie", Purpose.SHOW, "another nonce")),
    Lie(flags=AuthenticatorData.FLAG.UV),
    Lie(flags=AuthenticatorData.FLAG.UP),
    Lie(is_framed=True),
]
"""Another page, another host, another purpose, another challenge, nobody there, nobody known, and a frame."""


def passkey_of(device: Device, **members: object) -> Passkey:
    """Gives what the console keeps of a device that has made a passkey."""
    made = made_passkey(device.makes(asked_to_make(PARTY, ADA, [], CHALLENGE)), PARTY, ADA, CHALLENGE)
    own: dict[str, object] = {
        "id": "psk_1",
        "operator_id": ADA.id,
        "credential_id": made.credential_id,
        "credential": made.credential,
        "host": PARTY.host,
        "name": "phone",
        "sign_count": made.sign_count,
        "made_at_ms": 1,
        "used_at_ms": None,
        "copied_at_ms": None,
        "version": 1,
        "act": 0,
    }
    return Passkey(**(own | members))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://console.shop.example", "console.shop.example"),
        ("https://console:8443", "console"),
        ("http://localhost:8080", "localhost"),
        ("http://127.0.0.1:8080", None),
        ("https://[::1]", None),
        ("https://192.0.2.1", None),
        ("http://console.shop.example", None),
    ],
)
def test_browsers_make_passkeys_for_names(origin: str, host: str | None) -> None:
    """Where they would refuse, a page offers nothing that can't work."""
    assert relying_party_of(origin) == (None if host is None else RelyingParty(origin, host))


def test_a_passkey_is_made_and_shown() -> None:
    """What the device wrote once is enough to know it by."""
    device = Device(PARTY.origin)
    passkey = passkey_of(device)
    shown = shown_passkey(device.shows(asked_to_show(PARTY, [passkey], CHALLENGE)), PARTY, ADA, [passkey], CHALLENGE)

    assert (shown.passkey, shown.sign_count, shown.is_copied) == (passkey, 1, False)


def test_a_browser_is_asked_for_a_verified_person_and_no_second_passkey() -> None:
    """The device asks for its PIN, and one that has a passkey for this operator makes no other."""
    passkey = passkey_of(Device(PARTY.origin))
    made = json.loads(asked_to_make(PARTY, msgspec.structs.replace(ADA, name=""), [passkey], CHALLENGE))
    shown = json.loads(asked_to_show(PARTY, [passkey], CHALLENGE))

    assert made["authenticatorSelection"]["userVerification"] == shown["userVerification"] == "required"
    assert (
        made["excludeCredentials"] == shown["allowCredentials"] == [{"type": "public-key", "id": passkey.credential_id}]
    )
    assert made["user"] == {"id": websafe_encode(b"opr_1"), "name": ADA.email, "displayName": ADA.email}
    assert (made["rp"]["id"], shown["rpId"], made["attestation"]) == ("console.example", "console.example", "none")
    assert websafe_decode(made["challenge"]) == CHALLENGE


@pytest.mark.parametrize("lie", LIES)
def test_what_was_made_for_something_else_proves_nothing(lie: Lie) -> None:
    """A page at another address can ask a device, and gets an answer that is worth nothing here."""
    answer = Device(PARTY.origin).makes(asked_to_make(PARTY, ADA, [], CHALLENGE), lie)

    with pytest.raises(PasskeyError):
        made_passkey(answer, PARTY, ADA, CHALLENGE)


@pytest.mark.parametrize("lie", [*LIES, Lie(user=b"opr_2"), Lie(kind="webauthn.create")])
def test_what_was_signed_for_something_else_proves_nothing(lie: Lie) -> None:
    """Nor does a signature for another operator."""
    device = Device(PARTY.origin)
    passkey = passkey_of(device)
    answer = device.shows(asked_to_show(PARTY, [passkey], CHALLENGE), lie)

    with pytest.raises(PasskeyError):
        shown_passkey(answer, PARTY, ADA, [passkey], CHALLENGE)


def test_the_device_need_not_say_whose_it_is() -> None:
    """Old security keys don't keep it."""
    device = Device(PARTY.origin)
    passkey = passkey_of(device)
    answer = device.shows(asked_to_show(PARTY, [passkey], CHALLENGE), Lie(user=b""))

    assert shown_passkey(answer, PARTY, ADA, [passkey], CHALLENGE).passkey == passkey


def test_another_key_under_the_same_name_proves_nothing() -> None:
    """A name is known to everybody who has seen a page."""
    passkey = passkey_of(Device(PARTY.origin))
    answer = Device(PARTY.origin).shows(asked_to_show(PARTY, [passkey], CHALLENGE))

    with pytest.raises(PasskeyError):
        shown_passkey(answer, PARTY, ADA, [passkey], CHALLENGE)


def test_a_passkey_of_nobody_proves_nothing() -> None:
    """Neither one that was removed, nor one of another operator."""
    device = Device(PARTY.origin)
    answer = device.shows(asked_to_show(PARTY, [passkey_of(device)], CHALLENGE))

    with pytest.raises(PasskeyError):
        shown_passkey(answer, PARTY, ADA, [], CHALLENGE)


@pytest.mark.parametrize(
    ("known", "count", "is_copied"),
    [(0, 0, False), (0, 1, False), (5, 6, False), (5, 5, True), (5, 4, True), (5, 0, True)],
)
def test_a_number_that_was_seen_before_means_a_copy(known: int, count: int, *, is_copied: bool) -> None:
    """A device that doesn't count always says 0, and one that counts never says a number twice."""
    device = Device(PARTY.origin)
    passkey = passkey_of(device, sign_count=known)
    answer = device.shows(asked_to_show(PARTY, [passkey], CHALLENGE), Lie(count=count))

    assert shown_passkey(answer, PARTY, ADA, [passkey], CHALLENGE).is_copied is is_copied


def test_a_key_of_another_kind_is_not_taken() -> None:
    """Whatever else a device offers than it was asked for."""

    class OtherDevice(Device):
        def public(self) -> CoseKey:
            key = ec.generate_private_key(ec.SECP384R1()).public_key()
            written: CoseKey = ES384.from_cryptography_key(key)  # type: ignore[no-untyped-call]
            return written

    answer = OtherDevice(PARTY.origin).makes(asked_to_make(PARTY, ADA, [], CHALLENGE))

    with pytest.raises(PasskeyError):
        made_passkey(answer, PARTY, ADA, CHALLENGE)


def test_a_name_that_is_another_than_the_signed_one_is_not_taken() -> None:
    """Somebody in between could give a passkey the name of another one."""
    answer = json.loads(Device(PARTY.origin).makes(asked_to_make(PARTY, ADA, [], CHALLENGE)))
    answer["id"] = answer["rawId"] = websafe_encode(b"another name")

    with pytest.raises(PasskeyError):
        made_passkey(json.dumps(answer), PARTY, ADA, CHALLENGE)


def test_an_answer_without_a_passkey_is_not_taken() -> None:
    """A signature is no registration."""
    device = Device(PARTY.origin)
    shown = json.loads(device.shows(asked_to_show(PARTY, [], CHALLENGE)))
    made = json.loads(device.makes(asked_to_make(PARTY, ADA, [], CHALLENGE)))
    data = AuthenticatorData(websafe_decode(shown["response"]["authenticatorData"]))
    made["response"]["attestationObject"] = websafe_encode(AttestationObject.create("none", data, {}))

    with pytest.raises(PasskeyError):
        made_passkey(json.dumps(made), PARTY, ADA, CHALLENGE)


def shaped(name: str, client: str, attestation: str) -> str:
    """Writes an answer that has every member, and nothing in it."""
    response = {"clientDataJSON": client, "attestationObject": attestation, "authenticatorData": "AA", "signature": ""}
    return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "[" * 10_000,
        '{"id":"a","rawId":"a","type":"public-key","response":{}}',
        shaped("a", "", ""),
        shaped("\u00e9", "e30", "n5-fn5-f"),
        '{"id":"\ud800"}',
        " " * (ANSWER_LENGTH_MAX + 1),
    ],
    ids=range(10),
)
def test_what_can_not_be_read_proves_nothing(text: str) -> None:
    """Anybody can send anything."""
    passkey = passkey_of(Device(PARTY.origin))
    with pytest.raises(PasskeyError):
        made_passkey(text, PARTY, ADA, CHALLENGE)
    with pytest.raises(PasskeyError):
        shown_passkey(text, PARTY, ADA, [passkey], CHALLENGE)


class Wordy(Device):
    """A device that says more of a new passkey than it must: a statement of what it is."""

    def __init__(self, statement: Mapping[str, object], more: bytes = b"") -> None:
        super().__init__(PARTY.origin)
        self.statement = statement
        self.more = more

    def makes(self, asked: str, lie: Lie = TRUTH) -> str:
        """Answers what a browser is asked to make."""
        answer = json.loads(super().makes(asked, lie))
        data = AttestationObject(websafe_decode(answer["response"]["attestationObject"])).auth_data
        written = cbor.encode({"fmt": "packed", "attStmt": self.statement, "authData": bytes(data) + self.more})
        answer["response"]["attestationObject"] = websafe_encode(written)
        return json.dumps(answer)


def test_a_device_may_say_what_it_is() -> None:
    """Not all browsers leave it out, though nobody asks for it: certificates, a signature, and more."""
    certificates = [bytes([0x30, 0x82]) * 900] * 3
    statement = {"alg": -7, "sig": bytes(range(72)), "x5c": certificates, "ver": "2.0", "certInfo": b"\x9b\xff" * 80}
    device = Wordy(statement)

    made = made_passkey(device.makes(asked_to_make(PARTY, ADA, [], CHALLENGE)), PARTY, ADA, CHALLENGE)
    assert made.credential_id == websafe_encode(device.credential_id)


@pytest.mark.parametrize(
    "device",
    [
        Wordy({"alg": [0] * ITEMS_MAX}),
        Wordy({str(number): True for number in range(ITEMS_MAX // 2)}),
        Wordy({}, bytes(DEVICE_DATA_LENGTH_MAX)),
    ],
    ids=["a long list", "a long table", "much about the key"],
)
def test_a_device_that_says_too_much_is_not_taken(device: Wordy) -> None:
    """The library's reader takes time with the square of a list's length, and payments wait meanwhile."""
    answer = device.makes(asked_to_make(PARTY, ADA, [], CHALLENGE))
    with pytest.raises(PasskeyError) as raised:
        made_passkey(answer, PARTY, ADA, CHALLENGE)

    assert "than a device writes" in str(raised.value.__cause__)


def test_a_device_that_signs_too_much_is_not_taken() -> None:
    """What it adds to a signature may be a list as well."""
    device = Device(PARTY.origin)
    passkey = passkey_of(device)
    answer = json.loads(device.shows(asked_to_show(PARTY, [passkey], CHALLENGE)))
    answer["response"]["authenticatorData"] = websafe_encode(bytes(DEVICE_DATA_LENGTH_MAX + 1))
    with pytest.raises(PasskeyError) as raised:
        shown_passkey(json.dumps(answer), PARTY, ADA, [passkey], CHALLENGE)

    assert "than a device writes" in str(raised.value.__cause__)


def test_a_challenge_is_of_one_cookie_one_purpose_one_nonce_and_one_act() -> None:
    """Whoever reads the store can't make one, and what was signed for one act is worth nothing for another."""
    kinds = product(("a", "b"), Purpose, ("c", "d"), ("", "disable vic"))

    assert len({challenge_of(*each) for each in kinds}) == 16


def test_only_passkeys_of_this_host_without_a_copy_are_asked_for() -> None:
    """A browser would offer no other, and a copied one opens nothing."""
    good = passkey_of(Device(PARTY.origin))
    copied = msgspec.structs.replace(good, copied_at_ms=1)
    moved = msgspec.structs.replace(good, host="old.example")

    assert usable([good, copied, moved], PARTY) == [good]
    assert usable([good], None) == []


def test_names_can_be_shown() -> None:
    """They stand on pages and in the history."""
    assert passkey_name_of("  my   phone ") == "my phone"
    for wrong in ("", " ", "a" * 61, "a\u202eb"):
        with pytest.raises(OperatorTextError):
            passkey_name_of(wrong)
