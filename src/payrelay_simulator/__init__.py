"""A PayHere of our own, for tests and for people who build on PayHere."""

from payrelay_simulator.caller import Caller
from payrelay_simulator.clock import Clock
from payrelay_simulator.demo import DemoWorld, demo_world
from payrelay_simulator.errors import ControlError, SimulatorError
from payrelay_simulator.faults import Arguments, Match, Rule, Schedule
from payrelay_simulator.keeping import KeptWorldError
from payrelay_simulator.ledger import LedgerEntry
from payrelay_simulator.notification_faults import (
    NotificationArguments,
    NotificationMatch,
    NotificationRule,
    NotificationSchedule,
)
from payrelay_simulator.notifications import Attempt, Notification
from payrelay_simulator.pages.forms import PageError
from payrelay_simulator.pages.payer import Payer
from payrelay_simulator.records import Card, Merchant, Person
from payrelay_simulator.seeding import (
    CustomerSeed,
    HoldSeed,
    PaymentSeed,
    Planted,
    Seed,
    SubscriptionSeed,
    plant,
)
from payrelay_simulator.server import Running, run, serve
from payrelay_simulator.simulator import DEFAULT_MERCHANT, Simulator
from payrelay_simulator.switches import Switches
from payrelay_simulator.world import Call, Outcome, World

__all__ = [
    "DEFAULT_MERCHANT",
    "Arguments",
    "Attempt",
    "Call",
    "Caller",
    "Card",
    "Clock",
    "ControlError",
    "CustomerSeed",
    "DemoWorld",
    "HoldSeed",
    "KeptWorldError",
    "LedgerEntry",
    "Match",
    "Merchant",
    "Notification",
    "NotificationArguments",
    "NotificationMatch",
    "NotificationRule",
    "NotificationSchedule",
    "Outcome",
    "PageError",
    "Payer",
    "PaymentSeed",
    "Person",
    "Planted",
    "Rule",
    "Running",
    "Schedule",
    "Seed",
    "Simulator",
    "SimulatorError",
    "SubscriptionSeed",
    "Switches",
    "World",
    "demo_world",
    "plant",
    "run",
    "serve",
]
