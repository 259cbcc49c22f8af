"""Our informer beside client-go's: the same pods, the same API server, the same run.

1. Cold starts, one client after the other and again: seconds, CPU and memory until all pods are in the cache.
2. Idle: CPU of both while nothing happens (bookmarks only).
3. Updates at a rate: both watch at once; how late each sees an update, and the CPU it takes.
With --soak-minutes instead of all that: our informer alone under updates for so long; its memory must not grow.
"""

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess

NAMESPACE = "kube-bench"


class Observer:
    """A running informer of either kind."""

    def __init__(self, command, idle_seconds, namespace=NAMESPACE):
        self.process = subprocess.Popen([*command, "--namespace", namespace, "--seconds", str(idle_seconds)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def line(self):
        text = self.process.stdout.readline()
        if not text:
            raise RuntimeError(f"{self.process.args[0]} ended early")
        return json.loads(text)

    def finish(self):
        self.process.stdin.close()
        last = self.line()
        self.process.wait()
        return last


def cold_starts(commands, rounds):
    """Median of each figure, per client; the clients take turns."""
    seen = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            observer = Observer(command, 3)
            result = observer.line() | observer.line()
            observer.finish()
            result["events_per_cpu_second"] = result["objects"] / result["sync_cpu_seconds"]
            seen[name].append(result)
    figures = ("objects", "sync_seconds", "sync_cpu_seconds", "events_per_cpu_second", "resident_mib_at_sync", "resident_mib")
    return {name: {f: round(statistics.median(r[f] for r in results), 3) for f in figures} for name, results in seen.items()}


def empty_caches(commands):
    """Memory with nothing in the cache, to tell the objects' from the program's."""
    result = {}
    for name, command in commands.items():
        observer = Observer(command, 1, f"{NAMESPACE}-nothing")
        observer.line()
        result[name] = round(observer.line()["resident_mib"], 1)
        observer.finish()
    return result


def updates(commands, load, rate, seconds):
    observers = {name: Observer(command, seconds) for name, command in commands.items()}
    result = {name: {"sync": observer.line()} for name, observer in observers.items()}
    for name, observer in observers.items():
        result[name] = {"idle_cpu_percent": round(observer.line()["idle_cpu_percent"], 3)}
    subprocess.run([*load, "update", "--rate", str(rate), "--seconds", str(seconds)], check=True)
    for name, observer in observers.items():
        last = observer.finish()
        last["updates_per_second"] = last["updates"] / seconds
        last["updates_per_cpu_second"] = last["updates"] / max(last["update_cpu_seconds"], 1e-9)
        result[name] |= {key: round(value, 4) for key, value in last.items()}
    return result


def resident_mib(pid):
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") / (1 << 20)


def soak(command, load, rate, minutes):
    """Resident memory every ten seconds; its median in the second and in the last quarter."""
    observer = Observer(command, 1)
    observer.line(), observer.line()
    writer = subprocess.Popen([*load, "update", "--rate", str(rate), "--seconds", str(minutes * 60), "--threads", "4"])
    samples = []
    while writer.poll() is None:
        samples.append(resident_mib(observer.process.pid))
        try:
            writer.wait(timeout=10)
        except subprocess.TimeoutExpired:
            pass
    last = observer.finish()
    quarter = max(len(samples) // 4, 1)
    return {"minutes": minutes, "asked_updates_per_second": rate, "updates": last["updates"],
            "lag_p99_seconds": round(last["lag_p99_seconds"], 4), "update_cpu_seconds": round(last["update_cpu_seconds"], 2),
            "resident_mib_second_quarter": round(statistics.median(samples[quarter:2 * quarter] or samples), 2),
            "resident_mib_last_quarter": round(statistics.median(samples[-quarter:]), 2),
            "resident_mib_most": round(max(samples), 2)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--client-go", required=True)
    parser.add_argument("--kubectl", required=True)
    parser.add_argument("--pods", type=int, default=10000)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--soak-minutes", type=int, default=0)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    kubeconfig = os.environ["KUBECONFIG"]

    ours = [args.ours, "observe", "--kubeconfig", kubeconfig]
    load = [args.ours, "--kubeconfig", kubeconfig, "--namespace", NAMESPACE, "--pods", str(args.pods)]
    go = [args.client_go, "--kubeconfig", kubeconfig]
    commands = {"sluice": ours,
                "client-go, protobuf": go,  # its default for kinds that are not custom
                "client-go, JSON": [*go, "--json"],
                "client-go, JSON, managedFields dropped": [*go, "--json", "--strip"]}

    subprocess.run([args.kubectl, "create", "namespace", NAMESPACE], check=False, capture_output=True)
    report = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
              "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count(),
                          "kernel": platform.release()},
              "load_average_before": os.getloadavg()[0],
              "versions": {"server": json.loads(subprocess.run([args.kubectl, "version", "-o", "json"], check=True, capture_output=True,
                                                               text=True).stdout)["serverVersion"]["gitVersion"],
                           "client-go": os.path.basename(args.client_go).rpartition("-")[2]},
              "pods": args.pods, "asked_updates_per_second": args.rate, "seconds": args.seconds}
    subprocess.run([*load, "create"], check=True)
    if args.soak_minutes:
        report["soak"] = soak(ours, load, args.rate, args.soak_minutes)
    else:
        report["empty_resident_mib"] = empty_caches(commands)
        report["cold_start"] = cold_starts(commands, args.rounds)
        report["updates"] = updates(commands, load, args.rate, args.seconds)
    report["load_average_after"] = os.getloadavg()[0]
    text = json.dumps(report, indent=1) + "\n"
    with open(args.out, "w") as out:
        out.write(text)
    print(text)


main()
