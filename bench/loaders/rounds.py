"""Runs the peers in turns, each in a process of its own, and gathers their figures."""

import json
import os
import pathlib
import subprocess
import tempfile

from process_trees import end_descendants

HERE = pathlib.Path(__file__).resolve().parent
RUN_SECONDS = 420


def turns(rows, first, rounds):
    """Every row in each round; every other round in the opposite order, so that a machine that gets slower favours none."""
    for number in range(first, first + rounds):
        for row in rows if number % 2 == 0 else rows[::-1]:
            yield number, row


def last_words(log):
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    # A Python exception's line begins with its name; what comes behind it may be other threads' noise.
    raised = [line for line in lines if line.partition(":")[0].endswith(("Error", "Exception", "Interrupt"))]
    return (raised or lines or ["no output"])[-1][:200]


def run(command, environment, seconds=RUN_SECONDS):
    """Figures of one run, or {"failed": why}. `command` gets one more argument: where its figures go. Ends every descendant of this process."""
    with tempfile.TemporaryDirectory() as folder:
        output, log = pathlib.Path(folder, "figures.json"), pathlib.Path(folder, "log")
        with log.open("w") as errors:
            process = subprocess.Popen([*command, str(output)], cwd=HERE, env=environment, stdin=subprocess.DEVNULL,
                                       stdout=errors, stderr=subprocess.STDOUT)  # fmt: skip
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                return {"failed": f"not done after {seconds} s"}
            finally:
                end_descendants()
                process.wait()
        if not output.exists():
            return {"failed": last_words(log)}
        return json.loads(output.read_text()) | {"load_average": os.getloadavg()[0]}
