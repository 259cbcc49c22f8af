"""Every command of the README and the user guide runs, in their order, or is shown in the way that its line of WAYS states.

A command in neither fails, and so does a line of WAYS that no document needs.
"""

import os
import re
import shlex
import subprocess
import sys

import pytest
from conftest import ROOT
from machine import tool

DOCUMENTS = ("README.md", "docs/user-guide.md")
LANGUAGES = {"sh", "yaml", "python", "text"}  # of fenced blocks; the commands are in "sh"


def blocks(document, language):
    text = (ROOT / document).read_text()
    return [body for name, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) if name == language]


def commands(document):
    for block in blocks(document, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            line = re.sub(r"\s#.*", "", line)
            yield from (" ".join(part.split()) for part in line.split("&&") if part.strip())


COMMANDS = [command for document in DOCUMENTS for command in commands(document)]


class Place:
    """A user's own folder, with the programs of the guide on the PATH."""

    def __init__(self, bed, folder):
        self.bed = bed
        self.folder = folder
        for name in ("cli", "helm", "build", "worker-image", "Makefile"):
            (folder / name).symlink_to(ROOT / name)
        programs = os.path.dirname(tool("kubectl"))
        path = f"{folder}/.local/bin:{programs}:{os.environ['PATH']}"
        self.environment = {**os.environ, "HOME": str(folder), "PATH": path, "KUBECONFIG": bed.cluster.kubeconfig}

    def run(self, command):
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120, check=False)  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def run_first(self, program):
        """The guide runs the program before it says how to install it: the README comes first."""
        if not (self.folder / ".local/bin/kubectl-sluice").exists():
            self.run("install -D -t ~/.local/bin build/cli/kubectl-sluice")
        return self.run(program)

    def run_client(self, command):
        """As if the wheel were installed, which python/tests/test_wheel.py does."""
        (self.folder / "train.py").write_text("from torch.utils.data import DataLoader\nprint(list(DataLoader(range(4), num_workers=1)))\n")
        self.run(f"PYTHONPATH={ROOT}/python SLUICE_FEEDER_BINARY={ROOT}/build/worker-image/sluice-feeder {sys.executable} -m {command}")

    def run_cache(self, command):
        """Until it is told to end."""
        environment = f"PYTHONPATH={ROOT}/python SLUICE_FEEDER_BINARY={ROOT}/build/worker-image/sluice-feeder"
        self.run(f"{environment} timeout --preserve-status 5 {sys.executable} -m {command}")

    def apply(self, command):
        (self.folder / "resnet.yaml").write_text(blocks("README.md", "yaml")[0])
        self.run(command)
        pool = "/apis/sluice.dev/v1alpha1/namespaces/default/dataworkerpools/resnet"
        self.bed.wait_for("the job's pool", lambda: self.bed.cluster.get(pool))

    def check_image(self, command):
        """No builder of images is here: what the Containerfile copies is in its context, and the e2e image holds the same bundle."""
        words = shlex.split(command)
        file, context = ROOT / words[words.index("-f") + 1], ROOT / words[-1]
        ignored = (ROOT / ".dockerignore").read_text().split()
        sources = re.findall(r"^COPY (?!--from)(\S+) ", file.read_text(), re.MULTILINE)
        assert sources
        for source in sources:
            assert (context / source).exists() and source not in ignored, source
        for script in re.findall(r"/src/(\S+\.sh)", file.read_text()):
            assert os.access(context / script, os.X_OK), script


def as_it_is(place, command):
    place.run(command)


def with_dry_run(flag):
    return lambda place, command: place.run(f"{command} {flag}")


def only_listed(_place, _command):
    pass


# The beginning of a command -> how it is run here.
WAYS = {
    "kubectl get tjob": as_it_is,
    "kubectl scale dwp/resnet": as_it_is,
    "kubectl sluice": Place.run_first,
    "sluice cache": Place.run_cache,
    "export SLUICE_CACHE_SOCKET": as_it_is,
    "sluice doctor": Place.run_client,
    "sluice run train.py": Place.run_client,
    "kubectl apply -f resnet.yaml": Place.apply,
    "install -D -t ~/.local/bin build/cli/kubectl-sluice": as_it_is,
    # The release and its kinds are those of the other scenarios.
    "helm install sluice helm/sluice": with_dry_run("--dry-run=server"),
    "helm upgrade sluice helm/sluice": with_dry_run("--dry-run=server"),
    "helm uninstall sluice": with_dry_run("--dry-run"),
    "kubectl delete crd": with_dry_run("--dry-run=server"),
    "kubectl delete tjob --all -A": with_dry_run("--dry-run=server"),
    "podman build": Place.check_image,
    # This test is a part of `make test`, demo_interrupt_test runs `make demo`, and both have built the programs.
    "make build": with_dry_run("--dry-run"),
    "make wheel": with_dry_run("--dry-run"),
    "make demo": with_dry_run("--dry-run"),
    "make test": with_dry_run("--dry-run"),
    # python/tests/test_wheel.py installs the wheel into an environment of its own.
    "pip install build/wheel/": only_listed,
    # Of a registry and of a fresh machine: there is none here.
    "podman push": only_listed,
    "apt-get install -y make": only_listed,
}  # fmt: skip


def way_of(command):
    return next((way for beginning, way in WAYS.items() if command.startswith(beginning)), None)


@pytest.fixture(scope="module")
def place(bed, tmp_path_factory):
    yield Place(bed, tmp_path_factory.mktemp("guide"))
    bed.kubectl("delete", "trainingjob", "resnet", "-n", "default", "--ignore-not-found", "--cascade=foreground")


def test_every_block_tells_its_language_and_every_way_is_needed():
    for document in DOCUMENTS:
        languages = re.findall(r"^```(\w*)\n.*?^```$", (ROOT / document).read_text(), re.MULTILINE | re.DOTALL)
        assert set(languages) <= LANGUAGES, document
    assert len(COMMANDS) > 10
    assert [beginning for beginning in WAYS if not any(command.startswith(beginning) for command in COMMANDS)] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_trainingjob_is_taken(bed, document):
    manifests = [block for block in blocks(document, "yaml") if "kind: TrainingJob" in block]
    assert manifests
    for manifest in manifests:
        bed.kubectl("create", "--dry-run=server", "-f", "-", input_text=manifest)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_works(place, command):
    way = way_of(command)
    assert way, "the command is neither run nor listed in WAYS"
    way(place, command)
