# ruff: noqa: INP001 - a script beside the package that it writes
"""Writes the client without an event loop from the one with it: ``python write_sync.py``; ``--check`` only compares.

``runtime.py`` differs in more than words, and is written by hand in both folders.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parent / "src" / "payrelay_client"
BY_HAND: Final = frozenset({"__init__.py", "runtime.py"})
WORDS: Final = (
    (r"\basync (def|for|with)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(?=[A-Z][a-z])", ""),
    (r"\b_async\b", "_sync"),
    (r"\bAwaitable\[((?:[^\[\]]|\[[^\[\]]*\])*)\]", r"\1"),
    (r"^from collections\.abc import Awaitable, Callable$", "from collections.abc import Callable"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\baclose\b", "close"),
)


def sync_text(text: str) -> str:
    """Gives the text of a module without an event loop."""
    for pattern, replacement in WORDS:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    text = _ruff(["check", "--quiet", "--select=I", "--fix"], text)
    return _ruff(["format", "--quiet"], text)


def _ruff(arguments: list[str], text: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments, "--stdin-filename", str(PACKAGE / "_sync" / "module.py"), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout  # noqa: S603 - ours


def main() -> int:
    """Writes every module, or with ``--check`` names those that would change; gives the exit code."""
    stale = []
    for source in sorted((PACKAGE / "_async").glob("*.py")):
        if source.name in BY_HAND:
            continue
        target, text = PACKAGE / "_sync" / source.name, sync_text(source.read_text())
        if not target.exists() or target.read_text() != text:
            stale.append(target.name)
            if "--check" not in sys.argv:
                target.write_text(text)
    if stale:
        sys.stderr.write(f"{'stale' if '--check' in sys.argv else 'written'}: {', '.join(stale)}\n")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
