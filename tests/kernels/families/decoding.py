"""Decoding of pictures. The files are made here, so that all colour types and depths occur."""

import struct
import zlib

import numpy as np
import tensorflow as tf
from make_vectors import Case


def _picture(height, width, channels, most=255, dtype=np.uint8):
    """Gradients with an edge: the chroma differs between neighbours."""
    y, x, c = np.mgrid[:height, :width, :channels]
    values = (x * (3 + c) * 7 + y * (5 - c) * 11 + 90 * (x + c > y) + 40 * c) % 256
    return (values * most // 255).astype(dtype)


def _encoded(image, **options):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(tf.io.encode_jpeg(tf.constant(image), **options))


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _png(width, height, bits, color, rows, *chunks, interlace=0):
    """A PNG file; `rows` are the bytes of each row without the filter."""
    header = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, interlace)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + b"".join(_chunk(*c) for c in chunks) + _chunk(b"IDAT", data) + _chunk(
        b"IEND", b"")


def _rows(array):
    return [np.ascontiguousarray(row).tobytes() for row in array]


def _adam7(array):
    """The rows of an interlaced file, pass by pass."""
    rows = []
    for y, x, dy, dx in ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)):
        part = array[y::dy, x::dx]
        if part.size:
            rows += _rows(part)
    return rows


def _pngs():
    palette = (b"PLTE", bytes([10, 20, 30, 200, 100, 0, 255, 255, 255, 0, 0, 1]))
    yield "grey", _png(5, 4, 8, 0, _rows(_picture(4, 5, 1)))
    yield "one_bit", _png(10, 3, 1, 0, [b"\xa5\x40", b"\x0f\xc0", b"\xff\x80"])
    yield "four_bits", _png(3, 2, 4, 0, [b"\x0f\x70", b"\x81\xe0"])
    yield "grey_16", _png(3, 2, 16, 0, _rows(_picture(2, 3, 1, 65535, ">u2")))
    yield "grey_transparent", _png(5, 4, 8, 0, _rows(_picture(4, 5, 1)), (b"tRNS", b"\0\x5a"))
    yield "grey_alpha", _png(5, 4, 8, 4, _rows(_picture(4, 5, 2)))
    yield "rgb", _png(5, 4, 8, 2, _rows(_picture(4, 5, 3)))
    yield "rgb_gamma", _png(5, 4, 8, 2, _rows(_picture(4, 5, 3)), (b"gAMA", struct.pack(">I", 45455)),
                            (b"zTXt", b"key\0\0" + zlib.compress(b"text")))
    yield "rgb_16", _png(3, 2, 16, 2, _rows(_picture(2, 3, 3, 65535, ">u2")))
    yield "rgb_interlaced", _png(9, 10, 8, 2, _adam7(_picture(10, 9, 3)), interlace=1)
    yield "rgba", _png(5, 4, 8, 6, _rows(_picture(4, 5, 4)))
    yield "rgba_16", _png(3, 2, 16, 6, _rows(_picture(2, 3, 4, 65535, ">u2")))
    yield "palette", _png(5, 2, 2, 3, [b"\x1b\x00", b"\xe4\xc0"], palette)
    yield "palette_transparent", _png(5, 2, 2, 3, [b"\x1b\x00", b"\xe4\xc0"], palette, (b"tRNS", b"\x00\x80"))


def _lzw(indices, bits):
    """Codes of growing length for the colour indices, with the table of the format."""
    clear = 1 << bits
    table, size, out, filled = {}, bits + 1, 0, 0

    def put(code):
        nonlocal out, filled
        out |= code << filled
        filled += size

    put(clear)
    text = ()
    for index in indices:
        longer = text + (index,)
        if len(longer) == 1 or longer in table:
            text = longer
            continue
        put(table.get(text, text[0]))
        following = clear + 2 + len(table)
        if following < 4096:
            table[longer] = following
            if following == 1 << size and size < 12:
                size += 1
        elif len(indices) % 2:  # Files of even length keep the full table, as some encoders do.
            put(clear)
            table, size = {}, bits + 1
        text = (index,)
    put(table.get(text, text[0]))
    put(clear + 1)
    return out.to_bytes((filled + 7) // 8, "little")


def _gif_frame(indices, x=0, y=0, colors=None, transparent=None, interlaced=False, bits=2):
    height, width = indices.shape
    control = b"" if transparent is None else b"!\xf9\x04\x05\x0a\0" + bytes([transparent]) + b"\0"
    rows = [indices[k::s] for k, s in ((0, 8), (4, 8), (2, 4), (1, 2))] if interlaced else [indices]
    data = _lzw([int(i) for part in rows for i in part.reshape(-1)], bits)
    blocks = b"".join(bytes([len(data[i:i + 255])]) + data[i:i + 255] for i in range(0, len(data), 255)) + b"\0"
    flags = (0x40 if interlaced else 0) | (0x80 | bits - 1 if colors else 0)
    return control + b"," + struct.pack("<HHHHB", x, y, width, height, flags) + (colors or b"") + bytes([bits]) + blocks


def _gif(*frames, colors=bytes(range(10, 130, 10)), bits=2):
    head = b"GIF89a" + struct.pack("<HHBBB", 40, 30, (0x80 | bits - 1) if colors else 0, 0, 0)
    return head + colors + b"!\xfe\x04text\0" + b"".join(frames) + b";"


def _gifs():
    y, x = np.mgrid[:11, :13]
    quarters = (x * y + x // 3) % 4
    many = np.random.default_rng(5).integers(0, 256, (63, 71))
    colors = np.random.default_rng(6).integers(0, 256, 768).astype(np.uint8).tobytes()
    yield "one", _gif(_gif_frame(quarters))
    yield "interlaced", _gif(_gif_frame(quarters, interlaced=True))
    yield "transparent", _gif(_gif_frame(quarters, transparent=2))
    yield "full_table", _gif(_gif_frame(many[:62], bits=8), colors=colors, bits=8)
    yield "cleared_table", _gif(_gif_frame(many, bits=8), colors=colors, bits=8)
    yield "local_colors", _gif(_gif_frame(quarters, colors=bytes(range(12))), colors=b"", bits=1)
    yield "frames", _gif(_gif_frame(quarters), _gif_frame(quarters[:5, :6], x=3, y=2, transparent=1),
                         _gif_frame(quarters[::-1], transparent=0), _gif_frame(quarters[:4, :4], x=11, y=9))
    yield "first_is_small", _gif(_gif_frame(quarters[:4, :5], x=2, y=1), _gif_frame(quarters))
    yield "no_end", _gif(_gif_frame(quarters), _gif_frame(quarters.T[:11]))[:-1]


def _bmp(width, height, channels, top_down=False):
    picture = _picture(height, width, channels)
    row = (width * channels + 3) // 4 * 4
    data = b"".join(r.tobytes().ljust(row, b"\0") for r in (picture if top_down else picture[::-1]))
    head = struct.pack("<2sIHHI", b"BM", 54 + len(data), 0, 0, 54)
    return head + struct.pack("<IiiHHIIiiII", 40, width, -height if top_down else height, 1, 8 * channels, 0, len(data), 0, 0, 0,
                              0) + data


def cases():
    color, grey = _picture(21, 19, 3), _picture(9, 10, 1)
    half, full = _encoded(color), _encoded(color, quality=70, chroma_downsampling=False)
    slow = _encoded(color, progressive=True)
    for file in (half, full, slow, _encoded(grey, format="grayscale")):
        for method in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
            yield Case("DecodeJpeg", [np.array(file, object)], {"dct_method": method})
    for channels in (1, 3):
        for file in (half, _encoded(grey, format="grayscale")):
            yield Case("DecodeJpeg", [np.array(file, object)], {"channels": channels})
    for ratio in (2, 4, 8):
        yield Case("DecodeJpeg", [np.array(half, object)], {"ratio": ratio})
        yield Case("DecodeJpeg", [np.array(full, object)], {"ratio": ratio, "fancy_upscaling": False})
    yield Case("DecodeJpeg", [np.array(half, object)], {"fancy_upscaling": False})
    # Without the end marker. Behind a cut in the data, what the decoder makes up depends on the version of the library.
    yield Case("DecodeJpeg", [np.array(half[:-2], object)], {"try_recover_truncated": True})
    for file in (half, full):  # Less the last rows.
        for fraction in (0.1, 0.5):
            yield Case("DecodeJpeg", [np.array(file[:-100], object)], {"acceptable_fraction": fraction})
    large = _encoded(_picture(36, 45, 3))
    for window in ([0, 0, 36, 45], [3, 21, 17, 15], [20, 30, 16, 15], [35, 44, 1, 1]):
        for attrs in ({}, {"channels": 1}, {"fancy_upscaling": False}):
            yield Case("DecodeAndCropJpeg", [np.array(large, object), np.int32(window)], attrs)
    yield Case("DecodeAndCropJpeg", [np.array(large, object), np.int32([5, 6, 12, 11])], {"ratio": 2})
    yield Case("DecodeJpeg", [np.array(dict(_pngs())["rgb"], object)])
    yield Case("DecodePng", [np.array(half, object)])
    for dtype in (tf.uint8, tf.uint16, tf.float32):
        yield Case("DecodeImage", [np.array(_encoded(grey, format="grayscale"), object)], {"dtype": dtype})
        yield Case("DecodeImage", [np.array(_bmp(3, 2, 3), object)], {"dtype": dtype})
    for _, file in _pngs():
        for channels in (0, 1, 3, 4):
            for dtype in (tf.uint8, tf.uint16):
                yield Case("DecodePng", [np.array(file, object)], {"channels": channels, "dtype": dtype})
        yield Case("DecodeImage", [np.array(file, object)], {"dtype": tf.float32, "expand_animations": False})
    for name, file in _gifs():
        yield Case("DecodeGif", [np.array(file, object)])
        if name in ("one", "frames"):
            yield Case("DecodeImage", [np.array(file, object)], {"dtype": tf.float32})
        if name in ("frames", "first_is_small", "no_end"):
            yield Case("DecodeImage", [np.array(file, object)])
            yield Case("DecodeImage", [np.array(file, object)], {"expand_animations": False, "dtype": tf.uint16})
        elif "table" not in name:
            yield Case("DecodePng", [np.array(file, object)])
    yield Case("DecodeGif", [np.array(half, object)])
    yield Case("DecodeGif", [np.array(dict(_pngs())["rgba"], object)])
    for channels in (1, 3, 4):
        for top_down in (False, True):
            yield Case("DecodeBmp", [np.array(_bmp(5, 3, channels, top_down), object)])
    yield Case("DecodeBmp", [np.array(_bmp(5, 3, 4), object)], {"channels": 4})
