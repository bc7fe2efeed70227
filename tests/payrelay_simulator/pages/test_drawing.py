from collections.abc import Callable

import pytest

from payrelay_simulator.pages.drawing import explanation, payment_page
from payrelay_simulator.pages.visits import Visit

Opens = Callable[..., Visit]


def test_order_is_shown_with_its_items(opened: Opens) -> None:
    """The payer sees what is paid for, to whom and how much, with nothing of it taken for markup."""
    page = payment_page(opened(items="<Bell> & co", item_name_1="Bell", amount_1="500", quantity_1="2"))

    for text in ("Order12345", "&lt;Bell&gt; &amp; co", "1200001 (shop.example)", "LKR 1,000.00", "500.00", "Saman"):
        assert text in page


def test_method_is_chosen_only_where_there_is_a_choice(opened: Opens) -> None:
    """`payment_method` in the form skips it; a wallet alone asks for no card."""
    assert 'id="payment_container_HELAPAY"' in payment_page(opened())
    assert "<fieldset" not in payment_page(opened(payment_method="VISA"))
    assert 'name="cardNo"' not in payment_page(opened(payment_method="FRIMI"))


@pytest.mark.parametrize(
    ("page", "signed", "changes", "words"),
    [
        ("authorize", "1000.00", {}, "set aside"),
        ("preapprove", "10.00", {"amount": ""}, "given back at once"),
        ("preapprove", "1000.00", {}, "charge it later"),
        ("checkout", "1000.00", {"recurrence": "1 Month", "duration": "1 Year"}, "every month for 1 year"),
        (
            "checkout",
            "900.00",
            {"recurrence": "2 Week", "duration": "Forever", "startup_fee": "-100"},
            "Discount on the first payment: LKR 100.00",
        ),
        (
            "checkout",
            "10.00",
            {"recurrence": "1 Month", "duration": "Forever", "recurring_start_date": "2026-09-09"},
            "2026-09-09",
        ),
    ],
)
def test_payer_is_told_what_the_card_is_wanted_for(
    opened: Opens, page: str, signed: str, changes: dict[str, str], words: str
) -> None:
    """Nobody approves later charges without having read of them."""
    assert words in " ".join(explanation(opened(page, signed, **changes).form))
