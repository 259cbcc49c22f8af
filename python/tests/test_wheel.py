"""The wheel: what a user gets who installs it into an empty environment, without a compiler and without a network."""

from __future__ import annotations

import os
import re
import site
import subprocess
import venv
from pathlib import Path

import pytest

ENVIRONMENT = dict(os.environ)
BUILD = Path(ENVIRONMENT.get("SLUICE_BUILD", "/no build"))
ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not (BUILD / "bundle").exists(), reason="there is no bundle in SLUICE_BUILD: make bundle")

FIVE_LINES = """import sys
from torchvision import datasets, transforms
from sluice.torch import DataLoader
loader = DataLoader(datasets.ImageFolder(sys.argv[1], transforms.Compose([transforms.RandomResizedCrop(32), transforms.ToTensor()])), num_workers=1)
print(next(iter(loader))[0].shape, loader.explain())
"""
UNEDITED = FIVE_LINES.replace("sluice.torch", "torch.utils.data").replace(", loader.explain()", "")


def built(folder: Path) -> Path:
    """A wheel of the bundle that the other tests have."""
    folder.mkdir()
    (folder / "bundle").symlink_to(BUILD / "bundle")
    subprocess.run([ROOT / "worker-image/wheel.sh", folder], check=True, env=ENVIRONMENT)
    (wheel,) = (folder / "wheel").iterdir()
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return built(tmp_path_factory.mktemp("wheel") / "first")


class Installation:
    """An empty environment, which sees the packages of this one, torch among them. Nothing else of this process's environment counts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder.with_name("home")
        self.home.mkdir()
        venv.create(folder, with_pip=False, symlinks=True)
        (self.packages,) = folder.glob("lib/python3*/site-packages")
        (self.packages / "torch.pth").write_text("\n".join(site.getsitepackages()))

    def pip(self, *arguments: str) -> None:
        self.run(f"{self.folder}/bin/python", "-m", "pip", "--disable-pip-version-check", *arguments)

    def run(self, *command: str, **variables: str) -> tuple[str, str]:
        """In a network namespace of its own, which has no network; the PATH has the environment's programs only."""
        environment = {"PATH": f"{self.folder}/bin", "HOME": str(self.home), "TMPDIR": str(self.home), **variables}
        isolated = ["/usr/bin/unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
        ran = subprocess.run([*isolated, *command], env=environment, cwd=self.home, capture_output=True, text=True, timeout=300)
        assert ran.returncode == 0, (command, ran.stdout, ran.stderr)
        return ran.stdout, ran.stderr

    def files(self) -> set[Path]:
        return {file.relative_to(self.folder) for file in self.folder.rglob("*")}


def test_a_wheel_is_installed_used_and_removed(wheel, tmp_path, image_root):
    place = Installation(tmp_path / "environment")
    before = place.files()
    place.pip("install", "--quiet", "--no-index", str(wheel))
    for name, text in {"five.py": FIVE_LINES, "train.py": UNEDITED}.items():
        (tmp_path / name).write_text(text)
    out, _ = place.run("python", str(tmp_path / "five.py"), str(image_root))
    assert re.match(r"torch.Size\(\[1, 3, 32, 32\]\) executor: native\n", out)
    assert f"of this process, {place.packages}/sluice/bundle/bin/sluice-feeder" in out
    _, told = place.run("sluice", "run", str(tmp_path / "train.py"), str(image_root), SLUICE_REPORT="1")
    assert "served natively" in told
    out, _ = place.run("sluice", "doctor")
    assert "FAIL" not in out and f"{place.packages}/sluice/bundle/lib/libsluice_images.so" in out
    out, _ = place.run("sluice", "cache", "--help")
    assert out.startswith("usage: sluice-cache ")
    place.pip("uninstall", "--quiet", "--yes", "sluice")
    assert place.files() == before and not list(place.home.glob("sluice*"))


def test_the_same_bundle_gives_the_same_bytes(wheel, tmp_path):
    assert re.fullmatch(r"sluice-[\d.]+-py3-none-manylinux_2_\d+_x86_64\.whl", wheel.name)
    assert built(tmp_path / "second").read_bytes() == wheel.read_bytes()
