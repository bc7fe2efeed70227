"""The gateway that every contender asks: it answers at once, echoes what it was asked, and counts."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

import programs

MODULES = Path("/usr/lib/nginx/modules")
HERE = Path(__file__).parent

REST_LOOK_S = 0.1
REST_LOOKS = 5
"""So many looks in a row at unchanged counts are rest: longer than the slowest relay takes for one call."""
REST_LOOKS_MAX = 100
"""A relay that is still busy ten seconds after its load ended is not waited for."""


class Counts(msgspec.Struct, frozen=True):
    """What the gateway has done since it started."""

    charges: int
    reads: int


class Gateway:
    """The running gateway."""

    def __init__(self, port: int, pid: int) -> None:
        self.port = port
        self.pid = pid

    @property
    def url(self) -> str:
        """Its base address."""
        return f"http://{programs.HOST}:{self.port}"

    def counts_at_rest(self) -> Counts:
        """Asks it when nothing more comes: what wrk left behind has then arrived.

        Raises ProgramError when calls keep coming.
        """
        last, same = self.counts(), 0
        for _ in range(REST_LOOKS_MAX):
            time.sleep(REST_LOOK_S)
            now = self.counts()
            same = same + 1 if now == last else 0
            if same == REST_LOOKS:
                return now
            last = now
        raise programs.ProgramError("calls keep coming to the gateway with no load on")

    def counts(self) -> Counts:
        """Asks it what it has done."""
        return msgspec.json.decode(programs.fetch(self.port, "/bench/counts").body, type=Counts)


def nginx_launch(name: str, folder: Path, core: int, places: dict[str, str]) -> programs.Launch:
    """Writes a configuration with its places filled in, and gives the nginx that runs it."""
    text = (HERE / f"{name}.conf").read_text()
    for place, value in places.items():
        text = text.replace(f"@{place}@", value)
    (folder / f"{name}.conf").write_text(text)
    arguments = [programs.program_path("nginx"), "-p", f"{folder}/", "-c", f"{name}.conf", "-e", f"{name}.log"]
    return programs.Launch(name=name, arguments=arguments, core=core, folder=folder)


@contextlib.contextmanager
def running(folder: Path, core: int) -> Iterator[Gateway]:
    """Runs the gateway on one core for as long as the block lasts."""
    if not (MODULES / "ngx_http_lua_module.so").exists():
        raise programs.ProgramError("nginx's Lua module is missing: run bench/install.sh")
    port = programs.free_port()
    launch = nginx_launch("gateway", folder, core, {"MODULES": str(MODULES), "BENCH": str(HERE), "PORT": str(port)})
    with programs.running(launch) as process:
        programs.wait_ready(process, launch, port, "/bench/counts")
        yield Gateway(port, process.pid)
