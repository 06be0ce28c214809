"""Tests of concurrent Python threads, on separate and on shared objects.

Under --config=tsan the extension is watched for data races: nothing else of the process is (docs/guide/python.md).
"""

import gc
import queue
import subprocess
import sys
import threading
import unittest

import numpy
import permafrost
from permafrost import passes

import models

THREADS = 8
ROUNDS = 3


@permafrost.pass_('count_in_threads', pattern='Relu')
def count_in_threads(match, graph):
    """Adds a note about the graph and changes nothing."""
    graph.note(match.head.name)
    return False


def opens(model, delegate):
    """Whether the machine has what the delegate needs, such as a driver."""
    try:
        model.session(delegate=delegate).close()
        return True
    except permafrost.UnavailableError:
        return False


class ThreadsTest(unittest.TestCase):

    def at_once(self, work):
        """Runs `work(index)` on THREADS threads that start together. An exception in a thread fails the test."""
        barrier = threading.Barrier(THREADS)
        problems = []

        def guarded(index):
            try:
                barrier.wait()
                work(index)
            except BaseException as error:  # pylint: disable=broad-except
                problems.append((index, error))

        threads = [threading.Thread(target=guarded, args=(index,)) for index in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])

    def setUp(self):
        self.images = numpy.load(models.DIGITS + 'eval_images.npy')[:32]
        self.expected = numpy.load(models.DIGITS + 'expected_probabilities.npy')[:32]

    def test_sessions_of_their_own(self):
        model = models.digits()

        def work(_):
            with model.session(threads=1) as session:
                outputs = session.allocate_outputs(self.images)
                for _ in range(10):
                    numpy.testing.assert_allclose(session.run(self.images)['probabilities'], self.expected, atol=1e-5)
                    session.run(self.images, outputs)
                    numpy.testing.assert_allclose(outputs['probabilities'], self.expected, atol=1e-5)

        self.at_once(work)

    def test_sessions_with_threads_and_delegates_of_their_own(self):
        model = models.digits()
        delegates = [item.name for item in permafrost.delegates() if opens(model, item.name)]
        self.assertGreater(len(delegates), 2)

        def work(index):
            with model.session(delegate=delegates[index % len(delegates)], threads=2) as session:
                for _ in range(ROUNDS):
                    numpy.testing.assert_allclose(session.run(self.images)['probabilities'], self.expected, atol=1e-5)

        self.at_once(work)

    def test_one_session(self):
        session = models.digits().session(threads=1)

        def work(_):
            for _ in range(ROUNDS):
                numpy.testing.assert_allclose(session.run(self.images)['probabilities'], self.expected, atol=1e-5)
                self.assertGreater(session.report()['steps'], 0)

        self.at_once(work)

    def test_one_model(self):
        model = models.digits()
        plain = model.to_bytes()
        small = model.transform('fold_constants quantize_weights(minimum_size=1024)').to_bytes()

        def work(_):
            for _ in range(ROUNDS):
                result = model.transform([passes.fold_constants(), passes.quantize_weights(minimum_size=1024)], threads=2)
                self.assertEqual(result.to_bytes(), small)
                self.assertEqual(model.to_bytes(), plain)
                self.assertEqual(len(model.compare(model)), 0)
                self.assertTrue(model.verify(result, self.images[:2], tolerance=0.1))
                self.assertGreater(model.constants['hidden/weights'].any(), 0)
                self.assertEqual(model.inputs[0].name, 'image')

        self.at_once(work)

    def test_models_of_their_own(self):
        with open(models.DIGITS + 'digits.pb', 'rb') as file:
            data = file.read()

        def work(_):
            for _ in range(ROUNDS):
                with permafrost.load(data) as model:
                    weights = model.constants['hidden/weights']
                    report = model.report()
                gc.collect()
                self.assertEqual((weights.shape, report['nodes']), ((1024, 256), 139))

        self.at_once(work)

    def test_passes_and_callbacks_in_python(self):
        model = models.small()

        def work(index):
            for _ in range(10 * ROUNDS):
                seen = []
                result = model.transform([count_in_threads, 'fold_constants'],
                                         progress=lambda *step: seen.append(step))  # pylint: disable=cell-var-from-loop
                self.assertEqual(seen, [(0, 2, 'count_in_threads'), (1, 2, 'fold_constants')])
                self.assertEqual(result.passes[0].notes, ['y'])

                def fail(*_):
                    raise LookupError(index)

                # Each thread receives its own exception.
                with self.assertRaises(LookupError) as raised:
                    model.transform('fold_constants', progress=fail)
                self.assertEqual(raised.exception.args, (index,))

        self.at_once(work)

    def test_arrays_go_on_other_threads_than_they_came(self):
        model = models.digits()
        channel = queue.Queue()

        def work(index):
            if index % 2 == 0:
                with model.session(threads=1) as session:
                    for _ in range(4 * ROUNDS):
                        channel.put(session.run(self.images.copy())['probabilities'])
            else:
                for _ in range(4 * ROUNDS):
                    result = channel.get()
                    numpy.testing.assert_allclose(result, self.expected, atol=1e-5)

        self.at_once(work)

    def test_closing_while_it_runs(self):
        model = models.digits()

        def work(index):
            session = model.session(threads=1)
            closer = threading.Thread(target=session.close)
            try:
                closer.start()
                for _ in range(ROUNDS):
                    result = session.run(self.images)['probabilities']
                    numpy.testing.assert_allclose(result, self.expected, atol=1e-5)
            except ValueError as error:
                self.assertEqual(str(error), 'the session is closed', index)
            closer.join()

        self.at_once(work)

    def test_the_interpreter_goes_on_while_a_model_runs(self):
        # The model never ends. Were the interpreter's lock held meanwhile, nothing would be printed.
        code = ('import threading, numpy, permafrost, models\n'
                "model = permafrost.load(models.ENDLESS.encode(), inputs=['x'], outputs=['y'])\n"
                'session, started = model.session(threads=1), threading.Event()\n'
                'def endless():\n'
                '    started.set()\n'
                '    session.run(numpy.float32(-1))\n'
                'threading.Thread(target=endless, daemon=True).start()\n'
                'started.wait()\n'
                'threading.Event().wait(0.2)\n'
                'print(models.small().run([[1, 2, 3, 4]])["y"].tolist(), flush=True)\n'
                'import os\n'
                'os._exit(0)\n')
        result = subprocess.run([sys.executable, '-c', code], stdout=subprocess.PIPE, text=True, check=False, timeout=240)
        self.assertEqual((result.returncode, result.stdout), (0, '[[2.0, 4.0, 6.0, 8.0]]\n'))


if __name__ == '__main__':
    unittest.main()
