"""Tests of sessions: runs without copies, benchmarks, delegates."""

import inspect
import unittest

import numpy
import permafrost
from permafrost import _native

import models


class SessionTest(unittest.TestCase):

    def setUp(self):
        self.images = numpy.load(models.DIGITS + 'eval_images.npy')
        self.expected = numpy.load(models.DIGITS + 'expected_probabilities.npy')

    def test_answers_as_tensorflow_did(self):
        for delegate in [item.name for item in permafrost.delegates()]:
            with self.subTest(delegate=delegate), models.digits().session(delegate=delegate) as session:
                result = session.run({'image': self.images})
                numpy.testing.assert_allclose(result['probabilities'], self.expected, atol=1e-5)
                self.assertEqual(session.inputs, ['image'])
                self.assertEqual(session.outputs, ['probabilities'])

    def test_offers_every_count_of_a_session(self):
        method = permafrost.Model.session
        arguments = inspect.signature(method).parameters
        counts = _native.session_counts()
        self.assertIn('threads', [name for name, _, _ in counts])
        for name, default, _ in counts:
            with self.subTest(name):
                self.assertEqual(arguments[name].default, default)
                self.assertIn(f' {name}: ', method.__doc__)

    def test_convolutions_without_winograd(self):
        with models.digits().session(delegate='onednn', no_winograd=True) as session:
            result = session.run({'image': self.images})
        numpy.testing.assert_allclose(result['probabilities'], self.expected, atol=1e-5)

    def test_precision_that_is_measured(self):
        session = models.digits().session(delegate='onednn', precision='auto', samples=[self.images[:8]], threads=1)
        result = session.run(self.images)['probabilities']
        self.assertGreater((result.argmax(1) == self.expected.argmax(1)).mean(), 0.97)
        self.assertIn('chosen', session.report()['notes'])

    def test_writes_into_bound_arrays(self):
        session = models.digits().session()
        outputs = session.allocate_outputs(self.images)
        self.assertEqual(outputs['probabilities'].ctypes.data % 64, 0)
        result = session.run(self.images, outputs)
        self.assertIs(result['probabilities'], outputs['probabilities'])
        numpy.testing.assert_allclose(outputs['probabilities'], self.expected, atol=1e-5)
        unaligned = numpy.empty(5400 * 4 + 4, numpy.uint8)[4:].view(numpy.float32).reshape(540, 10)
        session.run(self.images, {'probabilities': unaligned})
        numpy.testing.assert_array_equal(unaligned, outputs['probabilities'])

    def test_results_do_not_change_with_the_inputs(self):
        session = models.small().session(outputs=['x', 'y'])
        x = permafrost.empty([2, 4])
        x[:] = numpy.arange(8).reshape(2, 4) - 4
        expected = x.copy()
        result = session.run(x)
        x[:] = 0
        numpy.testing.assert_array_equal(result['x'], expected)
        numpy.testing.assert_array_equal(result['y'], numpy.maximum(expected + [1, 2, 3, 4], 0))

    def test_results_outlive_the_session(self):
        session = models.small().session()
        result = session.run([[1, 2, 3, 4]])['y']
        session.run([[5, 6, 7, 8]])
        session.close()
        numpy.testing.assert_array_equal(result, [[2, 4, 6, 8]])
        self.assertFalse(result.flags.writeable)

    def test_shapes_may_change(self):
        session = models.small().session()
        for rows in (1, 3, 0, 2):
            x = numpy.ones((rows, 4), numpy.float32)
            self.assertEqual(session.run(x)['y'].shape, (rows, 4))

    def test_types(self):
        for dtype, name, values in (('DT_INT32', 'int32', [1, 2]), ('DT_DOUBLE', 'float64', [0.5, 2]),
                                    ('DT_HALF', 'float16', [0.5, 2]), ('DT_BOOL', 'bool', [True, False]),
                                    ('DT_UINT8', 'uint8', [1, 255]), ('DT_INT64', 'int64', [-1, 2**40]),
                                    ('DT_COMPLEX64', 'complex64', [1j, 2])):
            with self.subTest(dtype):
                text = models.placeholder('x', [2], dtype) + models.node(
                    'y', 'Identity', ['x'], f'attr {{ key: "T" value {{ type: {dtype} }} }}')
                x = numpy.array(values, name)
                result = permafrost.load(text.encode()).run(x)['y']
                self.assertEqual(result.dtype, x.dtype)
                numpy.testing.assert_array_equal(result, x)
                numpy.testing.assert_array_equal(permafrost.load(text.encode()).run(values)['y'], x)

    def test_strings(self):
        text = models.placeholder('x', [2], 'DT_STRING') + models.node(
            'y', 'Identity', ['x'], 'attr { key: "T" value { type: DT_STRING } }')
        result = permafrost.load(text.encode()).run(['a', b'\xff'])['y']
        self.assertEqual(result.tolist(), [b'a', b'\xff'])

    def test_benchmark(self):
        benchmark = models.digits().benchmark(runs=5, warm_up=1)
        self.assertEqual(len(benchmark.seconds), 5)
        self.assertGreater(benchmark.best, 0)
        self.assertLessEqual(benchmark.best, benchmark.median)
        self.assertLessEqual(benchmark.median, benchmark.percentile(100))
        self.assertIn('median', benchmark._repr_html_())

    def test_report_says_what_the_delegate_left(self):
        session = models.digits().session(delegate='onednn')
        session.run(self.images)
        report = session.report()
        self.assertGreater(len(report['partitions']), 0)
        self.assertGreater(report['steps'], 0)


if __name__ == '__main__':
    unittest.main()
