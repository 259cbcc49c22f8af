"""An object as a file that is read from front to back, with gaps."""

from __future__ import annotations

from sluice.stores.object_reader import ObjectReader, ObjectState, Range

_BLOCK_BYTES = 1 << 20


class ObjectFile:
    """Reads by blocks and keeps the last one: headers of small members share a request. Not thread-safe."""

    def __init__(self, reader: ObjectReader, url: str, state: ObjectState) -> None:
        self._reader, self._url, self._state = reader, url, state
        self._position = self._begin = 0
        self._block = b""

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int) -> None:
        self._position = offset

    def read(self, count: int) -> bytes:
        """Less than `count` only at the end of the object. Raises ObjectError."""
        count = max(0, min(count, self._state.nbytes - self._position))
        if not (self._begin <= self._position and self._position + count <= self._begin + len(self._block)):
            self._begin = self._position
            nbytes = min(max(count, _BLOCK_BYTES), self._state.nbytes - self._begin) if count else 0
            self._block = self._reader.read(Range(self._url, self._state, self._begin, nbytes))
        begin = self._position - self._begin
        self._position += count
        return self._block[begin : begin + count]
