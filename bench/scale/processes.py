"""The processes of a scale run, and what they cost: the operator under test and the witness that counts pods."""

import json
import os
import pathlib
import re
import subprocess
import threading
import time
import urllib.request

TICKS = os.sysconf("SC_CLK_TCK")


class Operator:
    """sluice-operator as a process of this machine; REQUIRES: stop() at the end."""

    METRICS_PORT, PROBES_PORT = 18080, 18081

    def __init__(self, program, kubeconfig, folder):
        configuration = pathlib.Path(folder) / "operator.yaml"
        configuration.write_text(f"image: localhost/sluice:bench\nmetricsAddress: 127.0.0.1:{self.METRICS_PORT}\n"
                                 f"probesAddress: 127.0.0.1:{self.PROBES_PORT}\nkubeconfig: {kubeconfig}\n"
                                 # A starved machine may take ten seconds for an answer; no other replica is to take over here.
                                 "leaderElection: {namespace: default, leaseSeconds: 120, renewSeconds: 100}\n")  # fmt: skip
        with open(pathlib.Path(folder) / "operator.log", "w") as log:
            self.process = subprocess.Popen([program, "--config", configuration], stdout=log, stderr=subprocess.STDOUT)
        self.proc = pathlib.Path("/proc") / str(self.process.pid)

    def page(self, path, port=METRICS_PORT):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.read().decode()

    def is_ready(self):
        try:
            return self.page("/readyz", self.PROBES_PORT).strip() == "ok"
        except OSError:
            assert self.process.poll() is None, "the operator ended"
            return False

    def requests(self):
        """Requests so far: {"POST 201": 17, ...}."""
        found = re.findall(r'^sluice_api_requests_total\{(.*)\} (\S+)$', self.page("/metrics"), re.M)
        counts = {}
        for labels, value in found:
            label = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            counts[f"{label['method']} {label['code']}"] = float(value)
        return counts

    def metric(self, name):
        return float(re.search(rf"^{name} (\S+)$", self.page("/metrics"), re.M)[1])

    def usage(self):
        stat = (self.proc / "stat").read_text().rpartition(")")[2].split()
        status = (self.proc / "status").read_text()
        return {"cpu_seconds": (int(stat[11]) + int(stat[12])) / TICKS,
                "resident_mib": round(int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024, 1),
                "threads": int(re.search(r"Threads:\s+(\d+)", status)[1]),
                "descriptors": len(list((self.proc / "fd").iterdir()))}  # fmt: skip

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=30)


class Witness:
    """Follows the pods that a selector names, in all namespaces: `timeline` is a list of {seconds, pods, ready, created, deleted}."""

    def __init__(self, command, selector):
        self.timeline = []
        self.process = subprocess.Popen([*command, "count", "--namespace", "", "--selector", selector],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        deadline = time.monotonic() + 60
        while not self.timeline:
            assert time.monotonic() < deadline and self.process.poll() is None, "the witness does not start"
            time.sleep(0.05)

    def _read(self):
        for line in self.process.stdout:
            self.timeline.append(json.loads(line))

    @property
    def now(self):
        return self.timeline[-1]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)
        self.reader.join(timeout=30)


def rate(timeline, counter, before, after):
    """Per second, between a tenth and nine tenths of the way from one count to the other: without start and tail."""
    low, high = before + 0.1 * (after - before), before + 0.9 * (after - before)
    first = next(sample for sample in timeline if sample[counter] >= low)
    last = next(sample for sample in timeline if sample[counter] >= high)
    if last["seconds"] <= first["seconds"]:
        return None
    return round((last[counter] - first[counter]) / (last["seconds"] - first["seconds"]), 1)
