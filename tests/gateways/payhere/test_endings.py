import pytest

from payrelay.gateways.pacing.circuit_breaker import Ending
from payrelay.gateways.payhere.connections import LossCause
from payrelay.gateways.payhere.endings import ending_of
from payrelay.gateways.payhere.wire.replies import Cause


@pytest.mark.parametrize("cause", [None, Cause.DOMAIN_DENIED, Cause.INVALID_TOKEN, Cause.AUTHENTICATION_ERROR])
def test_a_reply_says_that_the_gateway_works(cause: Cause | None) -> None:
    """A decline, a refusal and a closed door are answers; what is wrong then is not the gateway."""
    assert ending_of(cause) is Ending.ANSWERED


@pytest.mark.parametrize(
    "cause",
    [Cause.SERVER_ERROR, Cause.NOT_JSON, *(cause for cause in LossCause if cause not in {"too_late", "closed"})],
)
def test_no_reply_that_can_be_read_says_that_it_fails(cause: str) -> None:
    """Whether it came to no connection, to silence or to a page of HTML."""
    expected = Ending.NOTHING if cause == LossCause.STALE_CONNECTION else Ending.FAILED
    assert ending_of(cause) is expected


@pytest.mark.parametrize("cause", [LossCause.TOO_LATE, LossCause.CLOSED])
def test_what_we_did_not_try_says_nothing(cause: LossCause) -> None:
    """Our own lateness must not shut the gateway off."""
    assert ending_of(cause) is Ending.NOTHING


def test_too_many_calls_is_a_kind_of_its_own() -> None:
    """All who share the budget stay away then."""
    assert ending_of(Cause.RATE_LIMITED) is Ending.BLOCKED
