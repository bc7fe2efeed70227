import pytest

from payrelay.core.outcomes import Evidence, Reading
from payrelay.errors import Code
from payrelay.gateways.payhere.checks import ADVICE, result_of_reading, result_of_token
from payrelay.gateways.payhere.wire.reply_shapes import RejectedCall


@pytest.mark.parametrize("cause", ADVICE)
def test_advice_is_a_sentence(cause: str) -> None:
    """It is printed as it is to somebody who has never seen our code."""
    result = result_of_token(RejectedCall(code=Code.UNAVAILABLE, cause=cause, msg="no"))
    assert not result.is_right
    assert result.text[0].isupper()
    assert result.text[-1] in ".?"


def test_a_cause_without_advice_tells_what_was_seen() -> None:
    """A new cause is never printed as an empty line."""
    reading = Reading(code=Code.GATEWAY_BAD_REPLY, msg="the answer is odd", evidence=Evidence(cause="odd"))
    assert result_of_reading(reading).text == "The answer is odd."


def test_nothing_found_is_right() -> None:
    """The order that is searched for can't exist."""
    assert result_of_reading(Reading(code=Code.NOT_FOUND, msg="No payments found")).is_right
    assert result_of_token(None).is_right
