"""Starts the simulator from a shell: `python -m payrelay_simulator`."""

import argparse
import sys
from collections.abc import Sequence

import msgspec

from payrelay_simulator.demo import demo_world
from payrelay_simulator.server import HOST_DEFAULT, PORT_DEFAULT, run
from payrelay_simulator.simulator import DEFAULT_MERCHANT
from payrelay_simulator.switches import PROFILES


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve as the arguments say; return the exit code."""
    parser = argparse.ArgumentParser(prog="payrelay_simulator", description="A PayHere gateway of your own.")
    parser.add_argument("--host", default=HOST_DEFAULT)
    parser.add_argument("--port", type=int, default=PORT_DEFAULT, help="0 takes any free port")
    parser.add_argument("--app-id", default=DEFAULT_MERCHANT.app_id)
    parser.add_argument("--app-secret", default=DEFAULT_MERCHANT.app_secret)
    parser.add_argument("--merchant-id", default=DEFAULT_MERCHANT.merchant_id)
    parser.add_argument("--merchant-secret", default=DEFAULT_MERCHANT.merchant_secret)
    parser.add_argument("--profile", choices=list(PROFILES), default="docs", help="which switches it begins with")
    parser.add_argument("--demo", action="store_true", help="begin with some customers, payments and subscriptions")
    options = vars(parser.parse_args(arguments))
    host, port, is_demo, profile = (options.pop(name) for name in ("host", "port", "demo", "profile"))
    merchant = msgspec.structs.replace(DEFAULT_MERCHANT, **options)
    try:
        run(host, port, merchant=merchant, prepare=demo_world if is_demo else None, profile=profile)
    except OSError as error:
        sys.stderr.write(f"{host}:{port}: {error.strerror}\n")
        return 1
    return 0


def script() -> None:
    """Serve as the command line says, and exit: the program of the package that is the simulator alone."""
    sys.exit(main())


if __name__ == "__main__":
    script()
