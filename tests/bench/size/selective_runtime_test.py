"""Compares a selective runtime with the full one: outputs must be equal bit by bit, and missing ops must be reported.

    selective_runtime_test.py FULL DIGITS_MODEL EVAL_IMAGES DIGITS_PROGRAM CONVERT_MODEL SELECTIVE...

Also runs the large models and the TensorFlow Lite models if the folder `shared` ($PERMAFROST_SHARED, or beside the
workspace) has them. The programs mobilenet_v2, inception_v3, keyword_spotting_int8 and image_classification_int8, and
digits_program for the program file of the model for digits, are in the folder of FULL.
"""

import json

import os
import pathlib
import re
import struct
import subprocess
import sys
import unittest

import size_table

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parents[2]))
from shared_folder import shared_folder  # noqa: E402

FULL, MODEL, IMAGES, PROGRAM, CONVERT_MODEL, *SELECTIVE = (
    pathlib.Path(argument).absolute() for argument in sys.argv[1:])
OF_PROGRAM = FULL.parent / 'digits_program'
TEMPORARY = pathlib.Path(os.environ.get('TEST_TMPDIR', '/tmp'))

# Code and data of whole programs: the goals of README.md for quantised models; for others the 0.2 MB that the front page
# names, with a margin.
MOST_BYTES = {
    'digits': 250_000,
    'digits_program': 125_000,
    'mobilenet_v2': 250_000,
    'inception_v3': 250_000,
    'keyword_spotting_int8': 150_000,
    'image_classification_int8': 220_000,
}
IMAGE_BYTES = 8 * 8 * 4


def data_of(path):
    """Returns the bytes of the elements of an NPY file."""
    content = pathlib.Path(path).read_bytes()
    size, = struct.unpack('<H', content[8:10])
    return content[10 + size:]


def run(program, model, name, dims, output, data):
    return subprocess.run([program, model, name, dims, output], input=data, capture_output=True, check=False)


def varint(value):
    encoded = b''
    while value >= 128:
        encoded += bytes([value % 128 + 128])
        value //= 128
    return encoded + bytes([value])


def message(number, content):
    """Returns a length-delimited field of a protobuf message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def node(name, op, inputs, dtype):
    """Returns a NodeDef with an attribute T."""
    attr = message(1, b'T') + message(2, varint(6 << 3) + varint(dtype))
    return message(1, message(1, name) + message(2, op) + b''.join(message(3, i) for i in inputs) + message(5, attr))


def placeholder(name, dtype):
    attr = message(1, b'dtype') + message(2, varint(6 << 3) + varint(dtype))
    return message(1, message(1, name) + message(2, b'Placeholder') + message(5, attr))


class SelectiveRuntimeTest(unittest.TestCase):

    def test_outputs_are_bit_equal(self):
        images = data_of(IMAGES)
        for i in range(0, 200, 7):
            image = images[i * IMAGE_BYTES:(i + 1) * IMAGE_BYTES]
            self.assertEqual(len(image), IMAGE_BYTES)
            expected = run(FULL, MODEL, 'image', '1,8,8,1', 'probabilities', image)
            self.assertEqual((expected.returncode, len(expected.stdout)), (0, 40), expected.stderr)
            for program, model in [*((program, MODEL) for program in SELECTIVE), (OF_PROGRAM, PROGRAM)]:
                with self.subTest(program=program.name, image=i):
                    found = run(program, model, 'image', '1,8,8,1', 'probabilities', image)
                    self.assertEqual((found.returncode, found.stderr), (0, b''))
                    self.assertEqual(found.stdout, expected.stdout)

    def test_outputs_of_large_models_are_bit_equal(self):
        shared = shared_folder(IMAGES)
        if shared is None:
            self.skipTest('no folder of large models')
        for name, dims in ('mobilenet_v2', '1,224,224,3'), ('inception_v3', '1,299,299,3'):
            folder = shared / 'models' / name
            if not folder.is_dir() or not (FULL.parent / name).is_file():
                continue
            image = data_of(folder / 'input_0.npy')
            expected = run(FULL, folder / 'model.pb', 'input_1', dims, 'predictions', image)
            found = run(FULL.parent / name, folder / 'model.pb', 'input_1', dims, 'predictions', image)
            with self.subTest(model=name):
                self.assertEqual((expected.returncode, found.returncode), (0, 0), expected.stderr + found.stderr)
                self.assertGreater(len(found.stdout), 0)
                self.assertEqual(found.stdout, expected.stdout)

    def test_outputs_of_quantised_models_are_those_of_litert(self):
        """Outputs of LiteRT's reference kernels, bit by bit; floats are those of its DEQUANTIZE."""
        shared = shared_folder(IMAGES)
        if shared is None or not (shared / 'models_tflite').is_dir():
            self.skipTest('no folder of TensorFlow Lite models')
        for name in ('keyword_spotting_int8', 'image_classification_int8'):
            folder = shared / 'models_tflite' / name
            spec = json.loads((folder / 'spec.json').read_text())
            feed, fetch = spec['inputs'][0], spec['outputs'][0]
            program = TEMPORARY / f'{name}.program'
            subprocess.run([CONVERT_MODEL, folder / 'model.tflite', program], check=True, capture_output=True)
            for sample in range(spec['samples']):
                with self.subTest(model=name, sample=sample):
                    found = run(FULL.parent / name, program, feed['name'], ','.join(map(str, feed['shape'])), fetch['name'],
                                data_of(folder / f'input_{sample}_0.npy'))
                    self.assertEqual((found.returncode, found.stderr), (0, b''))
                    self.assertEqual(found.stdout, data_of(folder / f'output_{sample}_0.npy'))

    def test_programs_have_their_sizes(self):
        for name, most in MOST_BYTES.items():
            with self.subTest(name):
                self.assertLess(size_table.measure(FULL.parent / name)['code_and_data'], most)

    def test_broken_program_files_are_refused(self):
        content = PROGRAM.read_bytes()
        path = TEMPORARY / 'broken.program'
        broken = [content[:size] for size in range(1, len(content) - 64, len(content) // 40)]
        directory = 16 + int.from_bytes(content[8:16], 'little')
        for at in range(0, directory, directory // 200):
            broken.append(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1:])
        refused = 0
        for bytes_of_file in broken:
            path.write_bytes(bytes_of_file)
            found = run(OF_PROGRAM, path, 'image', '1,8,8,1', 'probabilities', bytes(IMAGE_BYTES))
            self.assertIn(found.returncode, (0, 255), found)
            refused += found.returncode == 255
            if found.returncode == 255:
                self.assertTrue(re.fullmatch(rb'run_once: [^\n]+\n', found.stderr), found.stderr)
        self.assertGreater(refused, 100)

    def check_refusal(self, nodes, pattern):
        path = pathlib.Path(os.environ.get('TEST_TMPDIR', '/tmp')) / 'other.pb'
        path.write_bytes(nodes)
        for program in SELECTIVE:
            with self.subTest(program=program.name):
                found = run(program, path, 'x', '2', 'y', bytes(8))
                self.assertEqual((found.returncode, found.stdout), (255, b''))
                self.assertRegex(found.stderr.decode(), pattern)
                self.assertIn('make ops_to_register.h again with print_selective_registration_header '
                              '--style=permafrost --graphs=', found.stderr.decode())
                self.assertEqual(found.stderr.count(b'\n'), 1)

    def test_a_missing_op_is_named(self):
        # A kernel of the full runtime only, and an op unknown to both.
        self.check_refusal(placeholder(b'x', 1) + node(b'y', b'Tanh', [b'x'], 1),
                           r"no kernel for op 'Tanh' with T = float: node 'y'")
        self.check_refusal(placeholder(b'x', 1) + node(b'y', b'Nonsense', [b'x'], 1),
                           r"no kernel for op 'Nonsense' with T = float: node 'y'")

    def test_a_missing_type_is_named(self):
        self.check_refusal(placeholder(b'x', 2) + node(b'y', b'Relu', [b'x'], 2),
                           r"no kernel for op 'Relu' with T = double in this build: node 'y'")

    def test_missing_strings_are_reported(self):
        tensor = varint(1 << 3) + varint(7) + message(8, b'text')
        attrs = message(5, message(1, b'value') + message(2, message(8, tensor)))
        self.check_refusal(placeholder(b'x', 1) + message(1, message(1, b'y') + message(2, b'Const') + attrs),
                           r"node 'y' \(Const\): attr 'value': a tensor of strings; this build holds only what")

    def test_missing_functions_are_reported(self):
        function = message(2, message(1, message(1, message(1, b'f'))))
        self.check_refusal(placeholder(b'x', 1) + node(b'y', b'Relu', [b'x'], 1) + function, r'the graph has functions')

    def test_broken_files_are_refused(self):
        model = MODEL.read_bytes()
        path = pathlib.Path(os.environ.get('TEST_TMPDIR', '/tmp')) / 'broken.pb'
        for size in range(1, len(model), len(model) // 40):
            path.write_bytes(model[:size])
            for program in SELECTIVE:
                found = run(program, path, 'image', '1,8,8,1', 'probabilities', bytes(IMAGE_BYTES))
                self.assertEqual((found.returncode, found.stdout), (255, b''), (program, size))
                self.assertTrue(re.fullmatch(rb'run_once: [^\n]+\n', found.stderr), found.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
