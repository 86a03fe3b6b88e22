"""Results on paper: medians and ratios, a table for the terminal, JSON with everything that was measured."""

import json
import os
import statistics
import subprocess
import time
from pathlib import Path

from pglib import REPO

RESULTS = REPO / "build" / "bench"


def compare(stock, ours):
    """Ratio of two series measured in pairs, where more than 1 means that ours is better.

    Takes times: the figure is the ratio of the medians. The range is that of the pairs, whose members ran
    directly after each other on equal data, so it shows the noise.
    """
    pairs = [a / b for a, b in zip(stock, ours)]
    return {"stock": statistics.median(stock), "ours": statistics.median(ours),
            "ratio": statistics.median(stock) / statistics.median(ours),
            "pair_min": min(pairs), "pair_median": statistics.median(pairs), "pair_max": max(pairs)}


def table(title, header, rows):
    """Print rows of strings under a header: the first column left, the others right."""
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    print(f"\n{title}")
    for row in [header, ["-" * width for width in widths], *rows]:
        print("  ".join(cell.ljust(width) if column == 0 else cell.rjust(width)
                        for column, (cell, width) in enumerate(zip(row, widths))).rstrip())


def number(value, digits=0):
    return "n/a" if value is None else f"{value:,.{digits}f}"


def percent(value):
    return "n/a" if value is None else f"{value:.0%}"


def goals(entries):
    """Print what the project wants of a figure, and what was measured: (what, measured, wanted at least)."""
    if entries:
        table("Goals", ["figure", "measured", "wanted", ""],
              [[what, number(measured, 2), f">= {wanted:g}",
                "not measured" if measured is None else "reached" if measured >= wanted else "MISSED"]
               for what, measured, wanted in entries])


def write_json(name, content):
    path = RESULTS / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps(content, indent=1, default=str) + "\n")
    print(f"\nAll figures: {path.relative_to(REPO)}")


def machine():
    """Where the figures come from, without naming the host."""
    cpu = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
           if line.startswith(("model name", "CPU part"))]
    return {"kernel": os.uname().release, "architecture": os.uname().machine, "cpu": cpu[0] if cpu else None,
            "cpus": len(os.sched_getaffinity(0)),
            "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")}


def revision():
    """The commit measured, with a plus if the tree differs from it."""
    def git(*words):
        return subprocess.run(["git", "-C", REPO, "-c", f"safe.directory={REPO}", *words],
                              capture_output=True, text=True)
    head = git("rev-parse", "HEAD")
    if head.returncode != 0:
        return None
    return head.stdout.strip() + ("+" if git("status", "--porcelain").stdout.strip() else "")


def changed_settings(session):
    """Settings that differ from the built-in defaults, with the pgawait ones always."""
    return dict(session.query("""
        SELECT name, current_setting(name) FROM pg_settings
        WHERE (source NOT IN ('default', 'client') AND category NOT LIKE 'File Locations')
           OR name LIKE 'aio.%' OR name IN ('io_method', 'io_max_concurrency', 'data_checksums', 'debug_io_direct')
        ORDER BY name"""))


def median_of(runs, *path):
    """The median of a figure over runs, such as ("backend", "reads"); None where it was not measured."""
    values = []
    for value in runs:
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        values.append(value)
    return None if None in values else statistics.median(values)
