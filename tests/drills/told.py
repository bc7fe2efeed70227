"""What a client is told: an answer, and what a program makes of it."""

import json
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final


class Meaning(StrEnum):
    """What an answer says to a program."""

    DONE = "done"
    NEVER = "never"
    """It is final, and says that this was not done."""
    OPEN = "open"
    PERSON = "person"
    LATER = "later"
    SILENCE = "silence"


FINAL: Final = frozenset({Meaning.DONE, Meaning.NEVER})


@dataclass(frozen=True, kw_only=True)
class Told:
    """One answer; a status of 0 is none.

    Attributes:
        data: what a success says.
        operation_id: of the operation that the answer is about; empty where it names none.
        elapsed_s: until it came.
        at_s: when it came, by the monotonic clock.
    """

    status: int
    code: str = ""
    retry: str = ""
    msg: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    operation_id: str = ""
    elapsed_s: float = 0.0
    at_s: float = 0.0

    @property
    def meaning(self) -> Meaning:
        """Gives what a program makes of it: by the status, and by ``retry``."""
        if self.status == 0:
            return Meaning.SILENCE
        if self.status == 200:
            return Meaning.DONE
        if self.status == 202:
            return Meaning.PERSON if self.code == "needs_attention" else Meaning.OPEN
        return Meaning.NEVER if self.retry == "never" else Meaning.LATER


def told_by(status: int, text: bytes, operation_id: str, began_s: float) -> Told:
    """Reads an answer."""
    now_s = time.monotonic()
    try:
        document = json.loads(text)
    except ValueError:  # not the service's: a proxy's page
        document = {}
    error = document.get("error") or {}
    return Told(
        status=status,
        code=error.get("code", ""),
        retry=error.get("retry", ""),
        msg=str(document.get("msg", "")),
        data=document.get("data") or {},
        operation_id=error.get("operation_id") or operation_id,
        elapsed_s=now_s - began_s,
        at_s=now_s,
    )
