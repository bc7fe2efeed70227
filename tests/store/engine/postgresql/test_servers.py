"""Which server a process uses, of those that its connections show."""

import itertools
from typing import Final

import pytest

from payrelay.store.engine.postgresql.hosts import Host
from payrelay.store.engine.postgresql.servers import Server, Sighting, Verdict, judge, server_of

HERE: Final = Host("here", 5432)
THERE: Final = Host("there", 5432)
FIRST: Final = Server("7000", 1, 5, 100)
PROMOTED: Final = FIRST._replace(timeline=2)
FOREIGN: Final = Server("8000", 9, 5, 100)


def seen(server: Server | None, host: Host = HERE, started: str = "10") -> Sighting:
    """What a connection to a host shows."""
    return Sighting(host=host, server=server, started=started, is_pooled=False, is_durable=True)


def test_a_start_takes_the_server_that_takes_writes() -> None:
    """A standby that is named first is no reason to fail, and one that was promoted is the right one of two."""
    assert judge(None, [seen(None), seen(FIRST, THERE)]) == (Verdict.SAME, seen(FIRST, THERE))
    assert judge(None, [seen(FIRST), seen(PROMOTED, THERE)]) == (Verdict.SAME, seen(PROMOTED, THERE))
    assert judge(None, [seen(FIRST), seen(FOREIGN, THERE)]) == (Verdict.SAME, seen(FIRST))
    assert judge(None, [seen(None)]) == (Verdict.NONE, None)


def test_the_known_server_is_kept() -> None:
    """Nothing is compared, and no connection is lost, because a second name leads to the same server."""
    assert judge(seen(FIRST, THERE), [seen(FIRST), seen(FIRST, THERE)]) == (Verdict.SAME, seen(FIRST, THERE))
    assert judge(seen(FIRST), [seen(FOREIGN, THERE), seen(FIRST)]) == (Verdict.SAME, seen(FIRST))


def test_a_promoted_server_is_gone_over_to_while_the_earlier_one_still_takes_writes() -> None:
    """That is the split in which one process charged an order on each side."""
    both = [seen(FIRST), seen(PROMOTED, THERE)]

    assert judge(seen(FIRST), both) == (Verdict.CHANGED, seen(PROMOTED, THERE))
    assert judge(seen(PROMOTED, THERE), both) == (Verdict.SAME, seen(PROMOTED, THERE))


def test_a_server_that_a_promotion_left_behind_is_never_gone_back_to() -> None:
    """Its writes are lost, and it lacks those that were made since."""
    assert judge(seen(PROMOTED, THERE), [seen(FIRST)]) == (Verdict.STALE, None)


@pytest.mark.parametrize(
    "other", [FOREIGN, PROMOTED, FIRST._replace(database=6), FIRST._replace(tables=101), FIRST._replace(tables=None)]
)
def test_other_files_another_database_and_other_tables_are_another_server(other: Server) -> None:
    """A backup may be restored into another server, into another database, or over the tables of this one."""
    assert judge(seen(FIRST), [seen(other)]) == (Verdict.CHANGED, seen(other))


def test_a_restart_is_told_from_a_change() -> None:
    """Files may have been put back while the server was stopped, though nearly always it just restarted."""
    assert judge(seen(FIRST), [seen(FIRST, started="11")]) == (Verdict.RESTARTED, seen(FIRST, started="11"))


def test_a_server_that_takes_no_writes_is_left() -> None:
    """A primary that became a standby, or read-only, can store no intent."""
    assert judge(seen(FIRST), [seen(None)]) == (Verdict.NONE, None)
    assert judge(seen(FIRST), []) == (Verdict.NONE, None)
    assert server_of("7000", None, 5, 100) is None


def test_the_order_of_the_hosts_changes_no_judgement() -> None:
    """Of one system there is one newest timeline, whoever is asked first."""
    sightings = [seen(FIRST), seen(PROMOTED, THERE), seen(None, Host("third", 1))]

    for order in itertools.permutations(sightings):
        assert judge(seen(FIRST), order) == (Verdict.CHANGED, seen(PROMOTED, THERE))


def test_the_timeline_is_read_from_the_name_of_a_wal_file() -> None:
    """The control file may still have the earlier one for a while after a promotion."""
    assert server_of("7000", "0000001A00000002000000FF", 5, None) == Server("7000", 26, 5, None)
