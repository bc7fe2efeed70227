"""Which checkouts a process remembers as not paid in a lost window."""

from payrelay.runtime.database.cleared_checkouts import CLEARED_MAX, ClearedCheckouts


def test_a_look_after_one_loss_says_nothing_of_a_later_loss() -> None:
    """The checkout may have been paid between the two."""
    cleared = ClearedCheckouts()
    cleared.add("chk_1", 2)

    assert (cleared.has("chk_1", 2), cleared.has("chk_1", 3), cleared.has("chk_2", 2)) == (True, False, False)


def test_no_more_than_so_many_are_remembered() -> None:
    """A process that lives for months has an end of its memory; what is forgotten is looked at once more."""
    cleared = ClearedCheckouts()
    for number in range(CLEARED_MAX + 1):
        cleared.add(f"chk_{number}", 2)

    assert [cleared.has(f"chk_{number}", 2) for number in (0, 1, CLEARED_MAX)] == [False, True, True]
