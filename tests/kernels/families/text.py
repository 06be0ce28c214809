"""Strings: case, joining, parts, numbers, patterns, hashes, n-grams and characters."""

import numpy as np
import tensorflow as tf
from make_vectors import Case

TEXTS = np.array([b"", b"The CAT sat.", b" a\tb  c ", "Caf\u00e9 \u65e5\u672c \U0001f600".encode(), b"x,y,,z", b"\xff\xc3(\xe2\x82x"],
                 object)
PLAIN = TEXTS[:5]
PATTERNS = [r'[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']', "a*", "(?i)(c)(a)?", r"\p{Lu}|\pN", r"\s+", "^.|.$", r"\b",
            "[^[:alpha:]]", "(x|y)+?", "", r"\x{e9}|\QT\Eh", "(a{1,2}|.){2}"]


def words(*items):
    return np.array([item.encode() for item in items], object)


def wholes():
    for op in ("StringLower", "StringUpper", "StringStrip"):
        yield Case(op, [TEXTS])
        yield Case(op, [np.array(b" Ab ", object)])
    yield Case("StringLower", [words("ABC", "d")], {"encoding": "utf-8"})
    for unit in ("BYTE", "UTF8_CHAR"):
        yield Case("StringLength", [TEXTS], {"unit": unit})
        for position, length in ((0, 3), (1, 100), (-2, 1)):
            yield Case("Substr", [TEXTS[1:5], np.int32(position), np.int32(length)], {"unit": unit})
        yield Case("Substr", [PLAIN[1:3], np.array([1, 2], np.int64), np.array([2, 0], np.int64)], {"unit": unit})
    yield Case("StringJoin", [words("a", "b"), words("c", "d"), np.array(b"!", object)], {"separator": "--"})
    yield Case("StringJoin", [np.array(b"a", object)])
    grid = words("a", "b", "c", "d", "e", "f").reshape(2, 3)
    for axes in ([0], [1], [0, 1], [1, 0], [-1]):
        yield Case("ReduceJoin", [grid, np.array(axes, np.int32)], {"separator": ".", "keep_dims": axes == [1]})
    yield Case("ReduceJoin", [grid, np.array(0, np.int32)])


def numbers():
    values = np.array([0, 1.5, -2.25, 1e10, 1 / 3])
    for dtype in (np.float32, np.float64):
        yield Case("AsString", [values.astype(dtype)])
        yield Case("AsString", [values.astype(dtype)], {"precision": 3, "scientific": True})
        yield Case("AsString", [values.astype(dtype)], {"shortest": True})
        yield Case("AsString", [values.astype(dtype)], {"precision": 2, "width": 9, "fill": "0"})
    for dtype in (np.int8, np.int16, np.int32, np.int64):
        yield Case("AsString", [np.array([-7, 0, 99], dtype)])
        yield Case("AsString", [np.array([-7, 0, 99], dtype)], {"width": 5, "fill": "+"})
    yield Case("AsString", [np.array([True, False])])
    for dtype in (tf.float32, tf.float64, tf.int32, tf.int64):
        yield Case("StringToNumber", [words("12", "-3", " 7 ")], {"out_type": dtype})
    yield Case("StringToNumber", [words("1.5e3", "inf", "-.25")])


def patterns():
    for pattern in PATTERNS:
        yield Case("StaticRegexReplace", [PLAIN], {"pattern": pattern, "rewrite": r"<\0>"})
        yield Case("StaticRegexReplace", [PLAIN], {"pattern": pattern, "rewrite": "", "replace_global": False})
        yield Case("StaticRegexFullMatch", [PLAIN], {"pattern": pattern})
    yield Case("RegexReplace", [PLAIN, np.array(rb"(\w)(\w)", object), np.array(rb"\2\\\1", object)])
    yield Case("RegexFullMatch", [PLAIN, np.array(rb"[a-z,]*", object)])


def hashes():
    texts = np.array([bytes(range(65, 65 + n % 60)) * (1 + n // 60) for n in (0, 1, 3, 4, 7, 8, 16, 17, 32, 33, 59)] +
                     [b"x" * n for n in (63, 64, 65, 128, 200)], object)
    yield Case("StringToHashBucketFast", [texts], {"num_buckets": 2**62})
    yield Case("StringToHashBucketFast", [texts], {"num_buckets": 7})
    yield Case("StringToHashBucket", [texts], {"num_buckets": 2**62})
    yield Case("StringToHashBucketStrong", [texts], {"num_buckets": 2**62, "key": [3, 2**61]})


def parts():
    for separator in ("", ",", " ", "at"):
        for most in (-1, 0, 1, 2):
            yield Case("StringSplitV2", [PLAIN, np.array(separator.encode(), object)], {"maxsplit": most})
    for delimiter in (" ", ", ", ""):
        for skips in (True, False):
            yield Case("StringSplit", [PLAIN, np.array(delimiter.encode(), object)], {"skip_empty": skips})
    yield Case("StringSplitV2", [np.zeros(0, object), np.array(b"", object)])
    tokens, splits = words("a", "bb", "c", "d", "e"), np.array([0, 3, 3, 4, 5], np.int64)
    for widths in ([1], [2], [1, 3], [4]):
        for pad in (-1, 0, 1):
            for short in (False, True):
                for kind in (np.int32, np.int64):
                    yield Case("StringNGrams", [tokens, splits.astype(kind)],
                               {"separator": "|", "ngram_widths": widths, "left_pad": "L", "right_pad": "RR",
                                "pad_width": pad, "preserve_short_sequences": short and pad >= 0})


def characters():
    for errors in ("replace", "ignore"):
        attrs = {"input_encoding": "UTF-8", "errors": errors}
        yield Case("UnicodeDecode", [TEXTS], attrs)
        yield Case("UnicodeDecodeWithOffsets", [TEXTS], attrs)
        yield Case("UnicodeTranscode", [TEXTS], {**attrs, "output_encoding": "UTF-8"})
    yield Case("UnicodeDecode", [PLAIN], {"input_encoding": "UTF-8", "errors": "strict", "replace_control_characters": True})
    bad = np.array([b"\xf0\x9f\x98a", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf5\x80", b"ab\xe2\x82"], object)
    yield Case("UnicodeDecode", [bad], {"input_encoding": "UTF-8"})
    points = np.array([65, 0xe9, 0x65e5, 0x1f600, 0xd800, 66, 0x110000], np.int32)
    for kind in (np.int32, np.int64):
        for errors in ("replace", "ignore"):
            yield Case("UnicodeEncode", [points, np.array([0, 2, 2, 7], kind)], {"output_encoding": "UTF-8", "errors": errors})


def cases():
    for part in (wholes, numbers, patterns, hashes, parts, characters):
        yield from part()
