#!/usr/bin/env python3
"""The demo's object store: photographs in tar shards, behind one slow link.

    store.py FOLDER --photographs 400 --port 9000

FOLDER is in ImageFolder's layout. The class of a photograph is its number, so that a training can count each of them. GET /reads answers a JSON list of what
was read so far, [time, address of the reader, bytes], and /objects the pattern of the shards' paths and how many bytes they have together.
"""

import argparse
import asyncio
import io
import json
import pathlib
import tarfile
import time

from paced_store import PacedStore, path_of

SHARDS = 4
PATH = "/photographs/%s.tar"
MEGABYTES_PER_SECOND = 20
LATENCY_SECONDS = 0.05
MOST_READS = 1_000_000  # are told; of more the newest are


class PhotographStore(PacedStore):
    def __init__(self, objects, **arguments):
        super().__init__(objects, **arguments)
        self.reads = []

    def begin(self, transport, head):
        path = path_of(head)
        if path == b"/reads":
            return tell(transport, self.reads)
        if path == b"/objects":
            return tell(transport, {"pattern": PATH % f"{{0..{SHARDS - 1}}}", "bytes": sum(len(data) for data, _ in self.objects.values())})
        nbytes = super().begin(transport, head)
        self.reads.append([round(time.time(), 3), transport.get_extra_info("peername")[0], nbytes])
        del self.reads[:-MOST_READS]
        return nbytes


def tell(transport, value):
    text = json.dumps(value).encode()
    transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text)


def shards_of(folder, photographs):
    """By path: tar files in memory. Every n-th photograph of the folder, so that all classes are there."""
    files = sorted(pathlib.Path(folder).glob("*/*.jpg"))
    chosen = files[:: max(1, len(files) // photographs)][:photographs]
    part = -(-len(chosen) // SHARDS)
    return {PATH % number: shard(range(number * part, min(len(chosen), (number + 1) * part)), chosen) for number in range(SHARDS)}


def shard(numbers, files):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for number in numbers:
            for extension, data in (("jpg", files[number].read_bytes()), ("cls", str(number).encode())):
                member = tarfile.TarInfo(f"{number:06d}.{extension}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return made.getvalue()


async def serve(store, port):
    async with await store.listen("0.0.0.0", port) as server:
        await server.serve_forever()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--photographs", type=int, required=True)
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    store = PhotographStore(shards_of(arguments.folder, arguments.photographs), latency_seconds=LATENCY_SECONDS,
                            bytes_per_second=MEGABYTES_PER_SECOND * 1e6)  # fmt: skip
    asyncio.run(serve(store, arguments.port))


if __name__ == "__main__":
    main()
