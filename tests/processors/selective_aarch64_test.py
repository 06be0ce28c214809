"""Runs a selective runtime for 64-bit ARM on an emulator: outputs must be within 1e-5 of those recorded on x86-64.

    selective_aarch64_test.py PROGRAM DIGITS_MODEL HEADER_TOOL

PROGRAM is tests/bench/size/run_once.cc for that processor, linked statically, with the ops of tests/processors/ops_to_register.h.
MobileNet v2 is run too where the folder `shared` has it ($PERMAFROST_SHARED, or beside the workspace).
"""

import array
import os
import pathlib
import re
import struct
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).absolute().parent
sys.path.insert(0, str(HERE.parent))
from protobuf_wire import field  # noqa: E402
from shared_folder import shared_folder  # noqa: E402

PROGRAM, DIGITS, HEADER_TOOL = (pathlib.Path(argument).absolute() for argument in sys.argv[1:])
EMULATOR = 'qemu-aarch64'
TOLERANCE = 1e-5
AARCH64 = 183  # Of ELF's processors.


def mobilenet():
    """The path of the model, or None."""
    shared = shared_folder(HERE / 'digits.npy')
    model = shared and shared / 'models/mobilenet_v2/model.pb'
    return model if model and model.is_file() else None


def pixels(count):
    """Returns the numbers of same_answers_test.cc."""
    state = 12345
    values = array.array('f')
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        values.append((state >> 24) / 256)
    return values.tobytes()


def recorded(name):
    content = (HERE / f'{name}.npy').read_bytes()
    size, = struct.unpack('<H', content[8:10])
    values = array.array('f')
    values.frombytes(content[10 + size:])
    return values


class SelectiveAarch64Test(unittest.TestCase):

    def run_model(self, model, feed, dims, fetch, data):
        return subprocess.run([EMULATOR, PROGRAM, model, feed, dims, fetch], input=data, capture_output=True, check=False)

    def compare(self, name, model, feed, dims, fetch):
        count = 1
        for dim in dims.split(','):
            count *= int(dim)
        result = self.run_model(model, feed, dims, fetch, pixels(count))
        self.assertEqual((result.returncode, result.stderr), (0, b''))
        found = array.array('f')
        found.frombytes(result.stdout)
        expected = recorded(name)
        self.assertEqual(len(found), len(expected))
        allowed = TOLERANCE * max(1, max(map(abs, expected)))
        worst = max(abs(x - y) for x, y in zip(found, expected))
        print(f'{name}: largest difference {worst:g} of {allowed:g} allowed')
        # A NaN is within nothing.
        self.assertTrue(all(abs(x - y) <= allowed for x, y in zip(found, expected)), worst)

    def test_the_program_is_for_that_processor(self):
        header = PROGRAM.read_bytes()[:20]
        self.assertEqual(header[:4], b'\x7fELF')
        self.assertEqual(struct.unpack('<H', header[18:20])[0], AARCH64)

    def test_digits(self):
        self.compare('digits', DIGITS, 'image', '4,8,8,1', 'probabilities')

    def test_mobilenet_v2(self):
        model = mobilenet()
        if model is None:
            self.skipTest('the models beside the workspace are not there')
        self.compare('mobilenet_v2', model, 'input_1', '1,224,224,3', 'predictions')

    def test_what_is_not_there_is_named(self):
        nodes = [(b'x', b'Placeholder', b'', b'dtype'), (b'y', b'Tanh', b'x', b'T')]
        is_float = field(2, field(6, 1))
        graph = b''.join(
            field(1, field(1, name) + field(2, op) + (field(3, of) if of else b'') + field(5, field(1, key) + is_float))
            for name, op, of, key in nodes)
        path = pathlib.Path(os.environ.get('TEST_TMPDIR', '/tmp')) / 'other.pb'
        path.write_bytes(graph)
        result = self.run_model(path, 'x', '1', 'y', bytes(4))
        self.assertEqual((result.returncode, result.stdout), (255, b''))
        self.assertIn(b"no kernel for op 'Tanh' with T = float: node 'y'", result.stderr)

    def test_the_header_is_what_the_tool_makes_of_the_models(self):
        model = mobilenet()
        if model is None:
            self.skipTest('the models beside the workspace are not there')
        made = subprocess.run([HEADER_TOOL, '--style=permafrost', f'--graphs={DIGITS},{model}'],
                              capture_output=True, check=True, text=True).stdout
        paths = re.compile('--graphs=[^"]*')
        self.assertEqual(paths.sub('', (HERE / 'ops_to_register.h').read_text(encoding='utf-8')), paths.sub('', made))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
