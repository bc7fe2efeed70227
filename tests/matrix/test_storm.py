"""Smaller storms than those of ``make storm``."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.matrix.gateway import simulating
from tests.matrix.stores import Postgresql
from tests.matrix.storm import Fleet, fleet, many_keys, one_key

if TYPE_CHECKING:
    from tests.conftest import PostgresqlServer

pytestmark = pytest.mark.postgresql

REQUESTS = 200


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory, postgresql_server: "PostgresqlServer") -> Iterator[Fleet]:
    """Three services on one database."""
    root = tmp_path_factory.mktemp("storm")
    with simulating() as gateway, fleet(Postgresql(root, postgresql_server), gateway, root) as running:
        yield running


def test_a_storm_under_one_key_has_one_effect(services: Fleet) -> None:
    """Whichever process a request reaches: one charge, and the same answer to the byte, or a 409."""
    report = one_key(services, REQUESTS)
    assert (report.failures, report.effects) == ([], 1)


def test_a_storm_of_many_keys_has_one_effect_for_each(services: Fleet) -> None:
    """Orders that are asked for under several keys at once make them wait for each other, and lose none."""
    report = many_keys(services, REQUESTS)
    assert (report.failures, report.effects) == ([], 50)
