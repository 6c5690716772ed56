"""How CatBoost knows categories: by 32 bits of the CityHash of their text.

CityHash64, version 1 (Geoff Pike and Jyrki Alakuijala, 2011), on the text in UTF-8; CatBoost keeps
the lower half. Tables of statistics are keyed by that half, sign-extended and multiplied twice.
"""

from __future__ import annotations

_ALL = 2**64 - 1
_K0, _K1, _K2, _K3 = (
    0xC3A5C85C97CB3127,
    0xB492B66FBE98F273,
    0x9AE16A3B2F90404F,
    0xC949D7C7509E6557,
)
_MULTIPLIER = 0x9DDFEA08EB382D69
TABLE_FACTOR = 0x4906BA494954CB65
_FROM_TABLE_KEY = pow(TABLE_FACTOR, -2, 2**64)

Two = tuple[int, int]


def category_hash(text: str) -> int:
    """Return the number by which CatBoost knows a category, ``0 <= number < 2**32``.

    Example:
        >>> category_hash("a"), category_hash("")
        (3489901818, 797982799)
    """
    return _city_hash(text.encode("utf-8", "surrogatepass")) & (2**32 - 1)


def hash_of_key(key: int) -> int:
    """Return the category that a table of statistics of one feature has under a key."""
    return key * _FROM_TABLE_KEY & (2**32 - 1)


def key_of_hash(number: int) -> int:
    """Return the key of a category in a table of statistics of one feature."""
    signed = number - 2**32 if number >= 2**31 else number
    return signed * TABLE_FACTOR * TABLE_FACTOR & _ALL


def _city_hash(data: bytes) -> int:
    if len(data) <= 16:
        return _up_to_16(data)
    if len(data) <= 32:
        return _up_to_32(data)
    return _up_to_64(data) if len(data) <= 64 else _longer(data)


def _word(data: bytes, begin: int, size: int = 8) -> int:
    """Return the integer that begins there; a negative place counts from the end."""
    begin += len(data) if begin < 0 else 0
    return int.from_bytes(data[begin : begin + size], "little")


def _rotated(value: int, by: int) -> int:
    value &= _ALL
    return (value >> by | value << (64 - by)) & _ALL


def _mixed(value: int) -> int:
    value &= _ALL
    return value ^ value >> 47


def _joined(low: int, high: int) -> int:
    low, high = low & _ALL, high & _ALL
    first = _mixed((low ^ high) * _MULTIPLIER)
    return _mixed((high ^ first) * _MULTIPLIER) * _MULTIPLIER & _ALL


def _up_to_16(data: bytes) -> int:
    n = len(data)
    if n > 8:
        last = _word(data, -8)
        return _joined(_word(data, 0), _rotated(last + n, n)) ^ last
    if n >= 4:
        return _joined(n + (_word(data, 0, 4) << 3), _word(data, -4, 4))
    if n == 0:
        return _K2
    first = data[0] + (data[n >> 1] << 8)
    second = n + (data[-1] << 2)
    return _mixed(first * _K2 ^ second * _K3) * _K2 & _ALL


def _up_to_32(data: bytes) -> int:
    a, b = _word(data, 0) * _K1, _word(data, 8)
    c, d = _word(data, -8) * _K2, _word(data, -16) * _K0
    low = _rotated(a - b, 43) + _rotated(c, 30) + d
    return _joined(low, a + _rotated(b ^ _K3, 20) - c + len(data))


def _up_to_64(data: bytes) -> int:
    def part(start: int, words: tuple[int, int, int]) -> Two:
        a, z = start, words[2]
        b, c = _rotated(a + z, 52), _rotated(a, 37)
        a += words[0]
        c += _rotated(a, 7)
        a += words[1]
        return a + z, b + _rotated(a, 31) + c

    start = _word(data, 0) + (len(data) + _word(data, -16)) * _K0
    v = part(start, (_word(data, 8), _word(data, 16), _word(data, 24)))
    start = _word(data, 16) + _word(data, -32)
    w = part(start, (_word(data, -24), _word(data, -16), _word(data, -8)))
    r = _mixed((v[0] + w[1]) * _K2 + (w[0] + v[1]) * _K0)
    return _mixed(r * _K0 + v[1]) * _K2 & _ALL


def _weak(data: bytes, begin: int, a: int, b: int) -> Two:
    """Return two numbers made of 32 bytes and two seeds."""
    w, x, y, z = (_word(data, begin + i) for i in (0, 8, 16, 24))
    a += w
    b = _rotated(b + a + z, 21)
    c = a
    a += x + y
    b += _rotated(a, 44)
    return (a + z) & _ALL, (b + c) & _ALL


def _longer(data: bytes) -> int:
    n = len(data)
    x, y, z = _word(data, 0), _word(data, -16) ^ _K1, _word(data, -56) ^ _K0
    v, w = _weak(data, n - 64, n, y), _weak(data, n - 32, n * _K1, _K0)
    z += _mixed(v[1]) * _K1
    x = _rotated(z + x, 39) * _K1 & _ALL
    y = _rotated(y, 33) * _K1 & _ALL
    for at in range(0, (n - 1) & ~63, 64):
        x = _rotated(x + y + v[0] + _word(data, at + 16), 37) * _K1 & _ALL
        y = _rotated(y + v[1] + _word(data, at + 48), 42) * _K1 & _ALL
        x ^= w[1]
        y ^= v[0]
        z = _rotated(z ^ w[0], 33)
        v = _weak(data, at, v[1] * _K1, x + w[0])
        w = _weak(data, at + 32, z + w[1], y)
        z, x = x, z
    low = _joined(v[0], w[0]) + _mixed(y) * _K1 + z
    return _joined(low, _joined(v[1], w[1]) + x)
