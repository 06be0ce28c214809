"""Tests that memory does not grow over a thousand repetitions."""

import gc
import unittest

import numpy
import permafrost

import models

# Memory retained by allocators, far below the total of one leaked model per cycle.
SLACK_BYTES = 24 << 20


def resident_bytes():
    with open('/proc/self/statm', encoding='ascii') as file:
        return int(file.read().split()[1]) * 4096


class EnduranceTest(unittest.TestCase):

    def grows(self, cycle, times):
        for _ in range(times // 5):
            cycle()
        gc.collect()
        before = resident_bytes()
        for _ in range(times):
            cycle()
        gc.collect()
        return resident_bytes() - before

    def test_load_transform_free(self):
        with open(models.DIGITS + 'digits.pb', 'rb') as file:
            data = file.read()  # 1.3 MB: leaking it once in 50 cycles would show.

        def cycle():
            model = permafrost.load(data)
            result = model.transform('fold_constants fold_batch_norms')
            self.assertEqual(model.constants['hidden/weights'].shape, (1024, 256))
            result.to_bytes()

        self.assertLess(self.grows(cycle, 1000), SLACK_BYTES)

    def test_errors(self):

        def cycle():
            with self.assertRaises(ValueError):
                permafrost.load(b'\xff' * 100_000)
            with self.assertRaises(ZeroDivisionError):
                models.small().transform('fold_constants', progress=lambda *_: 1 / 0)

        self.assertLess(self.grows(cycle, 500), SLACK_BYTES)

    def test_sessions(self):
        model = models.digits()
        images = numpy.load(models.DIGITS + 'eval_images.npy')[:16]

        def cycle():
            with model.session(threads=1) as session:
                session.run(images)

        self.assertLess(self.grows(cycle, 200), SLACK_BYTES)


if __name__ == '__main__':
    unittest.main()
