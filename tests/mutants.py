"""Says how many changes of the core the tests noticed; exits with 1 where that is too few."""

import json
import sys
from pathlib import Path
from typing import Final

KILLED_MIN: Final = 0.95
"""Of all mutants; what is left are changes that change nothing, such as another bound that no value meets."""


def main(path: Path) -> int:
    """Reads the counts that mutmut has written; gives the exit code."""
    counts: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))
    # One that never ends is noticed too: by whoever waits for the tests.
    killed = counts["killed"] + counts["timeout"] + counts["segfault"]
    total = counts["total"] - counts["skipped"]
    share = killed / total
    sys.stdout.write(f"{killed} of {total} mutants of the core were killed: {share:.1%} (at least {KILLED_MIN:.0%})\n")
    return 0 if share >= KILLED_MIN else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
