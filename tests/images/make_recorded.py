"""Records the results of TensorFlow on pictures, for tests/images: python3 tests/images/make_recorded.py FOLDER.

Needs TensorFlow and numpy. The folder gets picture files, and for each what tf.io.decode_png or decode_jpeg gives as NPY; and a picture
resized by tf.image.resize in all ways and to several sizes.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf

FILTERS = {
    'bilinear': dict(method='bilinear'),
    'antialias': dict(method='bilinear', antialias=True),
    'area': dict(method='area'),
    'nearest': dict(method='nearest'),
}
SIZES = [(4, 3), (5, 16), (20, 31), (13, 11)]


def smooth_picture(height, width, channels, seed):
    """Returns waves with a little noise, which JPEG does not compress away."""
    rng = np.random.default_rng(seed)
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(channels), indexing='ij')
    waves = 127 + 80 * np.sin(y / 3.1 + c) * np.cos(x / 4.3 - c)
    return np.clip(waves + rng.normal(0, 9, waves.shape), 0, 255).astype(np.uint8)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    source = smooth_picture(13, 11, 3, 1)
    np.save(folder / 'source.npy', source)
    for name, options in FILTERS.items():
        for height, width in SIZES:
            resized = tf.cast(tf.image.resize(source, (height, width), **options), tf.float32)
            np.save(folder / f'{name}_{height}x{width}.npy', resized.numpy())
    colour, grey = smooth_picture(21, 34, 3, 2), smooth_picture(18, 25, 1, 3)
    wide = (smooth_picture(9, 8, 3, 4).astype(np.uint16) << 8) + 77
    alpha = smooth_picture(10, 9, 4, 5)
    files = {
        'colour.png': (tf.io.encode_png(colour), 3),
        'grey.png': (tf.io.encode_png(grey), 1),
        'sixteen_bits.png': (tf.io.encode_png(wide), 3),
        'alpha.png': (tf.io.encode_png(alpha), 3),
        'colour.jpg': (tf.io.encode_jpeg(colour, quality=80), 3),
        'progressive.jpg': (tf.io.encode_jpeg(colour, quality=60, progressive=True), 3),
        'grey.jpg': (tf.io.encode_jpeg(grey, format='grayscale'), 1),
    }
    for name, (content, channels) in files.items():
        (folder / name).write_bytes(content.numpy())
        if name.endswith('.jpg'):
            # Exactly: TensorFlow's default is a faster cosine transform, some steps of 255 off.
            pixels = tf.io.decode_jpeg(content, channels=channels, dct_method='INTEGER_ACCURATE')
        else:
            pixels = tf.io.decode_png(content, channels=channels)
        np.save(folder / (name + '.npy'), pixels.numpy())


if __name__ == '__main__':
    main(pathlib.Path(sys.argv[1]))
