"""The page of a real run of sluice-sim, and the means that its charts are made of."""

import html.parser
import json
import os
import pathlib
import subprocess
import sys

import numpy
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import page  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
SIMULATOR = pathlib.Path(os.environ.get("SLUICE_BUILD", ROOT / "build")) / "scheduler/simulator/sluice-sim"
SCENARIO = """
name: small <one>
summary: a few jobs
cluster:
  nodes: [{name: gpu, count: 2, gpus: 8, cores: 24}, {name: cpu, cores: 64}]
jobs:
  - {name: </svg><b>, ideal_seconds: 300, knee_cores_per_gpu: 6, gpus: 2}
  - {ideal_seconds: 200, knee_cores_per_gpu: 12, gpus: 8}
  - {arrival_seconds: 60, ideal_seconds: 100, knee_cores_per_gpu: 1}
"""


class Reader(html.parser.HTMLParser):
    """Collects tags and text, and fails at a tag that is closed out of order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    (folder / "s.yaml").write_text(SCENARIO)
    policies = ["all", *(name for name in page.POLICIES if name in ("true-rates", "no-feedback", "little-noise"))]
    runs = {}
    for policy in policies:
        subprocess.run([SIMULATOR, "run", folder / "s.yaml", "--policy", policy, "--seeds", "2", "--json", folder / "r.json", "--time-lines"],
                       cwd=ROOT, check=True, capture_output=True)  # fmt: skip
        runs[policy] = json.loads((folder / "r.json").read_text())
    return runs


def test_the_page_of_every_policy_is_well_formed_and_loads_nothing(results):
    for result in results.values():
        text = page.page(result)
        seen = Reader(text)
        assert not {"script", "link", "img", "b"} & set(seen.seen) and "http" not in text and "nan" not in text
        assert seen.seen.count("svg") == 3 * len(result["policies"]), "GPUs, CPU and jobs of each policy"
        assert seen.seen.count("dt") == len(result["policies"])
        assert "small <one>" in seen.words and "small <one>" not in text
        for wanted in (result["bound"]["sentence"], "Gains", "p99 JCT", "jobs harmed", "changes per job-hour", "JCT gain"):
            assert wanted in seen.words


def test_every_cell_of_the_table_is_on_the_page(results):
    result = results["all"]
    words = Reader(page.page(result)).words
    assert all(cell in words for row in result["table"] for cell in row)


def test_a_result_without_time_lines_has_only_the_tables(results):
    result = {**results["all"], "policies": [{**entry} for entry in results["all"]["policies"]]}
    for entry in result["policies"]:
        del entry["time_line"]
    assert "svg" not in Reader(page.page(result)).seen


def test_busy_gpus_over_time_add_up_to_the_work(results):
    for entry in results["all"]["policies"]:
        jobs = entry["time_line"]["jobs"]
        seconds = max(job["finish_seconds"] for job in jobs)
        busy = page.cluster_lines(jobs, seconds)["busy"].sum() * seconds / page.BUCKETS
        assert busy == pytest.approx(sum(job["gpu_seconds"] for job in jobs), rel=0.01)


def test_steps_become_means_over_the_time_in_which_a_job_runs():
    job = {"name": "a", "gpus": 2, "gpu_seconds": 1, "finish_seconds": 90, "steps": [[10, 0.5, 4, 0, 8], [40], [60, 1, 4, 6, 8]]}
    running, speed, local, remote, wanted = page.columns(job, 100, 5)
    assert running == pytest.approx([0.5, 1, 0, 1, 0.5])
    assert speed == pytest.approx([0.25, 0.5, 0, 1, 0.5])
    assert local == pytest.approx([2, 4, 0, 4, 2]) and remote == pytest.approx([0, 0, 0, 6, 3])
    (strip,) = page.strips([job], 160)
    assert [bar["text"] for bar in strip["bars"]][::30] == [
        "50 % of full speed with 4.0 local and 0.0 remote cores of 8.0 wanted", "100 % of full speed with 4.0 local and 6.0 remote cores of 8.0 wanted"]
    assert len(strip["bars"]) == 60 and strip["bars"][0]["hue"] == 60, "nothing is drawn while the job waits"


@pytest.mark.parametrize("seconds, last, count", [(100, "100 s", 11), (170, "160 s", 9), (3600, "60 min", 7), (86400, "20 h", 5), (4e6, "1000 h", 6)])
def test_ticks_are_few_whole_numbers(seconds, last, count):
    ticks = page.ticks(seconds)
    assert (ticks[-1][1], len(ticks)) == (last, count)
    assert ticks[0] == (page.LEFT, f"0 {last.split()[1]}") and ticks[-1][0] <= page.WIDTH


def test_only_the_largest_jobs_have_a_strip_in_their_order():
    steps = [[0, 1, 1, 0, 1]]
    jobs = [{"name": str(i), "gpus": 1, "gpu_seconds": i % 50, "finish_seconds": 10, "steps": steps} for i in range(60)]
    names = [int(strip["name"]) for strip in page.strips(jobs, 10)]
    assert names == list(range(10, 50))


def test_an_area_ends_at_the_top_of_the_chart():
    assert page.area(numpy.array([0.0, 20.0]), 10) == "M60 130V130.0H480.0V0.0H900.0V130Z"
