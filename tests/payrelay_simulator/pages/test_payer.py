import pytest
from tests.payrelay_simulator.shop import AMEX, POOR_VISA, a_form

from payrelay_simulator import ControlError, PageError, Payer, World


def test_payer_pays_after_a_refusal(world: World) -> None:
    """A simulation plays a whole visit without a socket, and takes what is to be told."""
    payer = Payer(world)
    visit = payer.enter("checkout", a_form())
    assert payer.pay(visit, POOR_VISA).refusal == "insufficient funds"
    paid = payer.pay(visit)

    # What the payer still holds of the visit may be old; it is paid once all the same.
    assert (paid.state, payer.pay(visit), payer.cancel(visit)) == ("paid", paid, paid)
    assert [each.fields["status_code"] for each in world.notifications.take_due(world.clock.now())] == ["-2", "2"]


def test_payer_is_told_what_the_page_would_say(world: World) -> None:
    """A form that is refused, and a card that is not taken."""
    payer = Payer(world, referer="")
    with pytest.raises(PageError, match="Unauthorized"):
        payer.enter("checkout", a_form())
    payer = Payer(world)

    with pytest.raises(ControlError, match="cardNo"):
        payer.pay(payer.enter("authorize", a_form()), AMEX)
    assert payer.pay(payer.enter("checkout", a_form()), method="QPLUS").method == "QPLUS"
