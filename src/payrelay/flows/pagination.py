"""Pages of a list: what is on one, and the Link header that leads to the next."""

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
    """Answers with one page of what stands at ``path`` below the account; a Link header leads on where there is more.

    ``rows`` are ``limit`` and one more, where there is one more. ``query`` is what the list was asked for; None is left
    out. The next page is asked for by the ``cursor`` of the last row on this one.
    """
    page = rows[:limit]
    answer = found([show(row) for row in page])
    if len(rows) <= limit:
        return answer
    given = {name: value for name, value in query.items() if value is not None}
    following = urlencode({**given, "cursor": id_of(page[-1]), "limit": limit})
    link = f'</{request.account}/api/{path}?{following}>; rel="next"'
    return msgspec.structs.replace(answer, headers=(("Link", link),))
