"""Exchanges memory-mapped packages with TensorFlow, through package_client.cc, which is compiled here.

TensorFlow loads packages of Permafrost (plain, page-aligned and with shared regions), and its outputs equal those of the
original graph. Permafrost reads packages of TensorFlow: the graph is unchanged, and the tensors have the same offsets.

PERMAFROST_UPDATE_ORACLE=1 rewrites tests/formats/packages/tensorflow.pbmm.
"""

import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ['TF_ENABLE_ONEDNN_OPTS'] = '0'  # The setting under which the outputs were recorded.

from google.protobuf import text_format
import numpy as np
import tensorflow as tf

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
MODELS = pathlib.Path(os.environ.get('PERMAFROST_SHARED', WORKSPACE.parent / 'shared')) / 'models'
TOOL = os.environ.get('CONVERT_MEMMAPPED', WORKSPACE / 'bazel-bin/tools/convert_graphdef_memmapped_format')
PACKAGES = WORKSPACE / 'tests/formats/packages'
LEAST = 40  # Minimum bytes of a region; with the default there would be none.


def convert(source, target, *flags):
    return subprocess.run([TOOL, f'--in_graph={source}', f'--out_graph={target}', *flags], check=True,
                          capture_output=True, text=True).stdout


def regions(path):
    """Returns all regions except the graph's: name to (offset, length)."""
    data = pathlib.Path(path).read_bytes()
    (start,) = struct.unpack('<Q', data[-8:])
    found, at, end = {}, start, len(data) - 8

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < end:
        assert data[at] == 0x0A
        at += 1
        entry_end = varint() + at
        entry = {1: 0, 2: b'', 3: 0}
        while at < entry_end:
            tag = varint()
            value = varint()
            if tag & 7 == 2:
                entry[tag >> 3] = data[at:at + value]
                at += value
            else:
                entry[tag >> 3] = value
        found[entry[2].decode()] = (entry[1], entry[3])
    del found['memmapped_package://.']
    return found


class PackagesOracle(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.scratch = pathlib.Path(tempfile.mkdtemp())
        cls.client = cls.scratch / 'package_client'
        library = pathlib.Path(tf.sysconfig.get_lib())
        subprocess.run(['g++', '-O1', '-w', *tf.sysconfig.get_compile_flags(), '-o', cls.client,
                        pathlib.Path(__file__).with_name('package_client.cc'), f'-L{library}', '-Wl,--no-as-needed',
                        '-l:libtensorflow_cc.so.2', '-l:libtensorflow_framework.so.2', f'-Wl,-rpath,{library}'],
                       check=True)
        cls.linear = cls.scratch / 'linear.pb'
        graph = text_format.Parse((PACKAGES / 'linear.pbtxt').read_text(encoding='utf-8'), tf.compat.v1.GraphDef())
        cls.linear.write_bytes(graph.SerializeToString(deterministic=True))

    def run_in_tensorflow(self, package, outputs, feeds):
        """Returns the concatenated outputs and the number of regions."""
        arguments = []
        for name, value in feeds.items():
            file = self.scratch / 'feed'
            value.astype('<f4').tofile(file)
            arguments.append(f'{name}={file}:{",".join(str(dim) for dim in value.shape)}')
        out = self.scratch / 'out'
        done = subprocess.run([self.client, 'run', package, out, ','.join(outputs), *arguments], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return np.fromfile(out, '<f4'), int(done.stdout.split()[0])

    def test_tensorflow_runs_small_packages(self):
        x = np.arange(8, dtype=np.float32).reshape(2, 4)
        expected = x @ np.arange(1, 13, dtype=np.float32).reshape(4, 3) + np.array([1, -2, 3], np.float32)
        for flags, count in (((), 0), ((f'--min_conversion_tensor_size={LEAST}',), 1),
                             (('--min_conversion_tensor_size=1',), 2),
                             (('--min_conversion_tensor_size=1', '--page_aligned', '--dedupe'), 2)):
            package = self.scratch / 'linear.pbmm'
            convert(self.linear, package, *flags)
            found, found_regions = self.run_in_tensorflow(package, ['y'], {'x': x})
            np.testing.assert_array_equal(found, expected.ravel(), str(flags))
            self.assertEqual(found_regions, count)

    def test_tensorflow_runs_packages_with_packed_weights(self):
        folder = MODELS / 'mobilenet_v2'
        if not folder.is_dir():
            self.skipTest('the model is not at hand')
        package = self.scratch / 'packed.pbmm'
        convert(folder / 'model.pb', package, '--pack_for=onednn:f32')
        self.assertTrue(any('.packed.onednn.f32' in str(name) for name in regions(package)))
        spec = json.loads((folder / 'spec.json').read_text(encoding='utf-8'))
        found, _ = self.run_in_tensorflow(package, spec['outputs'],
                                          {spec['inputs'][0]['name']: np.load(folder / 'input_0.npy')})
        expected = np.load(folder / 'output_0_0.npy').ravel()
        self.assertLess(np.abs(found - expected).max(), 1e-4 * max(1.0, np.abs(expected).max()))

    def test_reads_what_tensorflow_writes(self):
        theirs = self.scratch / 'theirs.pbmm'
        subprocess.run([self.client, 'write', self.linear, theirs, str(LEAST)], check=True)
        back = self.scratch / 'back.pb'
        convert(theirs, back, '--unpack')
        self.assertEqual(tf.compat.v1.GraphDef.FromString(back.read_bytes()),
                         tf.compat.v1.GraphDef.FromString(self.linear.read_bytes()))
        if os.environ.get('PERMAFROST_UPDATE_ORACLE'):
            (PACKAGES / 'tensorflow.pbmm').write_bytes(theirs.read_bytes())

    def test_models(self):
        if not MODELS.is_dir():
            self.skipTest('the models are not at hand')
        for folder in sorted(MODELS.iterdir()):
            with self.subTest(folder.name):
                model, ours, theirs = folder / 'model.pb', self.scratch / 'ours.pbmm', self.scratch / 'theirs.pbmm'
                convert(model, ours)
                subprocess.run([self.client, 'write', model, theirs, '10000'], check=True)
                self.assertEqual(regions(ours), regions(theirs))
                (start,) = struct.unpack('<Q', ours.read_bytes()[-8:])
                end = max((offset + length for offset, length in regions(ours).values()), default=0)
                self.assertLess(end, start)
                self.assertEqual(ours.read_bytes()[:end], theirs.read_bytes()[:end])
                convert(theirs, self.scratch / 'back.pb', '--unpack')
                self.assertEqual(tf.compat.v1.GraphDef.FromString((self.scratch / 'back.pb').read_bytes()),
                                 tf.compat.v1.GraphDef.FromString(model.read_bytes()))
                spec = json.loads((folder / 'spec.json').read_text(encoding='utf-8'))
                feeds = {spec['inputs'][0]['name']: np.load(folder / 'input_0.npy')}
                found, _ = self.run_in_tensorflow(ours, spec['outputs'], feeds)
                expected = np.concatenate([np.load(folder / f'output_0_{j}.npy').ravel()
                                           for j in range(len(spec['outputs']))])
                self.assertLess(np.abs(found - expected).max(), 1e-4 * max(1.0, np.abs(expected).max()))


if __name__ == '__main__':
    unittest.main()
