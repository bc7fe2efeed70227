"""The sample of HAProxy in front of partitions, put into a folder of a test's own."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.deploy.programs import DEPLOY, program, said_by

SAMPLE: Final = DEPLOY / "haproxy/haproxy.cfg"
MAP: Final = DEPLOY / "haproxy/partitions.map"
SERVER_S: Final = 145


def haproxy_command(
    folder: Path,
    port: int,
    partitions: Mapping[str, Sequence[int]],
    partition_of: Mapping[str, str],
    *,
    server_s: int = SERVER_S,
) -> list[str]:
    """Gives the command for the sample with other ports and paths, and less patience with bodies.

    ``partitions`` has the ports of the processes by the partitions' names, and ``partition_of`` the map. ``server_s``
    is how long an answer may take.
    """
    text = SAMPLE.read_text().partition("\nbackend ")[0]
    ours = {
        "    log /dev/log local0\n    user haproxy\n    group haproxy\n": "    log stdout format raw local0\n",
        "bind 127.0.0.1:8090": f"bind 127.0.0.1:{port}",
        "/etc/haproxy/partitions.map": f"{folder}/partitions.map",
        "wait-for-body time 10s": "wait-for-body time 1s",
        f"timeout server {SERVER_S}s": f"timeout server {server_s}s",
    }
    for sample, own in ours.items():
        assert sample in text, sample
        text = text.replace(sample, own)
    for name, ports in partitions.items():
        servers = (f"    server {number} 127.0.0.1:{each}\n" for number, each in enumerate(ports, 1))
        text += f"\nbackend {name}\n{''.join(servers)}"
    (folder / "haproxy.cfg").write_text(text)
    (folder / "partitions.map").write_text("".join(f"{account} {name}\n" for account, name in partition_of.items()))
    command = [program("haproxy"), "-db", "-f", str(folder / "haproxy.cfg")]
    assert said_by(*command, "-c") == "Configuration file is valid\n"
    return command
