"""Which hosts a URL names."""

import pytest

from payrelay.errors import SettingsError
from payrelay.store.engine.postgresql.hosts import Host, hosts_of, name_of, unverified_hosts


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql://u:p@db/x", [("db", 5432)]),
        ("postgresql://u:p@db:6432/x", [("db", 6432)]),
        ("postgresql://a:1,b:2,c/x", [("a", 1), ("b", 2), ("c", 5432)]),
        ("postgresql://u@[::1]:5433,[fe80::1]/x", [("::1", 5433), ("fe80::1", 5432)]),
        ("postgresql://u@%2Frun%2Fpg/x", [("/run/pg", 5432)]),
        ("postgresql://u@/x?host=/run/a,/run/b", [("/run/a", 5432), ("/run/b", 5432)]),
        ("postgresql://u@/x?host=a,b&port=7", [("a", 7), ("b", 7)]),
        ("postgresql://u@/x?host=a,b&port=7,8", [("a", 7), ("b", 8)]),
        ("postgresql://u@/x", [(None, None)]),
        ("postgresql://u@/x?port=7", [(None, 7)]),
    ],
)
def test_every_host_of_a_url_is_found(url: str, hosts: list[tuple[str, int]]) -> None:
    """Each is looked at by itself, so that one that doesn't answer hides no other."""
    assert hosts_of(url) == tuple(Host(*each) for each in hosts)


@pytest.mark.parametrize("url", ["postgresql://h:SECRET/x", "postgresql://h/x?host=a&port=1,2", "postgresql://[h/x"])
def test_hosts_that_cannot_be_read_are_refused_without_being_shown(url: str) -> None:
    """What stands where a port should be may be a password."""
    with pytest.raises(SettingsError) as refused:
        name_of(url)
    assert "SECRET" not in str(refused.value)


def test_a_database_is_named_by_all_its_hosts_and_without_its_password() -> None:
    """The operator knows it by what the setting says."""
    assert name_of("postgresql://u:SECRET@a:1,b:2/x?sslmode=require") == "postgresql://a:1,b:2/x"


@pytest.mark.parametrize(
    ("url", "environment", "unverified"),
    [
        ("postgresql://me@db1.internal,db2.internal:5433/x", {}, ["db1.internal", "db2.internal"]),
        ("postgresql://me@db1.internal,127.0.0.1/x?sslmode=require", {}, ["db1.internal"]),
        ("postgresql://me@10.0.0.5/x?sslmode=verify-ca&sslrootcert=/ca", {}, ["10.0.0.5"]),
        ("postgresql:///x?host=db1.internal&sslmode=prefer", {}, ["db1.internal"]),
        ("postgresql://db1.internal/x?sslmode=verify-full&sslmode=require", {}, ["db1.internal"]),
        ("postgresql://me@localhost.example/x", {}, ["localhost.example"]),
        ("postgresql://me@db1.internal,db2.internal/x?sslmode=verify-full", {}, []),
        ("postgresql://me@localhost,127.0.0.1,[::1]/x", {}, []),
        ("postgresql:///x?host=/var/run/postgresql", {}, []),
        ("postgresql:///x", {}, []),
        ("postgresql:///x", {"PGHOST": "/run/pg,localhost:6432"}, []),
        ("postgresql:///x", {"PGHOST": "db1.internal:6432,[::1]:7"}, ["db1.internal"]),
        ("postgresql:///x?sslmode=verify-full", {"PGHOST": "db1.internal"}, []),
        ("postgresql:///x", {"PGHOST": "db1.internal", "PGSSLMODE": "verify-full"}, []),
        ("postgresql://db1.internal/x", {"PGSSLMODE": "verify-full"}, []),
        ("postgresql://db1.internal/x?sslmode=prefer", {"PGSSLMODE": "verify-full"}, ["db1.internal"]),
        ("postgresql://127.0.0.1/x", {"PGHOST": "db1.internal"}, []),
        ("postgresql:///x?service=shop", {"PGHOST": "/run/pg"}, ["what the service shop names"]),
        ("postgresql:///x?service=shop", {"PGSSLMODE": "verify-full"}, ["what the service shop names"]),
        ("postgresql:///x?service=shop&sslmode=verify-full", {}, []),
        ("postgresql://db1.internal/x?service=shop", {"PGSSLMODE": "verify-full"}, ["db1.internal"]),
        ("postgresql:///x", {"PGSERVICE": "shop"}, ["what the service shop names"]),
    ],
)
def test_who_could_be_posed_as_is_named(url: str, environment: dict[str, str], unverified: list[str]) -> None:
    """Only verify-full compares the certificate with the name: any other mode believes whoever is on the way."""
    assert unverified_hosts(url, environment) == unverified


def test_hosts_of_the_environment_that_cannot_be_read_are_refused() -> None:
    """Nothing is said of a host that isn't known."""
    with pytest.raises(SettingsError):
        unverified_hosts("postgresql:///x", {"PGHOST": "db1.internal:what"})
