"""The parts of the product: what stands on the relay, and can be deleted with its folder and its line in PARTS.

Nothing else in the relay names a part. A part imports the relay, and brings what it adds in a ``Part``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from payrelay.api.console_door import ConsolePages
    from payrelay.api.metrics.gauges import StoreGauges
    from payrelay.flows.operators.acts.act_registry import ActRegistry
    from payrelay.flows.relay import Relay
    from payrelay.flows.requests.recovery_gate import Recovery
    from payrelay.settings import Settings
    from payrelay.store.opened_store import OpenedStore
    from payrelay.worker import Job

PARTS: Final = (
    "payrelay.backups",
    "payrelay.console",
    "payrelay.demo",
    "payrelay.imports",
    "payrelay.reconciliation",
    "payrelay.recovery",
)
"""The packages; each has a module ``part`` with its PART."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What a part brings. What a function gives is loaded when it is called: a start waits for nothing else.

    Attributes:
        commands: commands by their names, with the module whose ``app`` declares each; ``db copy`` is in the group
            ``db``.
        opened: makes what the part works with in a process, on the database and by the settings; flows find it by its
            type (``Relay.find``).
        acts: what operators act on.
        gauges: gauges on ``/metrics``.
        recovery: what the relay asks of a recovery from lost commits; one part brings it.
        jobs: what the worker does beside the relay's own.
        site: makes the pages of a service under ``/console``, whose calls end with the stack; None where the settings
            have them off. One part has it.
        pages: the package of pages that are shown there: it has ``templates``, and a module ``table`` with PAGES.
    """

    commands: Mapping[str, str]
    opened: Callable[[OpenedStore, Settings], object] | None = None
    acts: Callable[[], ActRegistry] | None = None
    gauges: Callable[[Relay], StoreGauges[Any]] | None = None
    recovery: Callable[[], Recovery] | None = None
    jobs: Callable[[], tuple[Job, ...]] | None = None
    site: Callable[[AsyncExitStack, Settings, OpenedStore, Relay, FilteringBoundLogger], ConsolePages | None] | None = (
        None
    )
    pages: str | None = None


@cache
def parts() -> tuple[Part, ...]:
    """Loads what each part brings."""
    return tuple(import_module(f"{package}.part").PART for package in PARTS)
