import msgspec
import pytest

from payrelay.core.gateways.capabilities import Capabilities, ResolutionWay, resolution_way_of
from payrelay.core.payments.operation import Kind

NOTHING = Capabilities()
SHOWING = Capabilities(finds_orders=True, shows_refunds=True, shows_authorizations=True, shows_installments=True)
KEEPING = Capabilities(keys_kept_ms=1, does_once=frozenset(Kind), finds_orders=True)


@pytest.mark.parametrize("kind", Kind)
def test_of_a_gateway_that_can_do_nothing_nothing_is_assumed(kind: Kind) -> None:
    """An authorization lapses by itself; all else is for an operator, who is better than a guess."""
    expected = ResolutionWay.WAIT if kind is Kind.AUTHORIZATION else ResolutionWay.NONE

    assert resolution_way_of(kind, NOTHING, is_key_kept=True) is expected


@pytest.mark.parametrize("kind", Kind)
def test_what_shows_itself_is_searched_for(kind: Kind) -> None:
    """What shows nowhere is not: whether an authorization was let go of, a cancellation."""
    is_shown = kind in {Kind.CHARGE, Kind.AUTHORIZATION, Kind.REFUND, Kind.RETRY}
    expected = {Kind.CAPTURE: ResolutionWay.NONE, Kind.VOID: ResolutionWay.NONE, Kind.CANCEL: ResolutionWay.NONE}.get(
        kind, ResolutionWay.SEARCH
    )

    assert (resolution_way_of(kind, SHOWING, is_key_kept=False) is ResolutionWay.SEARCH) is is_shown
    assert resolution_way_of(kind, SHOWING, is_key_kept=False) is expected


@pytest.mark.parametrize("kind", Kind)
def test_a_key_comes_first_as_long_as_it_is_kept(kind: Kind) -> None:
    """Its answer is the gateway's own; afterwards the same call would be a second one, unless it is done only once."""
    assert resolution_way_of(kind, KEEPING, is_key_kept=True) is ResolutionWay.SEND_UNDER_KEY
    assert resolution_way_of(kind, KEEPING, is_key_kept=False) is ResolutionWay.SEND_AGAIN


@pytest.mark.parametrize("missing", ["finds_orders", "shows_refunds"])
def test_a_refund_shows_in_its_orders_records(missing: str) -> None:
    """Both must be there: the order is what the gateway is asked for, the refund what its record must tell."""
    lacking = msgspec.structs.replace(SHOWING, **{missing: False})

    assert resolution_way_of(Kind.REFUND, lacking, is_key_kept=False) is ResolutionWay.NONE


@pytest.mark.parametrize(
    ("takes", "currency", "error"),
    [
        (None, "JPY", None),
        (frozenset({"LKR", "AUD"}), "LKR", None),
        (frozenset({"LKR", "AUD"}), "JPY", "must be one that the gateway's page takes: AUD, LKR"),
    ],
)
def test_a_currency_is_refused_where_the_page_is_known_not_to_take_it(
    takes: frozenset[str] | None, currency: str, error: str | None
) -> None:
    """Of a gateway that says nothing of its page, no currency is refused."""
    assert Capabilities(page_currencies=takes).page_currency_error(currency) == error
