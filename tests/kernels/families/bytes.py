"""Strings that hold numbers, base64 and sound."""

import numpy as np
import tensorflow as tf
from make_vectors import Case


def _wav(channels, samples, *chunks, extra=b""):
    values = (np.arange(samples * channels).reshape(samples, channels) * 4099 - 32768).astype("<i2")
    form = (np.array([1, channels], "<u2").tobytes() + np.array([8000, 16000 * channels], "<u4").tobytes() +
            np.array([2 * channels, 16], "<u2").tobytes() + extra)
    body = b"WAVE"
    for kind, data in ((b"fmt ", form), *chunks, (b"data", values.tobytes())):
        body += kind + np.array(len(data), "<u4").tobytes() + data
    return b"RIFF" + np.array(len(body), "<u4").tobytes() + body


def cases():
    for dtype in (tf.float32, tf.float64, tf.half, tf.int32, tf.uint16, tf.uint8, tf.int16, tf.int8, tf.int64, tf.complex64,
                  tf.complex128):
        values = np.arange(1, 13).astype(dtype.as_numpy_dtype) / np.array(3, dtype.as_numpy_dtype)
        rows = [row.astype(dtype.as_numpy_dtype).tobytes() for row in values.reshape(3, 4)]
        for little in (True, False):
            bits = rows if little else [np.frombuffer(row, dtype.as_numpy_dtype).byteswap().tobytes() for row in rows]
            yield Case("DecodeRaw", [np.array(bits, object)], {"out_type": dtype, "little_endian": little})
    yield Case("DecodeRaw", [np.array(b"\0\1\1\0", object)], {"out_type": tf.bool})
    yield Case("DecodeRaw", [np.array([b"", b""], object)], {"out_type": tf.float32})
    yield Case("DecodeRaw", [np.zeros([0, 2], object)], {"out_type": tf.float32})
    texts = np.array([[b"", b"a", b"ab"], [b"abc", bytes(range(256)), b"\xff\xfe\xfd\xfb"]], object)
    for pad in (False, True):
        yield Case("EncodeBase64", [texts], {"pad": pad})
    yield Case("DecodeBase64", [np.array([b"", b"YQ", b"YQ==", b"YWI=", b"YWI", b"_-z9-w", b"YR=="], object)])
    for file in (_wav(1, 9), _wav(2, 7), _wav(3, 4, (b"LIST", b"text"), extra=b"\0\0")):
        for attrs in ({}, {"desired_channels": 2}, {"desired_samples": 5}, {"desired_channels": 1, "desired_samples": 12}):
            yield Case("DecodeWav", [np.array(file, object)], attrs)
