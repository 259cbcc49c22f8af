"""What a result says of the machine that it is of."""

import os
import pathlib
import platform


def described():
    return {"processor": processor(), "cores": os.cpu_count(), "python": platform.python_version()}


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())
