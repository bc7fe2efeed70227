"""One drill as part of the tests, short; `make drills` runs all of them, and longer."""

from tests.drills.restores import restored_embedded

OPERATIONS = 30


def test_a_restored_backup_charges_nobody_again() -> None:
    """Clients repeat everything, with keys and without, and nobody notices but those who wait for a person."""
    verdict = restored_embedded(OPERATIONS, 1).verdict
    assert verdict is not None
    assert (verdict.doubles, verdict.false_answers, verdict.lost, verdict.findings) == ([], [], [], [])
