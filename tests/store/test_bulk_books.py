"""The benchmarks' databases: filled in bulk, and as the journal would have filled them."""

import subprocess
import sys
from typing import Final

import pytest

CHECK: Final = [sys.executable, "bench/checked_books.py", "--operations", "30"]


@pytest.mark.integration
def test_what_benchmarks_fill_in_bulk_is_what_the_journal_stores() -> None:
    """Else a migration or a digest would change, and a benchmark would measure rows that no service has."""
    ran = subprocess.run(CHECK, env={"PYTHONPATH": "."}, capture_output=True, text=True, timeout=120, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")
