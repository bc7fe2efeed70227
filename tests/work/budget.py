"""The budget of work of a request, and what exceeds it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

BUDGET: Final = Path(__file__).with_name("budget.json")
SLACK: Final = 0.05
SLACK_CALLS: Final = 3
"""What the worker does beside a request, or a library's patch release, may move a few calls; a new layer moves more."""

Counted = Mapping[str, Mapping[str, int]]


def rounded(counted: Counted) -> dict[str, dict[str, int]]:
    """Gives the budget that these counts make: calls with their slack, and everything else as it is."""
    return {
        request: {what: _limit(what, number) for what, number in numbers.items()}
        for request, numbers in counted.items()
    }


def excess(counted: Counted, budget: Counted) -> list[str]:
    """Gives a sentence for each number that is over its budget; what the budget doesn't name has a budget of 0."""
    return [
        f"{request}: {number} {what}, and the budget is {budget.get(request, {}).get(what, 0)}"
        for request, numbers in sorted(counted.items())
        for what, number in sorted(numbers.items())
        if number > budget.get(request, {}).get(what, 0)
    ]


def _limit(what: str, number: int) -> int:
    return number + SLACK_CALLS + round(number * SLACK) if what.startswith("calls") else number
