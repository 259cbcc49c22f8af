"""DLIO is asked for the trainings that the table names."""

import pytest
from mlperf_storage import GENERATES, WITH_SLUICE, WORKLOADS, arguments, recording


@pytest.mark.parametrize("name, seconds, steps, samples", [("resnet50", "0.06960", 20, 6400), ("unet3d", "0.03975", 15, 525)])
def test_an_emulated_accelerator_keeps_the_pace_of_an_a100(name, seconds, steps, samples):
    workload = WORKLOADS[name]
    given = arguments(workload, "data", "out")
    assert f"++workload.train.computation_time={seconds}" in given
    assert (workload.steps, workload.samples) == (steps, samples)


@pytest.mark.parametrize("changes", [(), GENERATES, WITH_SLUICE, recording(WORKLOADS["unet3d"])])
def test_runs_differ_by_their_changes_alone(changes):
    plain, given = arguments(WORKLOADS["resnet50"], "data", "out"), arguments(WORKLOADS["resnet50"], "data", "out", changes)
    assert given == [*plain[:-1], *(f"++workload.{change}" for change in changes), plain[-1]]
    assert plain[0] == "workload=resnet50_a100" and plain[-1] == "hydra.run.dir=out"
