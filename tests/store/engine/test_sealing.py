import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payrelay.errors import SettingsError, StoreUnusable
from payrelay.store.engine import sealing
from payrelay.store.engine.sealing import Seal, load_or_make_key

KEY = bytes(range(32))
OTHER = bytes(32)
AT_ONCE = 8


@given(plain=st.binary(), context=st.binary())
def test_what_was_sealed_opens_again(plain: bytes, context: bytes) -> None:
    """In another process too, which has drawn another salt."""
    assert Seal((KEY,)).open(Seal((KEY,)).seal(plain, context), context) == plain


@given(place=st.integers(min_value=0), bit=st.integers(min_value=0, max_value=7))
def test_one_changed_bit_anywhere_is_noticed(place: int, bit: int) -> None:
    """A sealed value is right or refused, never nearly right."""
    sealed = bytearray(Seal((KEY,)).seal(b"plain", b"context"))
    sealed[place % len(sealed)] ^= 1 << bit

    with pytest.raises(StoreUnusable):
        Seal((KEY,)).open(bytes(sealed), b"context")


@given(length=st.integers(min_value=0, max_value=53))
def test_a_cut_value_is_noticed(length: int) -> None:
    """However little is left of it."""
    sealed = Seal((KEY,)).seal(b"plain", b"context")

    with pytest.raises(StoreUnusable):
        Seal((KEY,)).open(sealed[: min(length, len(sealed) - 1)], b"context")


def test_a_value_opens_only_where_it_belongs() -> None:
    """Moved to another row, or from call to answer, it is worth nothing."""
    with pytest.raises(StoreUnusable, match="belongs elsewhere"):
        Seal((KEY,)).open(Seal((KEY,)).seal(b"plain", b"op_1/call"), b"op_1/answer")


def test_an_earlier_value_of_a_place_opens_there_again() -> None:
    """What was copied and is put back looks right: the docs say so, and that another key ends it."""
    earlier = Seal((KEY,)).seal(b"older", b"end_1/secret")

    assert Seal((KEY,)).open(earlier, b"end_1/secret") == b"older"
    with pytest.raises(StoreUnusable):
        Seal((b"n" * 32,)).open(earlier, b"end_1/secret")


def test_equal_values_look_different() -> None:
    """Otherwise one could see which customer pays with the same token."""
    seal = Seal((KEY,))

    assert seal.seal(b"plain", b"") != seal.seal(b"plain", b"")


def test_nothing_of_the_plain_text_shows() -> None:
    """That is what sealing is for."""
    assert b"plain" not in Seal((KEY,)).seal(b"plain", b"")


def test_an_older_key_still_opens() -> None:
    """A key is rotated by a new one before it; new values are sealed with the new one alone."""
    old = Seal((KEY,)).seal(b"plain", b"")
    both = Seal((OTHER, KEY))

    assert both.open(old, b"") == b"plain"
    assert Seal((OTHER,)).open(both.seal(b"plain", b""), b"") == b"plain"


def test_many_salts_are_kept_apart() -> None:
    """Values of many runs of the process are read side by side, and memory for their keys stays bounded."""
    plain = [b"%d" % number for number in range(sealing._CIPHERS_KEPT_MAX + 10)]
    sealed = [Seal((KEY,)).seal(value, b"") for value in plain]
    seal = Seal((KEY,))

    assert [seal.open(value, b"") for value in sealed + sealed] == plain + plain
    assert len(seal._ciphers) <= sealing._CIPHERS_KEPT_MAX


def test_a_salt_is_left_before_it_is_worn_out() -> None:
    """Random nonces under one key repeat in the end; a new salt gives a new key."""
    seal = Seal((KEY,))
    before = seal.seal(b"plain", b"")
    seal._seals = sealing._SEALS_PER_SALT_MAX
    after = seal.seal(b"plain", b"")

    assert before[5:21] != after[5:21]
    assert seal.open(before, b"") == seal.open(after, b"") == b"plain"


def test_a_key_is_made_and_read_again(tmp_path: Path) -> None:
    """The file is the owner's alone, and no draft is left beside it."""
    path = tmp_path / "key"
    keys = load_or_make_key(path)

    assert load_or_make_key(path) == keys
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["key"]


def test_of_many_that_make_a_key_at_once_all_get_the_same(tmp_path: Path) -> None:
    """Several first starts at once must not seal with several keys."""
    barrier = threading.Barrier(AT_ONCE)

    def make(_: int) -> tuple[bytes, ...]:
        barrier.wait()
        return load_or_make_key(tmp_path / "key")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert len(set(pool.map(make, range(AT_ONCE)))) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["key"]


def test_a_key_made_meanwhile_is_never_replaced(tmp_path: Path) -> None:
    """Between the check and the making another process may have been quicker."""
    keys = load_or_make_key(tmp_path / "key")
    sealing._make_key(tmp_path / "key")

    assert load_or_make_key(tmp_path / "key") == keys


def test_a_file_that_holds_no_key_is_refused(tmp_path: Path) -> None:
    """An empty file must not become an empty key."""
    (tmp_path / "key").write_text("")

    with pytest.raises(SettingsError, match="PAYRELAY_ENCRYPTION_KEY"):
        load_or_make_key(tmp_path / "key")


def test_a_key_that_cannot_be_made_is_named_by_its_path(tmp_path: Path) -> None:
    """One line that says where."""
    with pytest.raises(StoreUnusable, match="nowhere/key"):
        load_or_make_key(tmp_path / "nowhere" / "key")
