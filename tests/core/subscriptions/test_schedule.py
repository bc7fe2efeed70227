from datetime import date

import pytest

from payrelay.core.subscriptions.schedule import Schedule, contradict, may_be_next, schedule_asked, schedule_shown


@pytest.mark.parametrize(
    ("recurrence", "duration", "shown"),
    [
        ("1 Month", "3 Year", "Charged every month for 3 years"),
        ("1 Month", "1 Year", "Charged every month for 1 year"),
        ("1 Month", "12 Month", "Charged every month for 1 year."),
        ("2 Week", "6 Month", "charged  every 2 weeks for 6 months"),
        ("1 Week", "52 Week", "Charged every 7 days for 1 year"),
        ("1 Year", "Forever", "Charged every year forever"),
        ("1 Year", "Forever", "Charged every year until cancelled"),
        ("1 Year", "Forever", "Charged every year for 99 years"),
    ],
)
def test_the_schedule_that_was_asked_for_is_no_contradiction(recurrence: str, duration: str, shown: str) -> None:
    """An honest customer's checkout is completed, however the gateway words or converts the times."""
    read = schedule_shown(shown)

    assert read.is_known
    assert not contradict(schedule_asked(recurrence, duration), read)


@pytest.mark.parametrize(
    "shown",
    [
        "Charged every year for 1 year",
        "Charged every week for 1 year",
        "Charged every 4 weeks for 1 year",
        "Charged every 2 months for 1 year",
        "Charged every month for 1 month",
        "Charged every month for 10 years",
        "Charged every month forever",
        "Charged every year, in words that nobody knows",
        "In words that nobody knows for 1 month",
    ],
)
def test_another_schedule_contradicts(shown: str) -> None:
    """A customer who edits the form would pay once a year in place of once a month; one readable part shows it."""
    assert contradict(schedule_asked("1 Month", "1 Year"), schedule_shown(shown))


@pytest.mark.parametrize(
    "shown", ["", "Monthly", "Every month for a year", "Charged every monthly", "Charged every month"]
)
def test_a_text_that_nobody_knows_contradicts_nothing(shown: str) -> None:
    """The gateway documents two examples. An honest customer must not wait for an operator because of its wording."""
    read = schedule_shown(shown)

    assert not read.is_known
    assert not contradict(schedule_asked("1 Month", "1 Year"), read)


def test_what_was_asked_in_other_words_is_compared_with_nothing() -> None:
    """The interface takes no other words; a stored value of another version may have some."""
    assert not contradict(schedule_asked("monthly", "for good"), schedule_shown("Charged every year for 1 year"))


@pytest.mark.parametrize(
    ("day", "shown", "is_so"),
    [
        ("2024-01-14", Schedule(every_days=30.4), True),
        ("2024-01-15", Schedule(every_days=30.4), False),
        ("2023-11-01", Schedule(every_days=30.4), True),
        ("2024-12-14", None, True),
        ("2024-12-15", Schedule(), False),
        ("2023-11-31", None, False),
        ("9999-99-99", None, False),
    ],
)
def test_the_next_installment_is_a_period_away(day: str, shown: Schedule | None, *, is_so: bool) -> None:
    """The latest date that was reported is shown, so that a made-up one may not stay for years."""
    assert may_be_next(day, date(2023, 11, 15), shown) is is_so
