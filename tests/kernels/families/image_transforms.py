"""ScaleAndTranslate with its kernels, and projective transforms."""

import numpy as np
from make_vectors import Case

KINDS = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")


def scaling():
    random = np.random.RandomState(21)
    image = random.uniform(-1, 1, (2, 6, 7, 2)).astype(np.float32)
    for kind in KINDS:
        for antialias in (True, False):
            attrs = {"kernel_type": kind, "antialias": antialias}
            for size in ((3, 4), (11, 9)):
                scale = np.array(size, np.float32) / np.array((6, 7), np.float32)
                yield Case("ScaleAndTranslate", [image, np.array(size, np.int32), scale, np.zeros(2, np.float32)], attrs)
    shifted = [image, np.array((5, 5), np.int32), np.array((0.7, 1.9), np.float32), np.array((2.3, -4.1), np.float32)]
    yield Case("ScaleAndTranslate", shifted, {"kernel_type": "lanczos3"})
    yield Case("ScaleAndTranslate", shifted, {"kernel_type": "triangle", "antialias": False})
    for dtype in (np.uint8, np.int8, np.int32, np.float64, np.float16):
        yield Case("ScaleAndTranslate", [random.randint(0, 99, (1, 4, 4, 1)).astype(dtype), np.array((3, 6), np.int32),
                                         np.array((0.75, 1.5), np.float32), np.zeros(2, np.float32)])


def projections():
    random = np.random.RandomState(22)
    image = random.uniform(-1, 1, (2, 5, 6, 2)).astype(np.float32)
    turned = [0.8, -0.6, 1.3, 0.6, 0.8, -0.7, 0, 0]
    seen = [1.1, 0.2, -1, -0.1, 0.9, 0.5, 0.05, -0.08]
    far = [1, 0, -17.4, 0, 1, 23.2, 0, 0]
    for fill in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
        for interpolation in ("NEAREST", "BILINEAR"):
            attrs = {"interpolation": interpolation, "fill_mode": fill}
            size = np.array([4, 7], np.int32)
            for transforms in ([turned, seen], [far]):
                transforms = np.array(transforms, np.float32)
                yield Case("ImageProjectiveTransformV3", [image, transforms, size, np.float32(0.5)], attrs)
            yield Case("ImageProjectiveTransformV2", [image, np.array([turned], np.float32), size], attrs)
            yield Case("ImageProjectiveTransformV3", [image[:, :1, :1], np.array([far], np.float32), size, np.float32(2)],
                       attrs)
    for dtype in (np.uint8, np.int32, np.int64, np.float64, np.float16):
        yield Case("ImageProjectiveTransformV3", [random.randint(0, 99, (1, 4, 4, 1)).astype(dtype),
                                                  np.array([turned], np.float32), np.array([4, 4], np.int32), np.float32(3)],
                   {"interpolation": "BILINEAR"})


def cases():
    yield from scaling()
    yield from projections()
