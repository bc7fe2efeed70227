"""One send as HTTP has it: what came back, or why nothing did. The only seam to the errors of the HTTP library."""

from typing import Final, NamedTuple, Self

import httpx

from payrelay_client.replies import NO_ANSWER, TIME_OUT, UNREADABLE, NoReply

ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
"""A longer answer isn't read to its end: the longest lists of the service have some megabytes."""


class RawReply(NamedTuple):
    """An answer as it came; the names of its header fields are in small letters."""

    http_status: int
    headers: dict[str, str]
    body: bytes


class SendFailed(Exception):
    """No whole answer came; the service may have seen the request all the same."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason

    @classmethod
    def too_long(cls) -> Self:
        """The answer has more bytes than any of the service's."""
        return cls(UNREADABLE, f"the answer has more than {ANSWER_BYTES_MAX} bytes")

    @classmethod
    def too_late(cls) -> Self:
        """The answer did not come in time."""
        return cls(TIME_OUT, "no answer came in time")

    def no_reply(self) -> NoReply:
        """Gives it as what came back."""
        return NoReply(reason=self.reason, message=str(self))


def fields_of(headers: httpx.Headers) -> dict[str, str]:
    """Gives header fields by their names in small letters; values of one name are joined by commas.

    The HTTP library joins them one by one, which takes seconds for thousands of one name.
    """
    values: dict[str, list[str]] = {}
    for name, value in headers.multi_items():
        values.setdefault(name.lower(), []).append(value)
    return {name: ", ".join(each) for name, each in values.items()}


def failure_of(error: Exception) -> SendFailed:
    """Gives what an error of the HTTP library means."""
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        reason = TIME_OUT
    else:
        reason = UNREADABLE if isinstance(error, httpx.DecodingError) else NO_ANSWER
    message = str(error) or type(error).__name__
    return SendFailed(reason, f"no answer came: {message}")
