#!/usr/bin/env python3
"""`make build-times`: what compiling costs, from an empty cache in a scratch folder: CPU-seconds by target, and the ten dearest files.

usage: tools/build_times.py [--sanitize address|thread] [--jobs N] [NINJA_TARGET...]

Processor time, so that it means the same on a busy machine. Precompiled headers count for the target that makes them; linking
does not count.
"""

import argparse
import collections
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def measure(log, command):
    """Stands before the compiler: runs it and adds its CPU-seconds and its output to the log."""
    status = subprocess.run(command, check=False).returncode
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(log, "a") as lines:
        lines.write(f"{usage.ru_utime + usage.ru_stime:.3f} {command[command.index('-o') + 1]}\n")
    return status


def build(options, log, folder):
    settings = ["-DCMAKE_BUILD_TYPE=" + ("Debug" if options.sanitize == "address" else "RelWithDebInfo"), f"-DSLUICE_SANITIZE={options.sanitize}"]
    launcher = f"-DCMAKE_CXX_COMPILER_LAUNCHER={sys.executable};{__file__};--measure;{log}"
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", launcher, *settings], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-C", folder, "--quiet", "-j", str(options.jobs), *options.targets], check=True)


def report(lines):
    """Text from the log's lines "CPU-SECONDS OBJECT"."""
    objects = [(float(seconds), output) for seconds, output in (line.split(" ", 1) for line in lines)]
    targets = collections.defaultdict(list)
    for seconds, output in objects:
        targets[re.search(r"([^/]+)\.dir/", output).group(1)].append(seconds)
    text = [f"{sum(seconds for seconds, _ in objects):8.1f} CPU-seconds, {len(objects)} files", ""]
    text += [f"{sum(seconds):8.1f}  {name}, {len(seconds)} files" for name, seconds in sorted(targets.items(), key=lambda item: -sum(item[1]))]
    return "\n".join([*text, "", "The ten dearest files:", *(f"{seconds:8.1f}  {output}" for seconds, output in sorted(objects, reverse=True)[:10])])


def main():
    if sys.argv[1:2] == ["--measure"]:
        return measure(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sanitize", default="", choices=["", "address", "thread"])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("targets", nargs="*", help="default: all")
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "cpu-seconds")
        build(parser.parse_args(), log, pathlib.Path(folder, "build"))
        print(report(log.read_text().splitlines()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
