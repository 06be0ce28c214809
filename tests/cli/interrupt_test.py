"""Tests that Ctrl-C ends a working tool soon, with the right status, and leaves no partial files.

The work would never end by itself, so a tool that does not notice the signal runs into the test's time limit.
"""

import os
import pathlib
import pty
import signal
import struct
import subprocess
import tempfile
import unittest

HERE = pathlib.Path.cwd()
ENDLESS = HERE / 'tests/cli/graphs/endless.pbtxt'
CHAIN = HERE / 'tests/cli/graphs/chain.pbtxt'
DIGITS = HERE / 'tests/models/digits/digits.pb'
INTERRUPTED = 255


def npy(number):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (), }".ljust(117) + b'\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header + struct.pack('<f', number)


class InterruptTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.inputs = self.folder / 'x.npy'
        self.inputs.write_bytes(npy(-1))

    def interrupt(self, tool, *flags, at):
        """Runs the tool in a terminal, sends Ctrl-C after the output `at`, and returns its status and all of its output."""
        terminal, other_end = pty.openpty()
        process = subprocess.Popen([str(HERE / 'tools' / tool), *map(str, flags)], stdin=subprocess.DEVNULL,
                                   stdout=other_end, stderr=other_end, cwd=self.folder,
                                   env={**os.environ, 'TERM': 'xterm', 'NO_COLOR': '1'})
        os.close(other_end)
        shown, is_pressed = b'', False
        while True:
            try:
                more = os.read(terminal, 4096)
            except OSError:  # The terminal's error after its other end is closed.
                more = b''
            if not more:
                break
            shown += more
            if not is_pressed and at.encode() in shown:
                is_pressed = True
                process.send_signal(signal.SIGINT)
        os.close(terminal)
        status = process.wait()
        text = shown.decode(errors='replace')
        self.assertTrue(is_pressed, f'{tool} ended with {status} and never showed {at!r}: {text}')
        return status, text

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_validate_model_between_timed_runs(self):
        status, text = self.interrupt('validate_model', f'--reference={DIGITS}', f'--candidate={DIGITS}',
                                      '--samples=4', '--runs=2000000000', '--threads=1', at='4 of 4 rows')
        self.assertEqual(status, INTERRUPTED)
        self.assertIn('probabilities', text)
        self.assertIn('interrupted after 4 of 4 runs', text)

    def test_validate_model_in_a_run(self):
        status, text = self.interrupt('validate_model', f'--reference={ENDLESS}', f'--candidate={ENDLESS}',
                                      f'--inputs={self.inputs}', at='running the models')
        self.assertEqual(status, INTERRUPTED)
        self.assertIn('interrupted after 0 of 1 runs', text)

    def test_benchmark_model_in_a_run(self):
        status, text = self.interrupt('benchmark_model', f'--graph={ENDLESS}', '--input_layer=x',
                                      '--input_layer_values=-1', '--input_layer_shape=', f'--trace={self.folder}/run.json',
                                      f'--profiling_output_csv_file={self.folder}/run.csv', at='Initialized session')
        self.assertEqual(status, INTERRUPTED)
        self.assertIn('interrupted after 0 measured runs', text)
        self.assertEqual(self.files(), ['x.npy'])

    def test_benchmark_model_that_compares(self):
        status, text = self.interrupt('benchmark_model', f'--graph={CHAIN}', '--compare', '--compare_time=1000000',
                                      '--threads=1', at='round 3')
        self.assertEqual(status, INTERRUPTED)
        self.assertIn('ship: ', text)
        self.assertIn('interrupted; what was measured until then is printed', text)

    def test_benchmark_model_that_prepares_a_comparison(self):
        status, text = self.interrupt('benchmark_model', f'--graph={ENDLESS}', '--input_layer=x', '--input_layer_values=-1',
                                      '--input_layer_shape=', '--compare', at='checking the answers of')
        # There is nothing to print yet.
        self.assertEqual(status, -signal.SIGINT)
        self.assertNotIn('ship: ', text)

    def test_report_model(self):
        report = self.folder / 'report.html'
        report.write_text('old')
        status, text = self.interrupt('report_model', f'--in_graph={ENDLESS},{ENDLESS}', '--names=a,b',
                                      f'--inputs={self.inputs}', f'--out={report}', at='comparing a')
        self.assertEqual(status, INTERRUPTED)
        self.assertIn('interrupted; no report was written', text)
        self.assertEqual(report.read_text(), 'old')
        self.assertEqual(self.files(), ['report.html', 'x.npy'])

    def test_transform_graph(self):
        out = self.folder / 'out.pb'
        out.write_text('old')
        status, _ = self.interrupt('transform_graph', f'--in_graph={ENDLESS}', f'--out_graph={out}', '--inputs=x',
                                   '--outputs=y', '--transforms=strip_unused_nodes', f'--verify_inputs={self.inputs}',
                                   at='running the graph')
        self.assertEqual(status, -signal.SIGINT)
        self.assertEqual(out.read_text(), 'old')
        self.assertEqual(self.files(), ['out.pb', 'x.npy'])


if __name__ == '__main__':
    unittest.main()
