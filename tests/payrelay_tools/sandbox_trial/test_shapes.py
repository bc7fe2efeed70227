"""What a trial shows of the gateway's sentences: nothing that could be somebody's."""

import pytest

from payrelay_tools.sandbox_trial.payhere.shapes import masked


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Invalid amount", "Invalid amount"),
        ("see joe@shop.example for more", "see … for more"),
        ("12345joe@shop.example", "…"),
        ("joe@shop.example,ann@shop.example", "…"),
        ("paid @ the shop, or shop@", "paid @ the shop, or shop@"),
        ("order 320025000001 of payrelay-abc", "order … of …"),
        ("at https://a.example/b?c", "at …"),
    ],
)
def test_ids_and_addresses_are_left_out(text: str, shown: str) -> None:
    """A report of a trial is sent to others."""
    assert masked(text) == shown
