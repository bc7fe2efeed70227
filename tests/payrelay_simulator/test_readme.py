from pathlib import Path

import payrelay_simulator
from payrelay_simulator import DEFAULT_MERCHANT, DemoWorld, Simulator, Switches
from payrelay_simulator.control import Control
from payrelay_simulator.faults import KINDS
from payrelay_simulator.notification_faults import KINDS as NOTIFICATION_KINDS
from payrelay_simulator.pages.cards import TEST_CARDS
from payrelay_simulator.pages.wire import PAGES
from payrelay_simulator.routes import ENDPOINT_NAMES

README = Path(payrelay_simulator.__file__).with_name("README.md").read_text(encoding="utf-8")


def test_every_switch_and_fault_is_documented() -> None:
    """What can be ordered can be looked up."""
    names = (*Switches.__struct_fields__, *KINDS, *NOTIFICATION_KINDS)
    missing = [name for name in names if f"`{name}`" not in README]

    assert missing == []


def test_every_control_path_and_endpoint_is_documented() -> None:
    """The control API has no hidden part."""
    paths = {route.path for route in Control(Simulator().stage).routes()}

    assert [path for path in paths if path not in README] == []
    assert [path for path in PAGES if path not in README] == []
    assert [name for name in ENDPOINT_NAMES if name not in README] == []


def test_credentials_and_demo_identifiers_are_the_real_ones(demo: DemoWorld) -> None:
    """What is printed for copying works."""
    values = [DEFAULT_MERCHANT.app_secret, demo.paid_payment_id, demo.failed_subscription_id, demo.authorization_token]

    assert [value for value in values if str(value) not in README] == []


def test_every_test_card_is_documented() -> None:
    """Who tries a refusal finds the card for it."""
    assert [number for number in TEST_CARDS if number not in README] == []
