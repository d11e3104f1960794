"""XXH64, the hash that tells events without ids apart, and the texts of the ids that are made with it.

References
----------
.. [1] "xxHash fast digest algorithm", doc/xxhash_spec.md, version 0.1.1, of the reference
   implementation. Ids must be the same on every machine and in every release, so that the algorithm is spelt
   out here.
"""

from __future__ import annotations

import numpy as np

from whimbrel.space.kernels.jit import kernel

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_BEYOND_INT64 = 2.0**63


@kernel
def _turned(h, bits):
    return (h << np.uint64(bits)) | (h >> np.uint64(64 - bits))


@kernel
def _scattered(h):
    h ^= h >> np.uint64(33)
    h *= _P2
    h ^= h >> np.uint64(29)
    h *= _P3
    return h ^ (h >> np.uint64(32))


@kernel
def _with_eight_bytes(h, word):
    return _turned(h ^ (_turned(word * _P2, 31) * _P1), 27) * _P1 + _P4


@kernel
def _little_endian(data, at, size):
    word = np.uint64(0)
    for n in range(size):
        word |= np.uint64(data[at + n]) << np.uint64(8 * n)
    return word


@kernel
def _long_part(data, at, last, seed):
    """Take in 32 bytes at a time, in four lanes; give the hash so far and where the rest begins."""
    a, b, c, d = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
    while at + 32 <= last:
        a = _turned(a + _little_endian(data, at, 8) * _P2, 31) * _P1
        b = _turned(b + _little_endian(data, at + 8, 8) * _P2, 31) * _P1
        c = _turned(c + _little_endian(data, at + 16, 8) * _P2, 31) * _P1
        d = _turned(d + _little_endian(data, at + 24, 8) * _P2, 31) * _P1
        at += 32
    h = _turned(a, 1) + _turned(b, 7) + _turned(c, 12) + _turned(d, 18)
    for lane in (a, b, c, d):
        h = (h ^ (_turned(lane * _P2, 31) * _P1)) * _P1 + _P4
    return h, at


@kernel
def hash_bytes(offsets, data, seed, found):
    """Give the XXH64 of every stretch of bytes."""
    for i in range(found.size):
        at, last = offsets[i], offsets[i + 1]
        size = np.uint64(last - at)
        h = seed + _P5
        if last - at >= 32:
            h, at = _long_part(data, at, last, seed)
        h += size
        while at + 8 <= last:
            h = _with_eight_bytes(h, _little_endian(data, at, 8))
            at += 8
        if at + 4 <= last:
            h = _turned(h ^ (_little_endian(data, at, 4) * _P1), 23) * _P2 + _P3
            at += 4
        while at < last:
            h = _turned(h ^ (np.uint64(data[at]) * _P5), 11) * _P1
            at += 1
        found[i] = _scattered(h)


@kernel
def mix_in_numbers(bits, is_float, missing, seed, into):
    """Combine the hash of every number with what is there; one that is missing changes nothing.

    Floats come as their bits. One that is whole and fits counts as the whole number, so that 5 and 5.0 agree.
    """
    floats = bits.view(np.float64)
    for i in range(into.size):
        if missing.size and missing[i]:
            continue
        word = np.uint64(bits[i])
        if is_float:
            value = floats[i]
            if np.floor(value) == value and -_BEYOND_INT64 <= value < _BEYOND_INT64:
                word = np.uint64(np.int64(value))
        into[i] ^= _scattered(_with_eight_bytes(seed + _P5 + np.uint64(8), word))


@kernel
def _digits(value):
    """Count the characters of a number, a minus included."""
    size = 1
    rest = np.uint64(value)
    if value < 0:
        rest = np.uint64(0) - rest
        size = 2
    while rest >= np.uint64(10):
        rest //= np.uint64(10)
        size += 1
    return size


@kernel
def _write_digits(out, last, value, size):
    """Write a number so that it ends before `last`, with zeros in front up to `size` digits."""
    rest = np.uint64(value)
    if value < 0:
        rest = np.uint64(0) - rest
    at = last
    while rest > np.uint64(0) or last - at < size:
        at -= 1
        out[at] = np.uint8(48 + np.int64(rest % np.uint64(10)))
        rest //= np.uint64(10)
    if value < 0:
        out[at - 1] = np.uint8(45)


@kernel
def sizes_of_ids(sources, source_offsets, types, type_offsets, start, end, number, offsets):
    """Find where the texts of ids begin: `source:times:content:number:type`."""
    for i in range(start.size):
        # Four colons and sixteen hexadecimal digits.
        size = 20 + max(6, _digits(number[i])) + _digits(end[i])
        if start[i] != end[i]:
            size += 1 + _digits(start[i])
        size += source_offsets[sources[i] + 1] - source_offsets[sources[i]]
        offsets[i + 1] = offsets[i] + size + type_offsets[types[i] + 1] - type_offsets[types[i]]


@kernel
def _copied(data, offsets, code, out, at):
    for place in range(offsets[code], offsets[code + 1]):
        out[at] = data[place]
        at += 1
    return at


@kernel
def write_ids(
    sources, source_offsets, source_data, types, type_offsets, type_data, start, end, content, number,
    offsets, out,
):  # fmt: skip
    """Write the texts of ids where `sizes_of_ids` has made room for them."""
    for i in range(start.size):
        at = _copied(source_data, source_offsets, sources[i], out, offsets[i])
        out[at] = np.uint8(58)
        at += 1
        if start[i] != end[i]:
            at += _digits(start[i])
            _write_digits(out, at, start[i], 1)
            out[at] = np.uint8(45)
            at += 1
        at += _digits(end[i])
        _write_digits(out, at, end[i], 1)
        out[at] = np.uint8(58)
        at += 1
        for place in range(16):
            digit = np.int64((np.uint64(content[i]) >> np.uint64(60 - 4 * place)) & np.uint64(15))
            out[at + place] = np.uint8(48 + digit if digit < 10 else 87 + digit)
        out[at + 16] = np.uint8(58)
        at += 17 + max(6, _digits(number[i]))
        _write_digits(out, at, number[i], 6)
        out[at] = np.uint8(58)
        _copied(type_data, type_offsets, types[i], out, at + 1)
