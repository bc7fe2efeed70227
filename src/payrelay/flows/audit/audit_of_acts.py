"""The audit of what operators did in the console: finds lines that were changed or removed."""

from collections.abc import AsyncIterator

from payrelay.flows.audit.audit import AuditFinding, FurtherCheck, Phase, Progress, Summary
from payrelay.store.engine.database import Database
from payrelay.store.operators.acts import OperatorActs


def check_of_acts(database: Database, secret: bytes) -> FurtherCheck:
    """Returns the check of a database's history, for ``Audit.also``; ``secret`` is the key of the audit chain."""
    acts = OperatorActs(database, secret)

    async def check(summary: Summary, progress: Progress) -> AsyncIterator[AuditFinding]:
        """Checks each line, and that every line is there which a row names. Raises StoreError."""
        named, newest = await acts.newest_named(), 0
        async for act, wrong in acts.check():
            newest = act.number
            summary.acts += 1
            summary.newest_act = f"{act.number}:{act.hash}"
            progress(Phase.ACTS, summary.acts, summary.acts)
            if wrong is not None:
                yield AuditFinding(row=f"operator_acts/{act.number}", text=wrong)
        if newest < named:
            text = f"a row names line {named}, and the newest line is {newest}: lines were removed"
            yield AuditFinding(row="operator_acts", text=text)

    return check
