"""PNG files of every kind: colour type, depth, filters, interlacing. Random bytes behind any filter are pixels."""

import random
import struct
import zlib

GREY, RGB, PALETTE, GREY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
SAMPLES = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGB_ALPHA: 4}
# All but 16 bits of grey.
KINDS = [(colour, depth) for colour in (GREY, PALETTE) for depth in (1, 2, 4, 8)] + [
    (colour, depth) for colour in (RGB, GREY_ALPHA, RGB_ALPHA) for depth in (8, 16)
]
_PASSES = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def rows_of(size, colour, depth, interlaced=False, seed=1):
    """The rows behind their filters, not compressed. `size` is (width, height)."""
    generator = random.Random(seed)
    width, height = size
    rows = []
    for top, left, down, right in _PASSES if interlaced else [(0, 0, 1, 1)]:
        columns = (width - left + right - 1) // right
        if columns <= 0:
            continue
        row_bytes = (columns * SAMPLES[colour] * depth + 7) // 8
        rows += [bytes([generator.randrange(5)]) + generator.randbytes(row_bytes) for _ in range(top, height, down)]
    return b"".join(rows)


def around(size, colour, depth, stream, interlaced=False, before=(), behind=(), chunk_bytes=1 << 20, colours=256):
    """A file around any stream. `before`, `behind`: chunks beside those of the rows."""
    parts = [b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", struct.pack(">IIBBBBB", *size, depth, colour, 0, 0, interlaced))]
    if colour == PALETTE:
        parts.append(chunk(b"PLTE", b"".join(bytes((n * 7 % 256, n * 31 % 256, 255 - n)) for n in range(min(colours, 1 << depth)))))
    parts += before
    parts += [chunk(b"IDAT", stream[at : at + chunk_bytes]) for at in range(0, len(stream), chunk_bytes)]
    return b"".join([*parts, *behind, chunk(b"IEND", b"")])


def png(size, colour=RGB, depth=8, interlaced=False, seed=1, **options):
    return around(size, colour, depth, zlib.compress(rows_of(size, colour, depth, interlaced, seed), 1), interlaced, **options)
