import pytest

from payrelay.core.database.database_url import embedded_file


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///payrelay.db", "payrelay.db"),
        ("sqlite:////var/lib/payrelay.db", "/var/lib/payrelay.db"),
        ("postgresql://user@host/name", None),
    ],
)
def test_a_url_says_which_database(url: str, path: str | None) -> None:
    """Three slashes are a path from here, four one from the root."""
    assert embedded_file(url) == path
