"""What a cluster sets for its services is no setting, and what was mistyped is not taken for it."""

from pathlib import Path

import pytest
from tests.settings.given import error_line, of

OF_A_SERVICE = {
    "SERVICE_HOST": "10.96.14.7",
    "SERVICE_PORT": "8080",
    "SERVICE_PORT_HTTP": "8080",
    "PORT": "tcp://10.96.14.7:8080",
    "PORT_8080_TCP": "tcp://10.96.14.7:8080",
    "PORT_8080_TCP_PROTO": "tcp",
    "PORT_8080_TCP_PORT": "8080",
    "PORT_8080_TCP_ADDR": "10.96.14.7",
}
"""What Kubernetes sets for a service called `payrelay`, without the service's name."""


@pytest.mark.parametrize("service", ["", "METRICS_", "DATABASE_URL_"])
def test_the_variables_of_a_service_change_nothing(tmp_path: Path, service: str) -> None:
    """Otherwise no pod starts in a namespace that has a service called `payrelay`, or `payrelay-metrics`."""
    assert of(tmp_path, **{f"{service}{name}": value for name, value in OF_A_SERVICE.items()}) == of(tmp_path)


def test_a_service_may_have_an_address_of_version_6(tmp_path: Path) -> None:
    """A cluster on IPv6 writes its addresses in brackets where a port follows."""
    variables = {"SERVICE_HOST": "fd00::7", "PORT": "tcp://[fd00::7]:8080", "PORT_8080_TCP_ADDR": "fd00::7"}

    assert of(tmp_path, **variables) == of(tmp_path)


def test_what_a_client_is_given_is_no_setting(tmp_path: Path) -> None:
    """A reader tries a client, and types a command in the same terminal."""
    variables = {"KEY": "prk_sandbox_1_2", "WEBHOOK_SECRET": "whsec_MTIz"}

    assert of(tmp_path, **variables) == of(tmp_path)


def test_a_port_that_somebody_set_is_the_setting(tmp_path: Path) -> None:
    """The one name that both a cluster and an operator use; its value says who set it."""
    assert of(tmp_path, PORT="9000").port == 9000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SERVICE_HOST", "pay.example.com"),
        ("SERVICE_HOSTS", "10.96.14.7"),
        ("PORT_8080_TCP", "8080"),
        ("PORT_8080_TCP_PROTO", "http"),
        ("METRICS_ADDRES", "10.96.14.7:9464"),
        ("METRICS_PORT", "9464"),
        ("KEY", "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="),
        ("WEBHOOK_SECRET", "prk_sandbox_1_2"),
    ],
)
def test_a_name_or_a_value_that_no_cluster_sets_is_refused(tmp_path: Path, name: str, value: str) -> None:
    """A mistyped setting that passes as a cluster's would leave its default in force."""
    assert error_line(tmp_path, **{name: value}) == f"PAYRELAY_{name} is not a setting"


@pytest.mark.parametrize("value", ["tcp://payrelay:8080", "80800", "-1", "http", "tcp://10.96.14.7"])
def test_a_wrong_port_is_named(tmp_path: Path, value: str) -> None:
    """Only an address as a cluster writes it is passed over; anything else that is no port is somebody's mistake."""
    assert error_line(tmp_path, PORT=value).startswith("PAYRELAY_PORT must be ")
