"""Measures the processor time that a command takes before it does anything: help, and the version.

Whoever types a command waits for it. Each is run RUNS times as a process of its own, and the median is printed.
"""

import resource
import statistics
import subprocess
import sys

RUNS = 15
COMMANDS = (("--help",), ("keys", "--help"), ("version",))
CPU_MAX_S = 0.3
"""What is promised for ``payrelay --help``."""


def main() -> None:
    """Prints a line for each command, and fails where help takes longer than is promised."""
    medians = {typed: statistics.median(cpu_s(typed) for _ in range(RUNS)) for typed in COMMANDS}
    for typed, median_s in medians.items():
        print(f"payrelay {' '.join(typed):<12} {median_s:.3f} s of CPU, median of {RUNS} runs")
    assert medians[COMMANDS[0]] <= CPU_MAX_S, f"help takes more than {CPU_MAX_S} s of CPU"


def cpu_s(typed: tuple[str, ...]) -> float:
    """Gives the user and system time of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "payrelay", *typed], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


if __name__ == "__main__":
    main()
