"""Pages of a list: the rows of one page, and what leads to the next: ``next_cursor`` in the body, and a Link header."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

from payrelay.core.answers import Answer, found_page
from payrelay.flows.relay import Request

T = TypeVar("T")


def answer_page(
    request: Request,
    path: str,
    rows: Sequence[T],
    limit: int,
    *,
    show: Callable[[T], object],
    id_of: Callable[[T], str],
    query: Mapping[str, str | None],
) -> Answer:
    """Answers with one page of the list at ``path`` below the account, and with the cursor of the next page, if any.

    ``rows`` has up to ``limit`` rows and, where there is a next page, one more. ``query`` has the parameters of the
    request; those that are None are left out. The ``cursor`` of the next page is the id of the last row on this one.
    """
    page = rows[:limit]
    cursor = id_of(page[-1]) if len(rows) > limit else None
    return answer_with_cursor(request, path, [show(row) for row in page], limit, cursor=cursor, query=query)


def answer_with_cursor(
    request: Request, path: str, data: object, limit: int, *, cursor: str | None, query: Mapping[str, str | None]
) -> Answer:
    """Answers with one page of a list; ``cursor`` is that of the next page, None where there is none."""
    answer = found_page(data, cursor)
    if cursor is None:
        return answer
    parameters = {name: value for name, value in query.items() if value is not None}
    link = f'</{request.account}/api/{path}?{urlencode({**parameters, "cursor": cursor, "limit": limit})}>; rel="next"'
    return msgspec.structs.replace(answer, headers=(("Link", link),))
