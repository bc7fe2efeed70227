"""The one place that makes answers of errors."""

from collections.abc import Awaitable
from typing import Final

from structlog.typing import FilteringBoundLogger

from payrelay.api.http.outgoing import PlainAnswer
from payrelay.api.http.request_log import describe
from payrelay.api.http.visit import Visit
from payrelay.core.answers import Answer, Trace, failed, of_refusal
from payrelay.core.payments.sentences import FORGED_SENTENCE
from payrelay.errors import Code, OperationForged, Refusal, StoreUnavailable

STORE_DOWN: Final = "the store can't be used now"
ENDING: Final = "the service is about to stop"
UNTOLD: Final = "it can't be told here and now whether this request, or an earlier equal one, took effect"
"""For a request that may change something. It may have been made before, and nobody can look that up now."""
AGAIN: Final = "send the same request again"

_READING: Final = frozenset({"GET", "HEAD"})


async def safely_answered(
    visit: Visit, answering: Awaitable[Answer | PlainAnswer], log: FilteringBoundLogger
) -> Answer | PlainAnswer:
    """Waits for an answer, and makes one of every exception. Only a cancellation is passed on."""
    log_record = visit.log_record
    try:
        return await answering
    except Refusal as refusal:
        return of_refusal(refusal, log_record.request_id)
    except OperationForged as forged:
        trace = Trace(request_id=log_record.request_id, operation_id=forged.operation_id)
        return failed(Code.NEEDS_ATTENTION, FORGED_SENTENCE, trace)
    except StoreUnavailable:
        return _untold(visit, STORE_DOWN)
    except Exception as error:  # noqa: BLE001 - the outermost place
        log.error("request_failed", request_id=log_record.request_id, route=log_record.route, errors=describe(error))
        msg = "something went wrong in the service; its log has the cause under the request id"
        return failed(Code.INTERNAL, msg, Trace(request_id=log_record.request_id))


def cut_short(visit: Visit) -> Answer:
    """Answers a request that the end of the program interrupts."""
    return _untold(visit, ENDING)


def _untold(visit: Visit, cause: str) -> Answer:
    """Answers where the store can't say what became of the request."""
    untold = "" if visit.scope["method"] in _READING else f": {UNTOLD}"
    return failed(Code.UNAVAILABLE, f"{cause}{untold}; {AGAIN}", Trace(request_id=visit.log_record.request_id))
