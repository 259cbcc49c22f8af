"""The job manifests: the same work and the same CPU in every phase, whatever feeds it."""

import json
import pathlib
import re

import jobs
import pytest

FOLDERS = {"photographs": "/data/photographs-9-v1", "speech": "/data/speech-9-v1", "text": "/data/text-9-v1"}
PLAIN, PYTHON, SHIPPED = jobs.PHASES


def lines(name, phase):
    return jobs.manifest(name, phase, jobs.local_site("sluice-demo", "/cache/venv", FOLDERS)).splitlines()


@pytest.mark.parametrize("name", jobs.NAMES)
@pytest.mark.parametrize("phase, differing", [(SHIPPED, ["mode:", "DATALOADER"]), (PYTHON, ["mode:", "DATALOADER", "SLUICE_LOWERING"])])
def test_phases_differ_only_in_how_the_job_is_fed(name, phase, differing):
    changed = [there for here, there in zip(lines(name, PLAIN), lines(name, phase), strict=True) if here != there]
    assert len(changed) == len(differing) and all(word in line for word, line in zip(differing, changed))


@pytest.mark.parametrize("name", jobs.NAMES)
def test_the_pod_as_a_whole_has_the_share_of_its_containers(name):
    requests = [int(milli) for milli in re.findall(r"requests: {cpu: (\d+)m", "\n".join(lines(name, SHIPPED)))]
    limits = [int(milli) for milli in re.findall(r"limits: {cpu: (\d+)m", "\n".join(lines(name, SHIPPED)))]
    pod, trainer, feeder, worker = requests
    assert pod == trainer + feeder
    assert limits[:2] == [pod, feeder], "the trainer container has no limit of its own: it may use what the feeder leaves"
    assert limits[2:] == [500] and worker < 500, "a worker starts faster than its share while no other pod wants the CPU"


@pytest.mark.parametrize("name", jobs.NAMES)
def test_the_feeder_asks_for_its_arena_and_the_memory_of_its_own(name):
    text = "\n".join(lines(name, SHIPPED))
    pod, trainer, feeder = (mebibytes(size) for size in re.findall(r"requests: {cpu: \d+m, memory: (\w+)}", text)[:3])
    assert feeder == mebibytes(re.search(r"arena: (\w+)", text)[1]) + 256, "as the operator asks for it where a job does not say"
    assert pod == trainer + feeder


def mebibytes(size):
    return int(size[:-2]) * {"Mi": 1, "Gi": 1024}[size[-2:]]


def test_the_plain_phase_has_no_workers():
    assert [[line for line in lines("vision", phase) if "mode:" in line] for phase in jobs.PHASES] == \
        [['  mode: "Off"'], ['  mode: "Auto"'], ['  mode: "Auto"']]


@pytest.mark.parametrize("scale, want", [
    (1.0, ["--epochs", "5", "--samples", "4000"]),
    (0.4, ["--epochs", "2", "--samples", "4000"]),
    (0.05, ["--epochs", "1", "--samples", "1000"]),
    (0.0001, ["--epochs", "1", "--samples", "64"]),
    (2.0, ["--epochs", "10", "--samples", "4000"]),
])  # fmt: skip
def test_scale_changes_the_number_of_samples(scale, want):
    assert jobs.Work("photographs", 4000, 5).arguments(scale) == want


def test_an_own_cluster_needs_no_claims():
    site = jobs.own_cluster_site("sluice-demo", "registry.example/trainer:1")
    text = jobs.manifest("vision", SHIPPED, site)
    assert "persistentVolumeClaim" not in text and '"/data/photographs"' in text and "image: registry.example/trainer:1" in text


def test_the_scripts_go_into_the_config_map_without_their_tests():
    files = json.loads(jobs.scripts_config_map("sluice-demo"))["data"]
    assert sorted(files) == ["accelerator.py", "neighbour.py", "paced_store.py", "ranks.py", "store.py", "train.py", "workloads.py"]
    assert files["train.py"] == (pathlib.Path(jobs.__file__).parent / "train/train.py").read_text()


def test_a_trainer_is_bound_to_its_host_and_its_data_workers_are_not():
    text = jobs.on_node(lines_text("vision"), "first")
    assert '"values": ["first"]' in text and "nodeSelector" not in text.split("affinity")[0]


def test_without_the_share_of_the_whole_pod_the_containers_keep_theirs():
    text = jobs.without_pod_share(lines_text("vision"))
    assert re.findall(r"requests: {cpu: (\d+)m", text) == ["100", "300", "200"]


def lines_text(name):
    return jobs.manifest(name, SHIPPED, jobs.local_site("sluice-demo", "/cache/venv", FOLDERS))


def test_the_second_trainer_asks_for_cores_and_takes_no_data_workers():
    text = jobs.manifest(jobs.NEIGHBOUR, SHIPPED, jobs.local_site("sluice-demo", "/cache/venv", FOLDERS), arguments=["10"])
    assert 'mode: "Off"' in text and "requests: {cpu: 800m" in text and 'args: ["10"]' in text


def test_two_pods_train_what_one_pod_trains():
    text = jobs.in_two_pods(lines_text("vision"))
    changed = [line.strip() for line in text.splitlines() if line not in lines_text("vision").splitlines()]
    assert changed == ["replicas: 2", "backoffLimit: 2", "terminationGracePeriodSeconds: 1", "command: [python, /demo/ranks.py]"]
