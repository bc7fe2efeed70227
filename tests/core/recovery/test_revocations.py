"""The lines of the list of revocations: only what was written with the key, and to the end, counts."""

from typing import Final

from payrelay.core.access.revocations import PURPOSE, Revocation, RevocationKind, line_of, revocation_of
from payrelay.core.keyed_digest import DigestKey

KEY: Final = DigestKey(b"s" * 32, PURPOSE)
REVOKED: Final = Revocation(kind=RevocationKind.CLIENT_TOKENS, at_ms=7, principal="shop", customer_id="cus_1")


def test_a_line_is_read_as_it_was_written() -> None:
    """A revocation that came back as another would end the wrong key."""
    assert revocation_of(line_of(REVOKED, KEY), KEY) == REVOKED


def test_a_line_that_was_changed_or_cut_off_or_written_with_another_key_counts_for_nothing() -> None:
    """Else whoever can write to the folder erases customers, and a full disk revokes half an id."""
    line = line_of(REVOKED, KEY)

    assert revocation_of(line.replace(b"cus_1", b"cus_2"), KEY) is None
    assert revocation_of(line[:-1], KEY) is None
    assert revocation_of(line_of(REVOKED, DigestKey(b"o" * 32, PURPOSE)), KEY) is None
    assert revocation_of(b"", KEY) is None


def test_a_kind_that_only_a_later_version_knows_is_left_out() -> None:
    """After a step back to this version the other lines must still count."""
    text = b'{"kind":"planet","at_ms":7}'

    assert revocation_of(text + b" " + KEY.digest(text).encode(), KEY) is None
