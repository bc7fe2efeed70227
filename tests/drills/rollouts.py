"""The service's processes are exchanged under load: behind a proxy, and for those of the next version."""

import asyncio
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.drills.intentions import Intention, Wishes
from tests.drills.row import Row, p99_s
from tests.drills.shop import Shop
from tests.drills.site import THIS, Edition, Site, postgresql_site
from tests.matrix.next_version import ADDED, COMMAND, next_version
from tests.scenarios.program import free_port
from tests.scenarios.waiting import until

LOAD_S: Final = 25.0
SERVED_WITHIN_S: Final = 120.0
MORE: Final = 24
"""Operations that clients want at a time while the exchange takes longer than that."""
PROXIED: Final = 3
CONFIGURATION: Final = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/bodies; proxy_temp_path {folder}/answers; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream payrelay {{ {servers} }}
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://payrelay; proxy_http_version 1.1; }} }}
}}
"""


def rolling_restart(operations: int, seed: int) -> Row:
    """Three processes behind nginx are stopped and started, one after the other."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        return Row(name="rolling-restart", skipped="nginx not found")
    with postgresql_site() as site:
        shop, wishes = site.new_shop(), Wishes(site.gateway, seed, "thing")

        def roll() -> None:
            for each in site.programs:
                each.stop()
                each.start(each.port)

        ports = site.start(PROXIED)
        with _proxy(program, site.folder / "nginx", ports) as port:
            shop.ports = [port]
            return _rolled("rolling-restart", site, shop, (operations, wishes), roll)


def side_by_side(operations: int, seed: int) -> Row:
    """The next version takes the place of this one, and this one comes back, on one database."""
    with postgresql_site() as site:
        newer = Edition(command=COMMAND, settings=next_version(site.folder / "next", ADDED))
        shop, wishes = site.new_shop(), Wishes(site.gateway, seed, "thing")
        shop.ports = site.start()
        ports = shop.ports

        def exchange(edition: Edition) -> None:
            """Starts another process, and sends nobody to the one before any more, and stops that, as a proxy does."""
            leaving = next(each for each in site.programs if each.port == ports[0])
            site.start(edition=edition)
            ports.append(site.programs[-1].port)
            ports.remove(leaving.port)
            site.retire(leaving)

        def roll() -> None:
            site.command("db", "upgrade", edition=newer)
            exchange(newer)
            exchange(THIS)
            exchange(newer)

        return _rolled("side-by-side", site, shop, (operations, wishes), roll)


def _rolled(name: str, site: Site, shop: Shop, size: tuple[int, Wishes], roll: Callable[[], None]) -> Row:
    """Tells one exchange, from its load to its verdict."""
    operations, wishes = size
    everything = wishes.draw(operations)

    async def go_on() -> list[Intention]:
        rolled = asyncio.ensure_future(asyncio.to_thread(roll))
        await shop.bring(everything, within_s=SERVED_WITHIN_S, lasts_s=LOAD_S)
        more = await shop.bring_until(rolled, lambda: wishes.draw(MORE), within_s=SERVED_WITHIN_S)
        await rolled
        return more

    everything += asyncio.run(go_on())
    answers = shop.answers()
    asyncio.run(shop.bring(wishes.shuffled(everything), within_s=SERVED_WITHIN_S))
    asyncio.run(shop.read_all(shop.operation_ids()))
    verdict = site.verdict(shop, everything)
    return Row(
        name=name,
        operations=len(everything),
        verdict=verdict,
        p99_s=p99_s(shop),
        harms=False,
        told_by=site.watch.noticed(),
        notes=[f"during the exchange: {answers}"],
    )


@contextmanager
def _proxy(program: str, folder: Path, ports: Sequence[int]) -> Iterator[int]:
    """Runs nginx with its usual settings of a proxy while the context is open; gives its port."""
    folder.mkdir()
    port = free_port()
    servers = " ".join(f"server 127.0.0.1:{each} max_fails=0;" for each in ports)
    (folder / "nginx.conf").write_text(CONFIGURATION.format(folder=folder, servers=servers, port=port))
    command = [program, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until((folder / "pid").exists, "nginx runs")
            yield port
        finally:
            process.terminate()
