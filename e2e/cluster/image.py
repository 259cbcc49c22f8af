#!/usr/bin/env python3
"""Writes an OCI image archive without a registry, a daemon or root.

    image.py --name localhost/app:dev --out app.tar --add build/app:/app --closure build/app --entrypoint /app

--add SRC:DST copies a file, a link or a whole folder. --closure FILE adds the shared objects that the loader would map
for FILE, at the paths where it looks for them. The archive has one uncompressed layer and is deterministic: the same
input bytes give the same digests (with --keep-times, the same bytes and times). containerd takes the image's name from
an annotation (`ctr images import`).
"""

import argparse
import dataclasses
import hashlib
import io
import json
import os
import pathlib
import re
import stat
import subprocess
import tarfile

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIGURATION_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"


@dataclasses.dataclass(frozen=True)
class Entry:
    """One path of the image: a folder (no content), a link (target) or a file (source)."""

    mode: int
    source: str | None = None
    target: str | None = None


FOLDER = Entry(0o755)


class Tree:
    """The image's files, by path without a leading slash. What is put first under a path stays."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}

    def add(self, source: str, destination: str) -> None:
        destination = destination.strip("/")
        status = os.lstat(source)
        if stat.S_ISLNK(status.st_mode):
            self._put(destination, Entry(0o777, target=os.readlink(source)))
        elif stat.S_ISDIR(status.st_mode):
            if destination:
                self._put(destination, FOLDER)
            for name in sorted(os.listdir(source)):
                self.add(os.path.join(source, name), f"{destination}/{name}")
        else:
            # Owner and exact mode depend on who builds; only executability matters.
            self._put(destination, Entry(0o755 if status.st_mode & 0o111 else 0o644, source=source))

    def add_folder(self, path: str) -> None:
        path = path.strip("/")
        self._put(path, Entry(0o1777) if path == "tmp" else FOLDER)

    def add_closure(self, binary: str, excluded: list[str]) -> None:
        for library in shared_objects(binary):
            if not any(library.startswith(folder) for folder in excluded):
                self._put(library.strip("/"), Entry(0o755, source=os.path.realpath(library)))

    def _put(self, path: str, entry: Entry) -> None:
        for parent in pathlib.PurePosixPath(path).parents:
            if str(parent) != ".":
                self.entries.setdefault(str(parent), FOLDER)
        self.entries.setdefault(path, entry)

    def write(self, layer: str, keep_times: bool) -> None:
        with tarfile.open(layer, "w", format=tarfile.GNU_FORMAT) as archive:
            for path in sorted(self.entries):
                _write_entry(archive, path, self.entries[path], keep_times)


def _write_entry(archive: tarfile.TarFile, path: str, entry: Entry, keep_times: bool = False) -> None:
    header = tarfile.TarInfo(path)  # owner 0:0 and time 0: nothing of the building machine
    header.mode = entry.mode
    if entry.target is not None:
        header.type = tarfile.SYMTYPE
        header.linkname = entry.target
        archive.addfile(header)
    elif entry.source is None:
        header.type = tarfile.DIRTYPE
        archive.addfile(header)
    else:
        header.size = os.stat(entry.source).st_size
        if keep_times:
            header.mtime = int(os.stat(entry.source).st_mtime)
        with open(entry.source, "rb") as content:
            archive.addfile(header, content)


def shared_objects(binary: str) -> list[str]:
    """Paths of the shared objects the loader maps for `binary`; none for a static one."""
    listing = subprocess.run(["ldd", binary], capture_output=True, text=True, check=False)
    if missing := re.findall(r"^\s*(\S+) => not found", listing.stdout, re.MULTILINE):
        raise FileNotFoundError(f"{binary} needs {', '.join(missing)}, which the loader does not find")
    return re.findall(r"(?:=>\s+|^\s+)(/\S+)\s+\(0x", listing.stdout, re.MULTILINE)


def _digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _file_digest(path: str) -> str:
    with open(path, "rb") as content:
        return "sha256:" + hashlib.file_digest(content, "sha256").hexdigest()


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _configuration(options: argparse.Namespace, layer_digest: str) -> bytes:
    path = [] if any(pair.startswith("PATH=") for pair in options.env) else ["PATH=/usr/local/bin:/usr/bin:/bin"]
    process = {
        "Entrypoint": options.entrypoint,
        "Env": path + options.env,
        "User": options.user,
        "WorkingDir": options.workdir,
    }
    return _json(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": process,
            "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
            "history": [{"created_by": "image.py"}],
        }
    )


def _index(name: str, manifest: bytes) -> bytes:
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.rsplit(":", 1)[-1]}
    entry = {
        "mediaType": MANIFEST_TYPE,
        "digest": _digest(manifest),
        "size": len(manifest),
        "platform": {"architecture": "amd64", "os": "linux"},
        "annotations": names,
    }
    return _json({"schemaVersion": 2, "manifests": [entry]})


def _add_bytes(archive: tarfile.TarFile, path: str, data: bytes) -> None:
    header = tarfile.TarInfo(path)
    header.size = len(data)
    archive.addfile(header, io.BytesIO(data))


def _blob(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")


def write_archive(tree: Tree, options: argparse.Namespace) -> str:
    """Writes options.out (complete or not at all) and returns the manifest's digest."""
    os.makedirs(os.path.dirname(os.path.abspath(options.out)), exist_ok=True)
    layer_path, unfinished = f"{options.out}.layer-{os.getpid()}", f"{options.out}.new-{os.getpid()}"
    try:
        tree.write(layer_path, options.keep_times)
        layer = {"mediaType": LAYER_TYPE, "digest": _file_digest(layer_path), "size": os.path.getsize(layer_path)}
        configuration = _configuration(options, layer["digest"])
        described = {"mediaType": CONFIGURATION_TYPE, "digest": _digest(configuration), "size": len(configuration)}
        manifest = _json({"schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": described, "layers": [layer]})
        with tarfile.open(unfinished, "w", format=tarfile.GNU_FORMAT) as archive:
            _add_bytes(archive, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
            _add_bytes(archive, "index.json", _index(options.name, manifest))
            _add_bytes(archive, _blob(_digest(manifest)), manifest)
            _add_bytes(archive, _blob(_digest(configuration)), configuration)
            _write_entry(archive, _blob(layer["digest"]), Entry(0o644, source=layer_path))
        os.replace(unfinished, options.out)
        return _digest(manifest)
    finally:
        for path in (layer_path, unfinished):
            if os.path.exists(path):
                os.unlink(path)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", required=True, help="image name with tag, e.g. localhost/app:dev")
    parser.add_argument("--out", required=True, help="archive to write")
    parser.add_argument("--add", action="append", default=[], metavar="SRC:DST")
    parser.add_argument("--closure", action="append", default=[], metavar="FILE")
    parser.add_argument("--exclude", action="append", default=[], metavar="FOLDER", help="libraries mounted at run time")
    parser.add_argument("--mkdir", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--keep-times", action="store_true", help="for Python, whose compiled files are tied to them")
    parser.add_argument("--user", default="65532:65532")
    parser.add_argument("--workdir", default="/")
    parser.add_argument("--entrypoint", nargs=argparse.REMAINDER, default=[], help="last option: takes all that follows")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    tree = Tree()
    for folder in options.mkdir:
        tree.add_folder(folder)
    for pair in options.add:
        source, destination = pair.split(":", 1)
        tree.add(source, destination)
    for binary in options.closure:
        tree.add_closure(binary, options.exclude)
    digest = write_archive(tree, options)
    print(f"{options.name} {digest} {os.path.getsize(options.out) >> 20} MiB")


if __name__ == "__main__":
    main()
