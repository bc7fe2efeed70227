import pickle

import pytest

from payrelay.core.outcomes import Facts
from payrelay.core.secret import Secret, secret_hash


def test_a_secret_prints_as_stars() -> None:
    """Whatever holds it can be printed, formatted or logged without giving it away."""
    secret = Secret("hunter2")
    assert "hunter2" not in f"{secret} {secret!s} {secret!r} {[secret]} {secret:>5}"


def test_a_secret_is_given_out_by_one_word() -> None:
    """Every use of it can be found by searching for that word."""
    assert Secret("hunter2").reveal() == "hunter2"


def test_secrets_are_compared_by_their_text() -> None:
    """Two configured values that are equal are the same value; a bare text is not a secret."""
    assert Secret("a") == Secret("a")
    assert hash(Secret("a")) == hash(Secret("a"))
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"


def test_an_empty_secret_is_false() -> None:
    """So that a setting left empty can be refused."""
    assert not Secret("")


def test_a_secret_is_not_pickled() -> None:
    """A pickle is plain text to whoever finds it."""
    with pytest.raises(TypeError):
        pickle.dumps(Secret("hunter2"))


def test_a_token_among_other_members_prints_as_stars() -> None:
    """What a reply told may be printed; the token in it opens an authorization. That there is none may be seen."""
    assert "hunter2" not in f"{Facts(authorization_token='hunter2')!r}"
    assert "authorization_token=None" in repr(Facts(order_id="A-1"))


def test_equal_secrets_are_one_key_of_a_dictionary_and_others_are_not() -> None:
    """A hash that were the same for all would do, and make every look-up slow."""
    assert len({hash(Secret(text)) for text in ("a", "b", "c")}) == 3


def test_a_secret_that_has_a_text_is_true() -> None:
    """So that a missing one can be asked for."""
    assert bool(Secret("s"))


def test_a_secret_fills_its_column_with_stars() -> None:
    """A width is kept, and nothing else is told."""
    assert f"{Secret('abc'):>10}" == "  ********"


def test_why_a_secret_is_not_pickled_is_said() -> None:
    """It would lie in a file then, or in another process."""
    with pytest.raises(TypeError) as caught:
        pickle.dumps(Secret("s"))
    assert str(caught.value) == "a secret is not pickled"


UUID = "e34f3059-7b7d-4b62-a57c-784beaa169f4"


def test_letters_of_either_case_spell_one_uuid() -> None:
    """A gateway may read both as one authorization, which then must have one owner and be captured once."""
    assert secret_hash(UUID.upper()) == secret_hash(UUID)


@pytest.mark.parametrize("token", ["Hold-Token", "59AFEE022CC69CA39D325E1B59130862", f"x{UUID.upper()}"])
def test_the_letters_of_any_other_token_tell_it(token: str) -> None:
    """Nobody knows that a gateway reads two spellings of it as one."""
    assert secret_hash(token) != secret_hash(token.swapcase())
