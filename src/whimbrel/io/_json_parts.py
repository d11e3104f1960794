"""Cut large JSON documents into their parts without holding them: block by block, with array operations.

A list becomes a stream with one element a line, which is what the reader of JSON lines takes. An object
becomes its skeleton (`{"now": 3, "aircraft": []}`), the places of the lists and objects in it told apart.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from whimbrel.errors import DataError

_BLOCK = 4 * 2**20
_LARGEST_SKELETON = 64 * 2**20
_NOT_CLOSED = b"(the file ends before the list does)"
_KINDS = np.zeros(256, "u1")
"""Which bytes matter: brackets, commas, quotes and backslashes."""
_KINDS[[ord(letter) for letter in '{}[],"\\']] = 1

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]


class Scan:
    """Finds brackets and commas outside texts, and how deep they stand, in one block after another."""

    def __init__(self) -> None:
        self.depth = 0
        self._in_text = False

    def feed(self, data: Bytes) -> tuple[Places, Bytes, Places]:
        """Return the places in the block, the characters, and the depth behind each of them.

        A block must not end in a backslash, which says something about the byte behind it.
        """
        places = np.flatnonzero(_KINDS[data])
        letters = data[places]
        is_quote = letters == ord('"')
        is_backslash = letters == ord("\\")
        if is_backslash.any():
            is_quote &= ~_is_escaped(places, is_backslash)
        inside = (np.cumsum(is_quote) - is_quote + self._in_text) % 2 == 1
        self._in_text = bool((np.count_nonzero(is_quote) + self._in_text) % 2)
        counts = ~inside & (letters != ord('"')) & ~is_backslash
        places, letters = places[counts], letters[counts]
        opens = (letters == ord("{")) | (letters == ord("["))
        closes = (letters == ord("}")) | (letters == ord("]"))
        depths = self.depth + np.cumsum(opens.astype("i8") - closes)
        self.depth = int(depths[-1]) if len(depths) else self.depth
        return places, letters, depths


def _is_escaped(places: Places, is_backslash: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Tell which of the places stand behind an odd number of backslashes."""
    slashes = places[is_backslash]
    starts = np.flatnonzero(np.diff(slashes, prepend=-2) != 1)
    lengths = np.diff(starts, append=len(slashes))
    behind = slashes[starts + lengths - 1] + 1
    return np.isin(places, behind[lengths % 2 == 1])


def read_block(stream: IO[bytes], size: int = _BLOCK) -> bytes:
    """Read a block that does not end in a backslash; nothing at the end."""
    data = stream.read(size)
    while data.endswith(b"\\") and (more := stream.read(1)):
        data += more
    return data


class ListLines(io.RawIOBase):
    """The elements of a JSON list, one a line, from a stream that stands behind the opening bracket.

    What follows the list is one more line if the list is the whole document; so is a word on a list that is
    never closed, so that neither is lost.
    """

    def __init__(self, stream: IO[bytes], *, is_whole: bool) -> None:
        self._stream = stream
        self._is_whole = is_whole
        self._scan = Scan()
        self._pending = memoryview(b"")
        self._at_end = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._pending and not self._at_end:
            self._pending = memoryview(self._next())
        data, self._pending = self._pending[: len(buffer)], self._pending[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def _next(self) -> bytes:
        block = read_block(self._stream)
        if not block:
            self._at_end = True
            return b"\n" + (_NOT_CLOSED + b"\n" if self._scan.depth == 0 else b"")
        data = np.frombuffer(block, "u1").copy()
        places, letters, depths = self._scan.feed(data)
        data[(data == ord("\n")) | (data == ord("\r"))] = ord(" ")
        ends = np.flatnonzero(depths < 0)
        stop = int(ends[0]) if len(ends) else len(places)
        data[places[:stop][(letters[:stop] == ord(",")) & (depths[:stop] == 0)]] = ord("\n")
        if not len(ends):
            return data.tobytes()
        self._at_end = True
        end = int(places[stop])
        return data[:end].tobytes() + b"\n" + self._rest(block[end + 1 :])

    def _rest(self, found: bytes) -> bytes:
        if not self._is_whole:
            return b""
        rest = (found + self._stream.read(200)).strip()[:200].replace(b"\n", b" ")
        return rest + b"\n" if rest else b""

    def close(self) -> None:
        self._stream.close()
        super().close()


@dataclass(frozen=True)
class JsonMember:
    """A member of an object: a plain value, or where its list or object begins in the unpacked text."""

    name: str
    value: Any = None
    opening: str = ""
    """`[` or `{` for a list or an object."""
    start: int = 0
    """The place behind the opening bracket."""
    holds: str = ""
    """What the list begins with: `{`, `[`, or nothing if it is empty or holds plain values."""


def members_of(stream: IO[bytes]) -> tuple[list[JsonMember], bytes]:
    """Return the members of the object in a stream, and the first bytes that follow it.

    An object that is cut off has the members up to there.

    Raises
    ------
    DataError
        If it is not JSON.
    """
    skeleton = _Skeleton()
    while block := read_block(stream):
        if rest := skeleton.feed(block):
            return skeleton.members(), (rest + stream.read(200)).strip()[:200]
    return skeleton.members(), b""


class _Skeleton:
    """What stands on the first level of an object."""

    def __init__(self) -> None:
        self._scan = Scan()
        self._parts: list[bytes] = []
        self._size = 0
        self._read = 0
        self._nested: list[list[Any]] = []
        self._is_first = False
        self._is_closed = False

    def feed(self, block: bytes) -> bytes:
        """Take a block; return what follows the object if it ends here, at least a blank."""
        kept = 0
        before = self._scan.depth
        is_open = before > 1
        places, letters, depths = self._scan.feed(np.frombuffer(block, "u1"))
        previous = np.concatenate([[before], depths[:-1]]) if len(depths) else depths
        turns = (depths <= 0) | ((depths == 2) & (previous == 1)) | ((depths == 1) & (previous == 2))
        if self._is_first and len(depths):
            self._note_first(letters[0])
        for turn in np.flatnonzero(turns).tolist():
            place, depth = int(places[turn]), int(depths[turn])
            if depth <= 0:
                self._keep(block[kept : place + 1])
                self._is_closed = True
                return block[place + 1 :] or b" "
            if depth == 2:
                self._keep(block[kept : place + 1])
                self._nested.append([chr(letters[turn]), self._read + place + 1, ""])
                self._is_first, is_open = True, True
                if turn + 1 < len(letters):
                    self._note_first(letters[turn + 1])
            else:
                kept, is_open = place, False
        if not is_open:
            self._keep(block[kept:])
        self._read += len(block)
        return b""

    def _note_first(self, letter: int) -> None:
        self._nested[-1][2] = chr(letter) if chr(letter) in "{[" else ""
        self._is_first = False

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size > _LARGEST_SKELETON:
            raise DataError("this JSON object is too large; use a list of objects, or JSON lines (.jsonl)")

    def members(self) -> list[JsonMember]:
        text = b"".join(self._parts).decode()
        if not self._is_closed:
            text = _closed(text, self._scan.depth, self._nested)
        try:
            pairs = json.loads(text, object_pairs_hook=_Pairs)
        except (ValueError, RecursionError) as error:
            raise DataError(f"the file is not JSON: {error}") from error
        nested = iter(self._nested)
        return [_member(name, value, nested) for name, value in pairs]


class _Pairs(list[tuple[str, Any]]):
    """An object as it is written."""


def _closed(text: str, depth: int, nested: list[list[Any]]) -> str:
    """Close the brackets of an object that is cut off."""
    if depth == 1 or not nested:
        return text
    return text + {"[": "]", "{": "}"}[nested[-1][0]] + "}"


def _member(name: str, value: Any, nested: Any) -> JsonMember:
    if not isinstance(value, list):  # pairs of an inner object are a list, too
        return JsonMember(name, value)
    opening, start, holds = next(nested)
    return JsonMember(name, None, opening, start, holds)
