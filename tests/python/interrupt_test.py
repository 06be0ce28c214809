"""Tests Ctrl-C during long work: it arrives while the work runs, and all objects stay valid.

No time is asserted: the work would never end by itself, or is known to be under way when the signal comes.
"""

import os
import signal
import subprocess
import sys
import threading
import unittest

import numpy
import permafrost

import models


def interrupt_soon():
    """Sends this process a SIGINT once the main thread is likely at work; more until one has arrived."""
    stopped = threading.Event()

    def send():
        while not stopped.wait(0.1):
            os.kill(os.getpid(), signal.SIGINT)
            return

    threading.Thread(target=send, daemon=True).start()
    return stopped


class InterruptTest(unittest.TestCase):

    def test_a_run_that_never_ends(self):
        model = permafrost.load(models.ENDLESS.encode(), inputs=['x'], outputs=['y'])
        session = model.session(threads=1)
        self.assertEqual(session.run(numpy.float32(1))['y'], 1)
        session = model.session(threads=1)
        interrupt_soon()
        with self.assertRaises(KeyboardInterrupt):
            session.run(numpy.float32(-1))
        with self.assertRaisesRegex(RuntimeError, 'interrupted: make another session'):
            session.run(numpy.float32(1))
        self.assertEqual(model.session().run(numpy.float32(2))['y'], 2)

    def test_a_verification_that_never_ends(self):
        model = permafrost.load(models.ENDLESS.encode(), inputs=['x'], outputs=['y'])
        interrupt_soon()
        with self.assertRaises(KeyboardInterrupt):
            model.verify(model, numpy.float32(-1))

    def test_handlers_that_do_not_raise_change_nothing(self):
        seen = []
        before = signal.signal(signal.SIGINT, lambda *_: seen.append(1))
        try:
            model = models.digits()
            model.transform('fold_constants', progress=lambda *_: os.kill(os.getpid(), signal.SIGINT))
        finally:
            signal.signal(signal.SIGINT, before)
        self.assertEqual(seen, [1])

    def test_between_passes(self):
        model = models.digits()
        seen = []

        def progress(index, count, name):
            seen.append(name)
            if index == 1:
                os.kill(os.getpid(), signal.SIGINT)
                # The pipeline has not ended when the signal is noticed: it waits here.
                threading.Event().wait(0.5)

        with self.assertRaises(KeyboardInterrupt):
            model.transform('fold_constants fold_batch_norms remove_device', progress=progress)
        self.assertEqual(seen, ['fold_constants', 'fold_batch_norms'])

    def test_the_process_ends_well(self):
        code = ('import interrupt_test, models, permafrost, numpy\n'
                "model = permafrost.load(models.ENDLESS.encode(), inputs=['x'], outputs=['y'])\n"
                'interrupt_test.interrupt_soon()\n'
                'try:\n    model.run(numpy.float32(-1))\nexcept KeyboardInterrupt:\n    print("interrupted")\n')
        result = subprocess.run([sys.executable, '-c', code], stdout=subprocess.PIPE, text=True, check=False, timeout=120)
        self.assertEqual((result.returncode, result.stdout), (0, 'interrupted\n'))


if __name__ == '__main__':
    unittest.main()
