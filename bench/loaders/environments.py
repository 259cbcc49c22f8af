"""Python environments of the peers, in the cache: each has its packages and, behind them, those of the project's own environment (torch is 5 GiB)."""

import hashlib
import pathlib
import subprocess
import sys
import sysconfig

INSTALL_SECONDS = 1800


class NotInstallable(Exception):
    """Its text is the reason, in a line."""


def python_of(folder, packages, alone=()):
    """The interpreter of an environment with these packages, made if need be. `alone`: packages without what they ask for. Raises NotInstallable."""
    python, stamp = folder / "bin/python", folder / "packages.sha256"
    project = sysconfig.get_paths()["purelib"]
    wanted = hashlib.sha256(repr((sorted(packages), project, sys.version, *sorted(alone))).encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    folder.parent.mkdir(parents=True, exist_ok=True)
    ran("no virtual environment", [sys.executable, "-m", "venv", "--clear", "--without-pip", folder])
    own = pathlib.Path(ran("no interpreter", [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]).strip())
    (own / "project.pth").write_text(project + "\n")
    print(f"installing {', '.join([*packages, *alone])} into {folder}", file=sys.stderr, flush=True)
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-cache-dir"]
    ran("pip", [*install, *packages])
    if alone:
        ran("pip", [*install, "--no-deps", *alone])
    stamp.write_text(wanted)
    return python


def ran(what, command):
    """What a command prints. Raises NotInstallable."""
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        raise NotInstallable(f"{what}: not ready after {INSTALL_SECONDS} s") from None
    if done.returncode:
        raise NotInstallable(f"{what}: {reason(done.stderr)}")
    return done.stdout


def reason(text):
    """The line of an output that says most: pip's last error that names one, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line.lower() and "subprocess-exited" not in line]
    return (errors or lines or ["no output"])[-1][:200]
