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
from payrelay.flows.payments.carry_out import ENDING_SENTENCE

FORGED_RETRY_AFTER_S: Final = 3_600
"""As for an operation that needs attention: a person is at work, and nothing changes sooner."""


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
        return failed(Code.OUTCOME_UNKNOWN, FORGED_SENTENCE, trace, retry_after_s=FORGED_RETRY_AFTER_S)
    except StoreUnavailable:
        trace = Trace(request_id=log_record.request_id)
        return failed(Code.UNAVAILABLE, "the store can't be used now; nothing was done", trace)
    except Exception as error:  # noqa: BLE001 - the outermost place
        log.error("request_failed", request_id=log_record.request_id, route=log_record.route, errors=describe(error))
        msg = "something went wrong in the service; its log has the cause under the request id"
        return failed(Code.INTERNAL, msg, Trace(request_id=log_record.request_id))


def cut_short(visit: Visit) -> Answer:
    """Answers a request that the end of the program interrupts."""
    return of_refusal(Refusal(Code.UNAVAILABLE, ENDING_SENTENCE), visit.log_record.request_id)
