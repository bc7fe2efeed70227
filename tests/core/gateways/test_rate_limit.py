import pytest

from payrelay.core.gateways.rate_limit import CALLS_MAX, RateLimit


@pytest.mark.parametrize(
    ("text", "limit"),
    [("20/10s", RateLimit(20, 10.0)), (" 2/1s ", RateLimit(2, 1.0)), ("off", None), ("OFF", None)],
)
def test_limit_is_read_from_text(text: str, limit: RateLimit | None) -> None:
    """The setting says calls and seconds; ``off`` is for test doubles."""
    assert RateLimit.parse(text) == limit


@pytest.mark.parametrize(
    "text", ["", "20", "20/10", "20/10m", "0/10s", "20/0s", "-2/10s", "2.5/10s", "٢/1s", f"{CALLS_MAX + 1}/10s"]
)
def test_limit_that_makes_no_sense_is_refused(text: str) -> None:
    """A mistyped limit ends the start; with one call an effect could never get its token."""
    with pytest.raises(ValueError, match="must"):
        RateLimit.parse(text)
