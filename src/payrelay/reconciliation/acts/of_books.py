"""What operators act on in the books: days, months and differences."""

from typing import Final

from payrelay.core.operators.roles import Act
from payrelay.flows.operators.acts.act_registry import ActRegistry
from payrelay.reconciliation.acts.book_targets import DAY, DIFFERENCE, MONTH, read_day, read_difference
from payrelay.reconciliation.acts.close_books import carry_out_close_day, carry_out_close_difference
from payrelay.reconciliation.acts.month_target import read_month_target

ACTS_OF_BOOKS: Final = ActRegistry(
    readers={DAY: read_day, MONTH: read_month_target, DIFFERENCE: read_difference},
    seen_by=dict.fromkeys((DAY, MONTH, DIFFERENCE), Act.LOOK_AT_BOOKS),
    carried_out={Act.CLOSE_DIFFERENCE: carry_out_close_difference, Act.CLOSE_DAY: carry_out_close_day},
)
