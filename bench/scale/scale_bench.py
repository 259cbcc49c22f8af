"""The operator with many jobs, on a real control plane whose nodes and pods are faked by kwok.

1. A bare client creates half as many pods, with the bodies that the operator makes, over as many connections. Their
   Services are there before: Kubernetes' work for pods with a Service is not measured.
2. The operator meets all jobs at once. 3. It rests. 4. All pools are halved, then doubled. 5. It rests again.
6. The bare client once more, as in 1, beside all that is there now.
Every phase ends when each job's status says what is, and reports seconds, requests, CPU and the rate at which pods came.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "e2e/demo"))

from cluster_api import connect, pods_path  # noqa: E402
from processes import Operator, Witness, rate  # noqa: E402

# Fifty jobs to a namespace at full size: the controllers of Services look through all pods of theirs for each change of one.
NAMESPACES = 20
CONNECTIONS = 16  # as many writes as the operator has on their way at most (kWritesAtOnce)
PODS_PER_NODE = 200
WORKERS, BARE_PODS = "sluice.dev/component=worker,!bare", "bare"


def say(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def fake_nodes(count):
    resources = {"cpu": "1k", "memory": "1Ti", "pods": str(2 * PODS_PER_NODE)}
    status = {"capacity": resources, "allocatable": resources}
    nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"fake-{number:03d}", "labels": {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}}, "status": status} for number in range(count)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes})


def training_job(workers):
    """One trainer pod and a fixed number of workers: with neither metrics nor a choice, the plan is `min`."""
    small = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    trainer = {"name": "trainer", "image": "localhost/trainer:bench", "command": ["python", "train.py"], "resources": small}
    return {"apiVersion": "sluice.dev/v1alpha1", "kind": "TrainingJob",
            "spec": {"trainer": {"template": {"spec": {"containers": [trainer]}}},
                     "dataWorkers": {"min": workers, "max": workers, "resources": small}}}  # fmt: skip


class Bench:
    def __init__(self, args, cluster, folder):
        self.args, self.cluster, self.folder = args, cluster, folder
        self.load = [args.load, "--kubeconfig", args.kubeconfig, "--threads", str(CONNECTIONS), "--namespaces", str(NAMESPACES)]
        self.operator = self.witness = None
        self.jobs, self.workers = args.jobs, args.workers

    def wait_for(self, what, holds, seconds):
        deadline = time.monotonic() + seconds
        while not holds():
            assert not self.operator or self.operator.process.poll() in (None, 0), "the operator ended"
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what}: not within {seconds} s; {self.witness and self.witness.now}")
            time.sleep(0.25)

    def write(self, mode, kind, body, number, prefix, group=1):
        """`number` objects of a kind, created or patched at once, in groups. Returns how long that took."""
        path = pathlib.Path(self.folder) / "body.json"
        path.write_text(json.dumps(body))
        done = subprocess.run([*self.load, mode, "--kind", kind, "--namespace", "scale", "--template", path,
                               "--number", str(number), "--prefix", prefix, "--group", str(group)], check=True, capture_output=True, text=True)  # fmt: skip
        return json.loads(done.stdout)

    # ---- the bare client

    def pod_body(self):
        """The body of a worker pod as the operator posts it, but owned by an object of the bare namespace."""
        pool = self.cluster.get("/apis/sluice.dev/v1alpha1/namespaces/scale-0/dataworkerpools/job-0")
        body = {"apiVersion": "v1", "kind": "Pod", **pool["spec"]["template"]}
        pod = self.cluster.items(pods_path("scale-0"), labelSelector=f"{WORKERS},sluice.dev/job=job-0", limit=1)[0]
        body["metadata"] = {field: pod["metadata"][field] for field in ("labels", "annotations", "ownerReferences")}
        body["metadata"]["labels"] |= {"bare": "", "sluice.dev/job": "bare-@GROUP"}
        # An owner that is there, whatever the namespace.
        owner = self.cluster.items("/api/v1/nodes", limit=1)[0]["metadata"]
        body["metadata"]["ownerReferences"][0] |= {"apiVersion": "v1", "kind": "Node", "name": owner["name"], "uid": owner["uid"]}
        return body

    def bare_client(self, body):
        """Creates half of all workers' number of pods without an operator, and removes them again."""
        count = self.jobs * self.workers // 2
        if not self.cluster.items("/api/v1/services", labelSelector=BARE_PODS, limit=1):
            selector = {key: value for key, value in body["metadata"]["labels"].items() if key in ("sluice.dev/job", "sluice.dev/component")}
            service = {"metadata": {"labels": {"bare": ""}},
                       "spec": {"clusterIP": "None", "selector": selector, "ports": [{"name": "grpc", "port": 7471}]}}  # fmt: skip
            self.write("create", "services", service, count // self.workers, "bare-")
        witness = self.witness = Witness(self.load, BARE_PODS)
        started = time.monotonic()
        written = self.write("create", "pods", body, count, "bare-", self.workers)
        self.wait_for("bare pods", lambda: witness.now["ready"] == count, 1200)
        result = {"pods": count, "pods_per_second": rate(witness.timeline, "created", 0, count),
                  "pods_per_second_by_its_own_clock": round(written["per_second"], 1),
                  "seconds_until_ready": round(time.monotonic() - started, 1)}  # fmt: skip
        for number in range(NAMESPACES):
            self.cluster.kubectl("delete", "--raw", f"{pods_path(f'scale-{number}')}?gracePeriodSeconds=0&labelSelector={BARE_PODS}")
        self.wait_for("the end of the bare pods", lambda: witness.now["pods"] == 0, 600)
        witness.close()
        say(f"bare client: {result}")
        return result

    # ---- the operator

    def start_operator(self):
        self.operator = Operator(self.args.operator, self.args.kubeconfig, self.folder)
        self.wait_for("the operator's first lists", self.operator.is_ready, 60)
        self.witness = Witness(self.load, WORKERS)

    def converged(self, workers):
        now = self.witness.now
        if not now["pods"] == now["ready"] == self.jobs * workers:
            return False
        # Asked only now: the list of all jobs is large.
        time.sleep(1)
        statuses = [job.get("status", {}) for job in self.cluster.items("/apis/sluice.dev/v1alpha1/trainingjobs")]
        return len(statuses) == self.jobs and all(
            status.get("workers", {}).get("ready") == status.get("workers", {}).get("desired") == workers
            and any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", [])) for status in statuses)  # fmt: skip

    def phase(self, name, mode, body, workers):
        say(f"{name}: {workers} workers for each of {self.jobs} jobs")
        usage, requests, before = self.operator.usage(), self.operator.requests(), dict(self.witness.now)
        started = time.time()
        written = self.write(mode, "trainingjobs", body, self.jobs, "job-")
        self.wait_for(name, lambda: self.converged(workers), 3600)
        change = self.jobs * workers - before["pods"]
        counter = "created" if change > 0 else "deleted"
        samples = [sample for sample in self.witness.timeline if sample["seconds"] >= started]
        ready = next(s for s in samples if s["pods"] == s["ready"] == self.jobs * workers)
        after = self.operator.usage()
        result = {"workers_per_job": workers, "seconds_to_write_the_jobs": round(written["seconds"], 1),
                  "seconds_until_all_pods_are_right": round(ready["seconds"] - started, 1),
                  "seconds_until_every_status_says_so": round(time.time() - started, 1),
                  f"pods_{counter}_per_second": rate(samples, counter, before[counter], before[counter] + abs(change)),
                  "requests_per_job": self.per_job(requests), "operator_cpu_seconds": round(after["cpu_seconds"] - usage["cpu_seconds"], 2),
                  "operator": after}  # fmt: skip
        say(f"{name}: {json.dumps(result)}")
        return result

    def per_job(self, before):
        now = self.operator.requests()
        return {name: round((count - before.get(name, 0)) / self.jobs, 2) for name, count in sorted(now.items()) if count > before.get(name, 0)}

    def rest(self):
        """One quiet minute, or what the options say."""
        seconds = self.args.rest_seconds
        time.sleep(min(seconds, 20))  # what the phase before has left
        usage, requests, decisions = self.operator.usage(), self.operator.requests(), self.decisions()
        time.sleep(seconds)
        after, now, decided = self.operator.usage(), self.operator.requests(), self.decisions()
        per_minute = {name: round((count - requests.get(name, 0)) * 60 / seconds, 1) for name, count in sorted(now.items()) if count > requests.get(name, 0)}
        result = {"seconds": seconds, "requests_per_minute": per_minute,
                  "cpu_percent_of_a_core": round(100 * (after["cpu_seconds"] - usage["cpu_seconds"]) / seconds, 2),
                  "seconds_per_decision": round((decided[1] - decisions[1]) / max(decided[0] - decisions[0], 1), 3),
                  **{key: after[key] for key in ("resident_mib", "threads", "descriptors")}}  # fmt: skip
        say(f"at rest: {json.dumps(result)}")
        return result

    def decisions(self):
        return [self.operator.metric(f"sluice_operator_decision_seconds_{part}") for part in ("count", "sum")]

    def run(self):
        report = {}
        nodes = -(-self.jobs * (self.workers + 1) // PODS_PER_NODE)
        self.cluster.kubectl("create", "-f", "-", input_text=fake_nodes(nodes))
        for number in range(NAMESPACES):
            self.cluster.kubectl("create", "namespace", f"scale-{number}")
        # One job, to see what a worker pod looks like.
        self.start_operator()
        self.write("create", "trainingjobs", training_job(1), 1, "job-")
        self.wait_for("the first worker", lambda: self.witness.now["ready"] == 1, 120)
        body = self.pod_body()
        self.cluster.kubectl("-n", "scale-0", "delete", "trainingjob", "job-0")
        self.wait_for("its end", lambda: self.witness.now["pods"] == 0, 120)
        self.stop_operator()

        report["bare_client_before"] = self.bare_client(body)
        self.start_operator()
        report["empty"] = self.operator.usage()
        report["create"] = self.phase("create", "create", training_job(self.workers), self.workers)
        report["rest_before"] = self.rest()
        for round_number in range(self.args.rounds):
            for name, workers in (("halve", self.workers // 2), ("double", self.workers)):
                patch = {"spec": {"dataWorkers": {"min": workers, "max": workers}}}
                report[name if round_number == 0 else f"{name}_{round_number + 1}"] = self.phase(name, "patch", patch, workers)
        report["rest_after"] = self.rest()
        self.stop_operator()
        report["bare_client_after"] = self.bare_client(body)
        return {"fake_nodes": nodes, "pod_body_bytes": len(json.dumps(body))} | report

    def stop_operator(self):
        self.witness.close()
        status = self.operator.stop()
        assert status == 0, f"the operator ended with {status}"


def verdict(report):
    bare = [report[f"bare_client_{when}"]["pods_per_second"] for when in ("before", "after")]
    mean = sum(bare) / 2
    share = {name: round(100 * report[name]["pods_created_per_second"] / mean, 1) for name in ("create", "double")}
    return {"goal": "the operator creates pods at 80 % of the bare client's rate, in percent:", **share,
            # Far apart: the machine was not the same before and after, and the percentages say little.
            "bare_client_pods_per_second": bare}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("operator", "load", "kwok", "kubectl", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--rest-seconds", type=int, default=60)
    args = parser.parse_args()
    args.kubeconfig = os.environ["KUBECONFIG"]
    version = json.loads(subprocess.run([args.kubectl, "version", "-o", "json"], check=True, capture_output=True, text=True).stdout)
    report = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
              "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count(), "kernel": platform.release()},
              "versions": {"server": version["serverVersion"]["gitVersion"],
                           "kwok": re.search(r"v\d+\.\d+\.\d+", subprocess.run([args.kwok, "--version"], check=True, capture_output=True, text=True).stdout)[0]},
              "load_average_before": os.getloadavg()[0], "jobs": args.jobs, "workers_per_job": args.workers, "connections": CONNECTIONS, "namespaces": NAMESPACES}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, connect(args.kubectl, args.kubeconfig) as cluster, open(f"{folder}/kwok.log", "w") as log:
        cluster.apply("\n---\n".join(path.read_text() for path in sorted(ROOT.glob("crds/*.yaml"))))
        kwok = subprocess.Popen([args.kwok, "--kubeconfig", args.kubeconfig, "--config", ROOT / "bench/scale/stages.yaml", "--manage-all-nodes",
                                 "--node-lease-duration-seconds", "40"], stdout=log, stderr=subprocess.STDOUT)  # fmt: skip
        bench = Bench(args, cluster, folder)
        try:
            report |= bench.run()
        except BaseException:
            for name in ("kwok", "operator"):
                print(f"--- {name}\n" + "\n".join((pathlib.Path(folder) / f"{name}.log").read_text().splitlines()[-15:]), file=sys.stderr)
            if bench.operator and bench.operator.process.poll() is None:
                bench.operator.process.kill()
            raise
        finally:
            kwok.terminate()
            kwok.wait()
    report["verdict"] = verdict(report)
    report["load_average_after"] = os.getloadavg()[0]
    text = json.dumps(report, indent=1) + "\n"
    pathlib.Path(args.out).write_text(text)
    print(text)


main()
