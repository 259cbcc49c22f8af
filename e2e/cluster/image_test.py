"""image.py: the archive is what the OCI image layout asks for, always the same, and holds what was asked for."""

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile

import pytest

import image


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / "program").write_text("#!/bin/sh\n")
    (folder / "program").chmod(0o700)
    (folder / "sub/data").write_text("data")
    (folder / "link").symlink_to("sub/data")
    return folder


def build(out, *arguments) -> dict:
    """Runs image.py and returns the archive's members by name."""
    image.main(["--name", "localhost/test:1", "--out", str(out), *map(str, arguments)])
    with tarfile.open(out) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}


def parts(members: dict) -> tuple[dict, dict, tarfile.TarFile]:
    """Manifest, configuration and layer, found as a reader of the format finds them."""
    blob = lambda described: members["blobs/" + described["digest"].replace(":", "/")]  # noqa: E731
    manifest = json.loads(blob(json.loads(members["index.json"])["manifests"][0]))
    layer = blob(manifest["layers"][0])
    return manifest, json.loads(blob(manifest["config"])), tarfile.open(fileobj=io.BytesIO(layer))


def test_every_blob_is_named_after_its_digest_and_the_sizes_are_right(tmp_path, files):
    members = build(tmp_path / "a.tar", "--add", f"{files}:/app")
    blobs = [name for name in members if name.startswith("blobs/")]
    assert len(blobs) == 3
    for name in blobs:
        assert name == "blobs/sha256/" + hashlib.sha256(members[name]).hexdigest()
    manifest, configuration, _ = parts(members)
    for described in (manifest["config"], manifest["layers"][0]):
        assert described["size"] == len(members["blobs/" + described["digest"].replace(":", "/")])
    assert configuration["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]
    assert json.loads(members["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}


def test_the_archives_folder_is_made(tmp_path, files):
    build(tmp_path / "images" / "a.tar", "--add", f"{files}:/app")
    assert (tmp_path / "images" / "a.tar").exists()


def test_the_name_is_where_containerd_looks_for_it(tmp_path, files):
    index = json.loads(build(tmp_path / "a.tar", "--add", f"{files}:/app")["index.json"])
    assert index["manifests"][0]["annotations"]["io.containerd.image.name"] == "localhost/test:1"


def test_the_layer_holds_files_links_and_parents_without_traces_of_the_builder(tmp_path, files):
    _, _, layer = parts(build(tmp_path / "a.tar", "--add", f"{files}:/opt/app", "--mkdir", "/tmp", "--mkdir", "/data"))
    entries = {member.name: member for member in layer}
    assert sorted(entries) == ["data", "opt", "opt/app", "opt/app/link", "opt/app/program", "opt/app/sub", "opt/app/sub/data", "tmp"]
    assert entries["opt/app/link"].linkname == "sub/data"
    modes = {name: entries[name].mode for name in ("tmp", "data", "opt/app/program", "opt/app/sub/data")}
    assert modes == {"tmp": 0o1777, "data": 0o755, "opt/app/program": 0o755, "opt/app/sub/data": 0o644}
    assert {(member.uid, member.gid, member.mtime, member.uname) for member in entries.values()} == {(0, 0, 0, "")}


def test_parents_come_before_their_entries(tmp_path, files):
    _, _, layer = parts(build(tmp_path / "a.tar", "--add", f"{files}:/a/b/c"))
    seen = {""}
    for member in layer:
        assert os.path.dirname(member.name) in seen
        seen.add(member.name)


def test_the_same_input_gives_the_same_bytes(tmp_path, files):
    build(tmp_path / "a.tar", "--add", f"{files}:/app")
    os.utime(files / "program", (1, 1))
    build(tmp_path / "b.tar", "--add", f"{files}:/app")
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_times_are_kept_on_request(tmp_path, files):
    os.utime(files / "program", (1_000_000, 1_000_000))
    _, _, layer = parts(build(tmp_path / "a.tar", "--add", f"{files}/program:/program", "--keep-times"))
    assert layer.getmember("program").mtime == 1_000_000


def test_the_process_description(tmp_path, files):
    options = ["--add", f"{files}:/app", "--env", "A=1", "--user", "7:8", "--workdir", "/app", "--entrypoint", "/app/program", "--flag"]
    _, configuration, _ = parts(build(tmp_path / "a.tar", *options))
    assert configuration["config"] == {
        "Entrypoint": ["/app/program", "--flag"],
        "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "A=1"],
        "User": "7:8",
        "WorkingDir": "/app",
    }


def test_an_own_path_replaces_the_usual_one(tmp_path, files):
    _, configuration, _ = parts(build(tmp_path / "a.tar", "--add", f"{files}:/app", "--env", "PATH=/app"))
    assert configuration["config"]["Env"] == ["PATH=/app"]


def test_a_closure_is_enough_to_run_the_program(tmp_path):
    members = build(tmp_path / "a.tar", "--add", "/usr/bin/true:/true", "--closure", "/usr/bin/true")
    _, _, layer = parts(members)
    assert "lib64/ld-linux-x86-64.so.2" in layer.getnames()
    root = tmp_path / "root"
    layer.extractall(root)
    libraries = f"{root}/lib/x86_64-linux-gnu:{root}/usr/lib/x86_64-linux-gnu"
    loader = [root / "lib64/ld-linux-x86-64.so.2", "--library-path", libraries, "--inhibit-cache", root / "true"]
    assert subprocess.run(loader, check=False).returncode == 0


def test_libraries_mounted_at_run_time_are_left_out(tmp_path):
    members = build(tmp_path / "a.tar", "--add", "/usr/bin/true:/true", "--closure", "/usr/bin/true", "--exclude", "/lib/")
    assert not any("libc.so" in name for name in parts(members)[2].getnames())


@pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")
def test_a_library_that_is_missing_here_is_named(tmp_path):
    (tmp_path / "x.c").write_text("int x(void) { return 0; } int main(void) { return x(); }")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "libabsent.so", "x.c"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "-o", "program", "x.c", "-L.", "-Wl,--no-as-needed", "-labsent"], cwd=tmp_path, check=True)
    (tmp_path / "libabsent.so").unlink()
    with pytest.raises(FileNotFoundError, match="libabsent.so"):
        image.shared_objects(str(tmp_path / "program"))


def test_a_failure_leaves_no_half_archive(tmp_path, files):
    tree = image.Tree()
    tree.add(str(files), "/app")
    (files / "sub/data").unlink()
    with pytest.raises(FileNotFoundError):
        image.write_archive(tree, image.parse(["--name", "a:1", "--out", str(tmp_path / "a.tar")]))
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
