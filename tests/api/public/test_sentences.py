"""What the pages say in English, as far as a machine can judge it."""

import pytest

from payrelay.api.public import sentences
from payrelay.core.checkouts.checkout import CheckoutKind
from payrelay.core.checkouts.shown import PASSED_ON, Shown

PAGES = [(shown, kind) for shown in Shown for kind in CheckoutKind]


@pytest.mark.parametrize(("shown", "kind"), PAGES)
def test_no_page_says_that_nothing_was_taken(shown: Shown, kind: CheckoutKind) -> None:
    """Nothing proves it: a second card may have paid, and the news of it may be on its way."""
    text = " ".join(sentences.message_of(shown, kind).sentences).casefold()

    assert not [claim for claim in ("not charged", "nothing was taken", "no payment ", "did not pay") if claim in text]


@pytest.mark.parametrize(("shown", "kind"), [pair for pair in PAGES if pair[0] not in {*PASSED_ON, Shown.FORM}])
def test_only_what_is_final_is_thanked_for(shown: Shown, kind: CheckoutKind) -> None:
    """Who reads thanks takes it for paid."""
    assert "Thank you" not in " ".join(sentences.message_of(shown, kind).sentences)


def test_a_hold_is_named_as_one_that_nothing_confirms() -> None:
    """Its amount is in no signed text."""
    for shown in (Shown.NOTIFIED, Shown.ORDER_NOTIFIED):
        text = " ".join(sentences.message_of(shown, CheckoutKind.AUTHORIZATION).sentences)
        assert "has reported a hold" in text
        assert "not confirmed yet" in text
