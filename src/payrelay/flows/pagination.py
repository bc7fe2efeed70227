"""Pages of a list: the rows of one page, and the Link header that leads to the next."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

from payrelay.core.answers import Answer, found
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
    """Answers with one page of the list at ``path`` below the account; a Link header leads to the next, if any.

    ``rows`` has up to ``limit`` rows and, where there is a next page, one more. ``query`` has the parameters of the
    request; those that are None are left out. The ``cursor`` of the next page is the id of the last row on this one.
    """
    page = rows[:limit]
    answer = found([show(row) for row in page])
    if len(rows) <= limit:
        return answer
    parameters = {name: value for name, value in query.items() if value is not None}
    next_query = urlencode({**parameters, "cursor": id_of(page[-1]), "limit": limit})
    link = f'</{request.account}/api/{path}?{next_query}>; rel="next"'
    return msgspec.structs.replace(answer, headers=(("Link", link),))
