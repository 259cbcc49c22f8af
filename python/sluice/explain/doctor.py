"""`sluice doctor [-o json]`: what of Sluice works here, and what to do about the rest. The exit status is 1 if a check fails.

A check that passes may have a way out, too: something is missing that not everybody needs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence

from sluice.explain import examination, examination_of_feeder, examination_of_machine
from sluice.explain.examination import Check, Place

USAGE = "usage: sluice doctor [-o json]\n"

# In the order in which people should look at them.
_CHECKS: list[Callable[[Place], Check | list[Check]]] = [
    examination.python, examination.torch, examination.packages, examination.names_of_settings, examination.settings, examination.attached,
    examination_of_machine.cpus, examination_of_machine.memory, examination_of_machine.shared_memory, examination_of_machine.torchs_shared_memory,
    examination_of_machine.open_files, examination_of_machine.forks, examination_of_machine.cache,
    examination_of_feeder.feeder, examination_of_feeder.image_library, examination_of_feeder.data_workers,
]  # fmt: skip


def examine(place: Place) -> list[Check]:
    checks: list[Check] = []
    for check in _CHECKS:
        found = check(place)
        checks += found if isinstance(found, list) else [found]
    return checks


def rendered(checks: Sequence[Check]) -> str:
    """A row for each, and below it the way out."""
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        mark = "FAIL" if not check.passed else "note" if check.way_out else "ok"
        lines.append(f"{mark:<6}{check.name:<{width}}  {check.finding}")
        if check.way_out:
            lines.append(f"{'':<{width + 8}}{check.way_out}")
    return "\n".join(lines) + "\n"


def as_json(checks: Sequence[Check]) -> str:
    """In the form of `kubectl sluice doctor -o json`."""
    rows = [{"name": check.name, "passed": check.passed, "finding": check.finding, "wayOut": check.way_out} for check in checks]
    return json.dumps({"checks": rows}, indent=2) + "\n"


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 if all checks pass, 1 if one fails, 2 for arguments that are not known."""
    if list(arguments) in (["-h"], ["--help"]):
        sys.stdout.write(USAGE)
        return 0
    if list(arguments) not in ([], ["-o", "json"], ["-ojson"], ["--output=json"], ["--output", "json"]):
        sys.stderr.write(USAGE)
        return 2
    checks = examine(Place())
    sys.stdout.write(as_json(checks) if arguments else rendered(checks))
    return 0 if all(check.passed for check in checks) else 1
