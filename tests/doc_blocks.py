"""The fenced blocks of the docs: what each is marked as, and the one shell session that a page's blocks are run in.

A mark stands behind the language, where the forge doesn't show it:

- ``run``: it runs, in the order of the page, in the folder of a demo;
- ``file=NAME``: it is saved as that file, for the blocks after it;
- ``output``: a plain block, whose lines the block before it has printed, in this order; ``…`` stands for anything;
- ``check``: its syntax is right; it can't run by itself, since it is a part of something;
- ``skip: REASON``: neither, and why.
"""

import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

from tests.sources import ROOT

RUNS: Final = {"sh": "sh", "python": "py", "javascript": "mjs", "php": "php"}
"""Languages whose blocks must be marked, and how their files end."""
DATA: Final = ("json", "toml", "yaml")
"""Languages whose blocks are read, unless they are marked to be skipped."""
PLAIN: Final = ("", "text", "mermaid")
WORDS_OF_A_REASON_MIN: Final = 3
BETWEEN: Final = "\x1e"

_OPEN: Final = re.compile(r"^( *)```(\w*) *(.*)$")
_MARK: Final = re.compile(r"run|check|output|file=[\w./-]+|skip: \S.*")
_TYPED: Final = re.compile(r"^(?:\$ )?(?:\.venv/bin/|curl |make |payrelay |npm |pip |node |php )", re.MULTILINE)
_CALL: Final = re.compile(r"(?:^|[\s;&|/])payrelay(?:-admin)?(?:\s|$)")
_LEFT_OUT: Final = "…"


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Attributes:
        page, line: where it begins.
        language: as it is named, or nothing.
        mark: what stands behind the language.
        text: what is inside, without the indentation of a list.
    """

    page: Path
    line: int
    language: str
    mark: str
    text: str

    @property
    def where(self) -> str:
        """Its page and line, as editors take them."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str | None:
        """The name under which it is saved."""
        return self.mark.removeprefix("file=") if self.mark.startswith("file=") else None

    @property
    def is_skipped(self) -> bool:
        """Whether it says that nothing is done with it."""
        return self.mark.startswith("skip:")


def pages() -> list[Path]:
    """Gives every page of the docs, those of packages and of the simulator included."""
    others = ("clients/*.md", "clients/*/README.md", "examples/*/README.md", "src/payrelay_simulator/README.md")
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(page for each in others for page in ROOT.glob(each))]
    return sorted(found)


def blocks_of(page: Path) -> list[Block]:
    """Reads the blocks of a page."""
    return list(_blocks(page, page.read_text().splitlines()))


def code_of(page: Path, language: str) -> list[str]:
    """Gives what a page has in a language."""
    return [block.text for block in blocks_of(page) if block.language == language]


def _blocks(page: Path, lines: list[str]) -> Iterator[Block]:
    begin = indent = language = mark = None
    for number, line in enumerate(lines):
        if begin is None and (opened := _OPEN.match(line)):
            begin, (indent, language, mark) = number, opened.groups()
        elif begin is not None and line == f"{indent}```":
            text = textwrap.dedent("".join(f"{each}\n" for each in lines[begin + 1 : number]))
            yield Block(page, begin + 1, str(language), str(mark).strip(), text)
            begin = None


def wrong(block: Block) -> str | None:
    """Says what is wrong with a block's mark; None where nothing is."""
    if block.mark and not _MARK.fullmatch(block.mark):
        return f"{block.mark!r} is no mark"
    if block.is_skipped and len(block.mark.removeprefix("skip:").split()) < WORDS_OF_A_REASON_MIN:
        return "it doesn't say why it is skipped"
    if block.language in PLAIN:
        if block.mark not in {"", "output"} and not block.is_skipped and block.file is None:
            return "a plain block can be output, or a file"
        return "it is a command without its language" if not block.mark and _TYPED.search(block.text) else None
    if block.language in DATA:
        return "data is read; it can't be run" if block.mark in {"run", "check", "output"} else None
    if block.language in RUNS:
        return None if block.mark else "it has no mark: run, file=NAME, check, or skip: REASON"
    return None if block.is_skipped else "nothing here runs this language: say skip, and why"


def commands_in(text: str) -> Iterator[list[str]]:
    """Gives the arguments of each call of the program that stands in lines of a shell."""
    text = re.sub(r"\\\n", " ", text)
    for inner in re.findall(r"[$<]\(([^()]*)\)", text):
        yield from commands_in(inner)
    text = re.sub(r"[$<]\([^()]*\)", "inner", text)
    # Other lines may be inside of a text of several lines, which is no command.
    for line in filter(_CALL.search, text.splitlines()):
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        for is_operator, each in groupby(words, key=lambda word: set(word) <= set("();<>|&")):
            call = [] if is_operator else [*each]
            while call and (re.fullmatch(r"\w+=.*", call[0]) or call[0] in {"do", "then", "runuser"}):
                del call[0]
            if call and call[0].rpartition("/")[2] in {"payrelay", "payrelay-admin"}:
                yield call[1:]


def is_part_of_session(block: Block) -> bool:
    """Tells whether a block is run, or saved for one that is."""
    return block.file is not None or (block.mark == "run" and block.language in RUNS)


def session(blocks: Iterable[Block], kept: Path) -> str:
    """Writes the shell session of a page, whose files are kept in a folder; a line before each block names it.

    Programs of one language continue each other, as a reader does who follows the page: they run as one, where the
    last of them stands.
    """
    mine = [block for block in blocks if is_part_of_session(block)]
    script = ["set -e -o pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for block in mine:
        script.append(f"printf '{BETWEEN}%s\\n' {block.line}")
        ending = RUNS.get(block.language, "txt")
        if block.file is not None:
            (kept / f"{block.line}.{ending}").write_text(block.text)
            script.append(f"mkdir -p $(dirname {block.file}) && cp {kept / f'{block.line}.{ending}'} {block.file}")
        elif block.language == "sh":
            script.append(block.text)
        else:
            whole = [each for each in mine if each.language == block.language and each.mark == "run"]
            if block is whole[-1]:
                # Beside the demo, so that a program finds its packages.
                name = f"program.{ending}"
                (kept / name).write_text("\n".join(each.text for each in whole))
                script += [f"cp {kept / name} {name}", f"{PROGRAMS[block.language]} {name}"]
    return "\n".join([*script, ""])


PROGRAMS: Final = {"python": "python3", "javascript": "node", "php": "php"}


def printed(output: str) -> dict[int, str]:
    """Gives what each block of a session printed, by its line."""
    parts = (part.partition("\n") for part in output.split(BETWEEN)[1:])
    return {int(line): text for line, _, text in parts}


def missing(promised: str, got: str) -> list[str]:
    """Gives the lines that a page promises and a block did not print, in this order."""
    left = got.splitlines()
    lost = []
    for line in promised.splitlines():
        wanted = re.compile(".*".join(map(re.escape, line.strip().split(_LEFT_OUT))))
        at = next((number for number, each in enumerate(left) if wanted.fullmatch(each.strip())), None)
        if at is None:
            lost.append(line)
        else:
            del left[: at + 1]
    return lost
