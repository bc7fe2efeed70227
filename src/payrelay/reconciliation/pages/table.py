"""The pages of the books in the console."""

from typing import Final

from payrelay.console.web.route import ConsoleRoute, PartPages
from payrelay.core.operators.roles import Act
from payrelay.reconciliation.pages import books, books_saved

PAGES: Final = PartPages(
    routes=(
        ConsoleRoute("GET", "/console/reconciliation", books.show_month, Act.LOOK_AT_BOOKS),
        ConsoleRoute("GET", "/console/reconciliation.csv", books_saved.month_as_csv, Act.LOOK_AT_BOOKS),
        ConsoleRoute("GET", "/console/reconciliation/{account}/{day}", books.show_day, Act.LOOK_AT_BOOKS),
        ConsoleRoute(
            "GET", "/console/reconciliation/{account}/{day}/list.csv", books_saved.day_as_csv, Act.LOOK_AT_BOOKS
        ),
    ),
    navigation=(("/console/reconciliation", "Books", Act.LOOK_AT_BOOKS),),
)
