#!/usr/bin/env python3
"""clang-tidy over the product's files (the sanitizers check the tests). Clean files are remembered: a file runs again only when it or a header that
it includes changed.

usage: tools/clang_tidy.py BUILD_DIRECTORY
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
CLEAN = pathlib.Path(os.environ.get("SLUICE_CACHE", "~/.cache/sluice")).expanduser() / "clang-tidy"


def refused_configuration(build, file):
    """What clang-tidy says against .clang-tidy. It goes on with its defaults then, and every file looks clean."""
    listing = subprocess.run(["clang-tidy", "-p", build, "--dump-config", file], cwd=ROOT, capture_output=True, text=True)
    return listing.stderr if "error" in listing.stderr.lower() else ""


def fingerprint(entry):
    """Hash of the configuration, the command and every project file that the translation unit reads."""
    words = shlex.split(entry["command"])
    if words[0].endswith("ccache"):
        words = words[1:]
    words = [w for i, w in enumerate(words) if w not in ("-o", "-c") and (i == 0 or words[i - 1] != "-o")]
    listing = subprocess.run([*words, "-MM"], cwd=entry["directory"], capture_output=True, text=True)
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes() + entry["command"].encode())
    for name in sorted(listing.stdout.replace("\\\n", " ").split()[1:]):
        path = pathlib.Path(entry["directory"], name)
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_product(file, build):
    generated = file.startswith(str(ROOT / build))
    return file.endswith(".cc") and not file.endswith("_test.cc") and "/testing/" not in file and not generated


def examine(entry, build):
    stamp = CLEAN / fingerprint(entry)
    if stamp.exists():
        return ""
    result = subprocess.run(["clang-tidy", "-p", build, "--quiet", entry["file"]], cwd=ROOT, capture_output=True, text=True)
    if result.returncode == 0:
        stamp.touch()
        return ""
    return result.stdout


def main():
    build = sys.argv[1]
    CLEAN.mkdir(parents=True, exist_ok=True)
    entries = [e for e in json.loads((ROOT / build / "compile_commands.json").read_text()) if is_product(e["file"], build)]
    if complaint := refused_configuration(build, entries[0]["file"]):
        print(complaint)
        return 1
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = [f for f in pool.map(lambda e: examine(e, build), entries) if f]
    print("\n".join(findings))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
