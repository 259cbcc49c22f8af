"""Tar shards: WebDataset's samples by their number, what is indexed, and what is refused."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import random
import re
import tarfile
import tracemalloc
from pathlib import Path

import numpy
import pytest
from PIL import Image
from torchvision import transforms

from shard_files import shards_of_images, write_shard
from sluice.shards import IMAGE, KEY, ShardError, TarShards
from sluice.stores import index_files, shard_index
from sluice.stores.shard_index import scan, split_name
from sluice.stores.shard_paths import expand_braces, shard_paths


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def picture(format="PNG", mode="RGB", size=(7, 5)):
    made = io.BytesIO()
    Image.new(mode, size, 99).save(made, format)
    return made.getvalue()


def array(values):
    made = io.BytesIO()
    numpy.save(made, values)
    return made.getvalue()


MEMBERS = [
    ("a/0.png", picture()), ("a/0.cls", b"5"), ("a/0.json", b'{"x": [1]}'),
    ("a/0.seg.png", picture("PNG", "L")), ("a/1.jpg", picture("JPEG", "L")), ("a/1.cls", b" 17\n"), ("a/1.txt", "K\u00fche".encode()),
    ("b.v2/1.JPG", picture("JPEG")), ("b.v2/1.CLS", b"-3"), ("b.v2/1.bin", b"\0\1"),
    ("/abs/../2.webp", picture("WEBP")), ("/abs/../2.cls", b"2"), ("/abs/../2.npy", array([1.5, 2])),
    ("./3.png", picture("PNG", "RGBA")), ("./3.cls", b"9"), ("./3.pkl", pickle.dumps(1)),
]  # fmt: skip


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_samples_are_those_of_webdataset(tmp_path, format):
    webdataset = pytest.importorskip("webdataset")
    long = [] if format == tarfile.USTAR_FORMAT else [("x" * 300 + "/\u725b.png", picture()), ("x" * 300 + "/\u725b.cls", b"1")]
    write_shard(tmp_path / "0.tar", MEMBERS[:8], format)
    write_shard(tmp_path / "1.tar", MEMBERS[8:] + long, format)
    fields = ("jpg;png;webp", "cls", "seg.png", "json", "txt", "npy", "bin")
    found = TarShards(tmp_path, fields=(KEY, *fields))
    theirs = list(webdataset.WebDataset(str(tmp_path / "{0..1}.tar"), shardshuffle=False).decode("pil"))
    assert len(found) == len(theirs) == 6 + len(long) // 2
    for number, their in enumerate(theirs):
        has = [field for field in fields if any(extension in their for extension in field.split(";"))]
        key, *values = TarShards(tmp_path, fields=(KEY, *has))[number]
        assert key == their["__key__"]
        for field, value in zip(has, values, strict=True):
            expected = next(their[extension] for extension in field.split(";") if extension in their)
            assert type(value) is type(expected)
            same = value.tobytes() == expected.tobytes() if hasattr(value, "tobytes") else value == expected
            assert same, (number, field)


def test_names_belong_to_samples_as_in_webdataset():
    tariterators = pytest.importorskip("webdataset.tariterators")
    draw = random.Random(5)
    for _ in range(20_000):
        name = "".join(draw.choice("ab./.") for _ in range(draw.randint(1, 9)))
        key, extension = tariterators.base_plus_ext(name)
        assert split_name(name) == ((key, extension) if key is not None else (None, "")), name


@pytest.mark.parametrize("name", ["__meta__", "__meta__/a.jpg", "____/a.jpg", "README", ".hidden"])
def test_what_belongs_to_no_sample_is_passed_over(tmp_path, name):
    write_shard(tmp_path / "a.tar", [(name, b"x"), ("0.cls", b"1")])
    assert len(TarShards(tmp_path)) == 1


@pytest.mark.parametrize("pattern, names", [
    ("a.tar", ["a.tar"]),
    ("a-{0..2}.tar", ["a-0.tar", "a-1.tar", "a-2.tar"]),
    ("a-{008..010}.tar", ["a-008.tar", "a-009.tar", "a-010.tar"]),
    ("{2..0}{a,b}", ["2a", "2b", "1a", "1b", "0a", "0b"]),
    ("x{a,{1..2}b,}", ["xa", "x1b", "x2b", "x"]),
    ("{a}{", ["{a}{"]),
    ("{{1..2}}", ["{1}", "{2}"]),
])  # fmt: skip
def test_braces_are_expanded_as_shells_do(pattern, names):
    assert list(expand_braces(pattern)) == names


def test_braces_are_expanded_as_webdataset_does():
    braceexpand = pytest.importorskip("braceexpand").braceexpand
    for pattern in ("train-{000000..000012}.tar", "{train,val}-{0..11}.tar", "{00..3}", "{a,b{1..3}}c{x,y}", "{9..11}"):
        assert list(expand_braces(pattern)) == list(braceexpand(pattern))


@pytest.mark.parametrize("shards, reason", [
    ("gs://bucket/train-{0..9}.tar", "gs://bucket/train-.* is neither a file nor s3://.*: mount the bucket"),
    ("pipe:cat a.tar", "is neither a file"),
    ([], "the list of shards is empty"),
    (5, "not 5"),
    ([5], "expected str"),
    ("{0..9999999999}", "more than 1000000"),
])  # fmt: skip
def test_what_names_no_files_is_refused(shards, reason):
    with pytest.raises((ValueError, TypeError), match=reason):
        shard_paths(shards)


def test_a_folder_a_list_and_a_pattern_are_the_same_shards(tmp_path, monkeypatch):
    for name in ("b.tar", "a.tar", "notes.txt", "c{1,2}.tar"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    want = [str(tmp_path / name) for name in ("a.tar", "b.tar", "c{1,2}.tar")]
    assert shard_paths(tmp_path) == shard_paths(["{a,b}.tar", tmp_path / "c{1,2}.tar"]) == want
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="no files"):
        shard_paths("empty")


def test_a_sample_by_its_number(tmp_path):
    write_shard(tmp_path / "a.tar", MEMBERS[:8])
    dataset = TarShards(tmp_path, transform=lambda image: image.size, target_transform=lambda label: label * 2)
    assert len(dataset) == 3 and dataset[0] == ((7, 5), 10) and dataset[-2] == dataset[numpy.int64(1)] == ((7, 5), 34)
    for outside in (3, -4):
        with pytest.raises(IndexError):
            dataset[outside]
    with pytest.raises(TypeError):
        dataset["0"]


def test_a_sample_without_a_field_is_named(tmp_path):
    write_shard(tmp_path / "a.tar", MEMBERS[:4] + [("x/7.jpg", picture("JPEG"))])
    dataset = TarShards(tmp_path)
    assert dataset[0][1] == 5
    with pytest.raises(ShardError, match=r"a\.tar: sample 'x/7' has none of cls"):
        dataset[1]


@pytest.mark.parametrize("members, message", [
    ([("a/1.jpg", b"no image"), ("a/1.cls", b"1")], r"a\.tar: a/1\.jpg at offset 512: cannot identify"),
    ([("a/1.jpg", picture("JPEG", size=(99, 99))[:400]), ("a/1.cls", b"1")], r"a/1\.jpg at offset 512: "),
    ([("a/1.jpg", b""), ("a/1.cls", b"1")], r"a/1\.jpg at offset 512: cannot identify"),
    ([("a/1.jpg", picture("JPEG")), ("a/1.cls", b"cat")], r"a/1\.cls at offset \d+: invalid literal"),
    ([("a/1.jpg", picture("JPEG")), ("a/1.cls", b"")], r"a/1\.cls at offset \d+: invalid literal"),
])  # fmt: skip
def test_a_damaged_member_is_named_with_its_place(tmp_path, members, message):
    write_shard(tmp_path / "a.tar", members)
    with pytest.raises(ShardError, match=message):
        TarShards(tmp_path)[0]


def special(name, kind, target=""):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def test_links_and_folders_are_no_samples(tmp_path):
    others = [special("a/1.jpg", tarfile.SYMTYPE, "/etc/passwd"), special("a/2.jpg", tarfile.LNKTYPE, "a/0.jpg"), special("b", tarfile.DIRTYPE)]
    write_shard(tmp_path / "a.tar", [("a/0.jpg", picture("JPEG")), *others, ("a/0.cls", b"3")])
    assert len(TarShards(tmp_path)) == 1 and TarShards(tmp_path)[0][1] == 3


def whole(tmp_path):
    return write_shard(tmp_path / "whole.tar", [("0.jpg", b"x" * 1000), ("0.cls", b"1"), ("1.jpg", b"y" * 3000), ("1.cls", b"2")]).read_bytes()


def with_header(data, at, **changes):
    """The header at an offset, with other fields."""
    header = tarfile.TarInfo.frombuf(data[at : at + 512], "utf-8", "strict")
    for name, value in changes.items():
        setattr(header, name, value)
    return data[:at] + header.tobuf(tarfile.GNU_FORMAT) + data[at + 512 :]


SECOND = 512 + 1024 + 1024  # The header of 1.jpg, and what is said of each damage.
DAMAGES = {
    "an empty file": (lambda data: b"", "damaged behind its start: empty file"),
    "no tar at all": (lambda data: b"<html>404 not found</html>" * 90, "damaged behind its start"),
    "gzip": (gzip.compress, "compressed with gzip, .* unpack it first"),
    "the last member is truncated": (lambda data: data[: SECOND + 2000], r"truncated, or lies: '1\.jpg' at offset 3072 has 3000 bytes, the shard 4560"),
    "a length that is too large": (lambda data: with_header(data, SECOND, size=2**40), r"'1\.jpg' at offset 3072 has 1099511627776 bytes"),
    "a length that ends in a sample": (lambda data: with_header(data, 0, size=100) + b"", r"damaged behind '0\.jpg' at offset 512: at offset 1024 is no header"),
    "a negative length": (lambda data: with_header(data, SECOND, size=-1024), "damaged behind '0.cls' at offset 2048"),
    # The tarfile of Python 3.13.5 takes it for no header.
    "a length just below zero": (lambda data: with_header(data, SECOND, size=-100), "damaged behind '0.cls' at offset 2048: (a member of negative length|at offset 2560 is no header)"),
    "a header with a bit flipped": (lambda data: data[: SECOND + 3] + b"!" + data[SECOND + 4 :], r"behind '0\.cls' at offset 2048: at offset 2560"),
    "a name that is absurdly long": (lambda data: data[:SECOND] + with_header(data, SECOND, type=tarfile.GNUTYPE_LONGNAME, size=2**33)[SECOND:], "a name or a note of"),
    "names without end": (lambda data: b"".join(with_header(data, 0, type=tarfile.GNUTYPE_LONGNAME, size=5)[:1024] for _ in range(3000)), "damaged behind its start"),
    "a header that is cut": (lambda data: data[: SECOND + 100], "at offset 2560 is no header"),
    "sparse": (lambda data: with_header(data, SECOND, type=tarfile.GNUTYPE_SPARSE), "is a sparse file"),
    "the same twice": (lambda data: with_header(data, SECOND, name="0.jpg"), r"'0\.jpg' at offset 3072 is the second"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGES)
def test_a_damaged_shard_is_refused_with_the_place(tmp_path, case):
    damage, message = DAMAGES[case]
    (tmp_path / "damaged.tar").write_bytes(damage(whole(tmp_path)))
    with pytest.raises(ShardError, match=message) as caught:
        TarShards(tmp_path / "damaged.tar")
    assert str(tmp_path / "damaged.tar") in str(caught.value)


def test_a_shard_that_ends_without_its_last_blocks_is_whole(tmp_path):
    """As tarfile and WebDataset see it."""
    (tmp_path / "a.tar").write_bytes(whole(tmp_path)[: SECOND + 512 + 3072 + 1024])
    assert len(TarShards(tmp_path / "a.tar")) == 2


def test_whatever_the_bytes_are_a_shard_is_refused_or_its_samples_lie_within_it(tmp_path):
    good, draw, readable = whole(tmp_path), random.Random(3), 0
    path = str(tmp_path / "mutated.tar")
    for _ in range(500):
        data = bytearray(good)
        for _ in range(draw.randint(1, 4)):
            at = draw.choice((0, 1536, SECOND, SECOND + 512 + 3072)) + draw.randrange(512)
            data[at] = draw.choice((0, 0x80, 0xFF, 0x37, ord("S"), ord("L"), ord("x"), draw.randrange(256)))
            if draw.random() < 0.7:  # A header whose sum is right is looked at further.
                header = at - at % 512
                data[header + 148 : header + 156] = b" " * 8
                data[header + 148 : header + 156] = b"%06o\0 " % sum(data[header : header + 512])
        with open(path, "wb") as file:
            file.write(data)
        try:
            index = scan(path)
        except ShardError:
            continue
        readable += 1
        assert ((index.offset >= 0) & (index.nbytes >= 0) & (index.offset + index.nbytes <= len(data))).all()
    assert readable > 20


def test_a_member_larger_than_any_sample_is_refused_before_it_is_read(tmp_path):
    header = tarfile.TarInfo("0.jpg")
    header.size = 2**30 + 1
    with open(tmp_path / "a.tar", "wb") as file:
        file.write(header.tobuf(tarfile.GNU_FORMAT))
        file.truncate(512 + 2**30 + 512)
    with pytest.raises(ShardError, match=r"0\.jpg at offset 512: has 1073741825 bytes, more than"):
        TarShards(tmp_path, fields=("jpg",))[0]


def test_a_shard_that_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        TarShards(tmp_path / "missing.tar")
    os.mkfifo(tmp_path / "pipe.tar")
    with pytest.raises(ShardError, match="is no regular file"):
        TarShards(tmp_path / "pipe.tar")


@pytest.fixture
def scans(monkeypatch):
    """The shards whose headers have been read."""
    seen = []

    def counting(path):
        seen.append(path)
        return scan(path)

    monkeypatch.setattr(index_files, "scan", counting)
    return seen


def test_an_index_is_made_once(tmp_path, scans):
    path = write_shard(tmp_path / "a.tar", MEMBERS)
    path.chmod(0o640)
    first = TarShards(tmp_path)
    assert scans == [str(path)] and oct((tmp_path / "a.tar.sluice-index").stat().st_mode & 0o777) == "0o640"
    again = TarShards(tmp_path, fields=(IMAGE, "cls", KEY))
    assert len(scans) == 1 and [sample[1] for sample in again] == [sample[1] for sample in first]
    assert sorted(os.listdir(tmp_path)) == ["a.tar", "a.tar.sluice-index"]


@pytest.mark.parametrize("change", ["size", "time"])
def test_a_replaced_shard_is_indexed_again_and_not_read_by_the_old_index(tmp_path, scans, change):
    path = write_shard(tmp_path / "a.tar", [("0.jpg", picture("JPEG")), ("0.cls", b"1")])
    old = TarShards(tmp_path)
    write_shard(path, [("0.jpg", picture("JPEG")), ("0.cls", b"2")] + ([("1.txt", b"x" * 20_000)] if change == "size" else []))
    before = path.stat()
    os.utime(path, ns=(before.st_atime_ns, old.states[0].modified_ns + (change == "time")))
    assert TarShards(tmp_path)[0][1] == 2 and len(scans) == 2
    with pytest.raises(ShardError, match=r"a\.tar has changed since its index was made"):
        old[0]


@pytest.mark.parametrize("damage", [
    lambda data: b"", lambda data: data[:-1], lambda data: data[:70] + b"!" + data[71:], lambda data: b"sluice0\n" + data[8:], lambda data: data + b"x",
])  # fmt: skip
def test_a_damaged_index_is_made_anew(tmp_path, scans, damage):
    write_shard(tmp_path / "a.tar", MEMBERS)
    want = [sample[1] for sample in TarShards(tmp_path)]
    index = tmp_path / "a.tar.sluice-index"
    good = index.read_bytes()
    index.write_bytes(damage(good))
    assert [sample[1] for sample in TarShards(tmp_path)] == want
    assert len(scans) == 2 and index.read_bytes() == good


def test_an_index_that_lies_is_made_anew(tmp_path, scans):
    """Others may write to the folder: whatever they write, no byte outside the shard is read."""
    path = write_shard(tmp_path / "a.tar", MEMBERS)
    index = scan(str(path))
    for column, value in (("offset", 2**40), ("offset", -1), ("nbytes", -5), ("nbytes", 2**62), ("sample", 77), ("extension", 77)):
        lying = index.__dict__ | {column: getattr(index, column).copy()}
        lying[column][0] = numpy.array(value).astype(lying[column].dtype)
        (tmp_path / "a.tar.sluice-index").write_bytes(index_files._encode(shard_index.ShardIndex(**lying)))
        scans.clear()
        assert len(TarShards(tmp_path)) == 5 and len(scans) == 1, (column, value)


def test_where_the_folder_cannot_be_written_the_index_is_among_the_users_cached_files(tmp_path, scans, monkeypatch, caplog):
    write_shard(tmp_path / "a.tar", MEMBERS)
    (tmp_path / "a.tar.sluice-index").mkdir()  # In the way, also of root.
    for _ in range(2):
        assert len(TarShards(tmp_path / "a.tar")) == 5
    assert len(scans) == 1 and len(os.listdir(tmp_path / "cache/sluice/shards")) == 1 and not caplog.messages
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    for _ in range(2):
        assert len(TarShards(tmp_path / "a.tar")) == 5
    assert len(scans) == 3 and len(caplog.messages) == 1 and "cannot be kept" in caplog.text
    assert not [name for name in os.listdir(tmp_path) if name.startswith("tmp")]


def test_nothing_but_headers_and_class_numbers_is_read(tmp_path, monkeypatch):
    write_shard(tmp_path / "a.tar", [("0.jpg", b"x" * 10_000_000), ("0.cls", b"7"), ("0.json", json.dumps([1] * 5000).encode())])
    read = []

    class Counted(shard_index._HeaderBytes):
        def read(self, count):
            read.append(count)
            return super().read(count)

    monkeypatch.setattr(shard_index, "_HeaderBytes", Counted)
    scan(str(tmp_path / "a.tar"))
    assert sum(read) < 5000


def test_indexing_keeps_no_headers(tmp_path):
    write_shard(tmp_path / "a.tar", [(f"{sample}.{kind}", b"1") for sample in range(1000) for kind in ("jpg", "cls")])
    tracemalloc.start()
    try:
        scan(str(tmp_path / "a.tar"))
        assert tracemalloc.get_traced_memory()[1] < 600_000  # 31 bytes a member, and the keys. A header takes a kilobyte.
    finally:
        tracemalloc.stop()


def test_no_descriptor_stays_open_and_a_pickle_is_as_small_as_its_columns(tmp_path):
    for number in range(20):
        write_shard(tmp_path / f"{number}.tar", [(f"{sample}.{kind}", b"1") for sample in range(100) for kind in ("jpg", "cls")])
    before = len(os.listdir("/proc/self/fd"))
    dataset = TarShards(tmp_path, fields=("cls",))
    assert sum(label for label, in dataset) == 2000
    assert len(os.listdir("/proc/self/fd")) == before
    buffers = []
    in_band = pickle.dumps(dataset, protocol=5, buffer_callback=buffers.append)
    assert len(in_band) < 200 * 20 and sum(buffer.raw().nbytes for buffer in buffers) < 2000 * 30


@pytest.mark.parametrize("fields", [(), ("",), ("jpg;",), (5,)])
def test_fields_that_name_nothing_are_refused(tmp_path, fields):
    with pytest.raises(ValueError, match="fields are extensions"):
        TarShards(tmp_path, fields=fields)


def test_images_of_a_folder_keep_their_order(image_root, tmp_path):
    dataset = TarShards(shards_of_images(image_root, tmp_path / "shards"), fields=(KEY, "cls"))
    assert [label for _, label in dataset] == sorted(label for _, label in dataset) and len(dataset) == 23
    assert len({key for key, _ in dataset}) == 23


def test_the_example_of_the_user_guide(image_root, tmp_path, monkeypatch):
    guide = (Path(__file__).resolve().parents[2] / "docs/user-guide.md").read_text()
    example = next(body for body in re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL) if "TarShards" in body)
    shards_of_images(image_root, tmp_path / "data", each=6)
    for number in range(4):
        (tmp_path / f"data/train-{number:03d}.tar").rename(tmp_path / f"data/train-{number:06d}.tar")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", "/run/sluice/feeder.sock")  # Nothing is started: the loader only says what it would do.
    names = {"train_transform": transforms.Compose([transforms.RandomResizedCrop(32), transforms.ToTensor()])}
    exec(example, names)
    assert names["image"].shape == (3, 32, 32) and names["label"] == 1
    assert names["loader"].explain().startswith("executor: native")
