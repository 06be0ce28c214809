"""Compares checkpoint readers with TensorFlow's: random checkpoints of both versions, with all types,
many variables, parts cut along one dimension or several, and what Savers and tf.train.Checkpoint write."""

import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import numpy as np
import tensorflow as tf

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
TOOL = os.environ.get('DUMP_CHECKPOINT', WORKSPACE / 'bazel-bin/tests/formats/checkpoint/dump_checkpoint')
TYPES = [tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.uint8, tf.int16, tf.uint16, tf.int32, tf.int64,
         tf.bool, tf.complex64, tf.complex128, tf.string]
# Types that SaveSlices of TensorFlow does not write.
NOT_IN_VERSION_1 = [tf.bfloat16]


def flat(value):
    """Returns the bytes as dump_checkpoint writes them."""
    if value.dtype == tf.string:
        return b''.join(struct.pack('<Q', len(text)) + text for text in np.ravel(np.array(value.numpy(), dtype=object)))
    return value.numpy().tobytes()


class Maker:
    """Returns random variables, whole and partitioned."""

    def __init__(self, seed, types):
        self.random, self.types = np.random.default_rng(seed), types

    def value(self, most):
        rank = int(self.random.integers(0, 4))
        shape = [int(self.random.integers(0 if self.random.random() < 0.05 else 1, most)) for _ in range(rank)]
        dtype = self.types[self.random.integers(len(self.types))]
        if dtype == tf.string:
            count = int(np.prod(shape, dtype=np.int64))
            texts = [self.random.bytes(int(self.random.integers(0, 300))) for _ in range(count)]
            return tf.reshape(tf.constant(texts, tf.string) if texts else tf.zeros([0], tf.string), shape)
        numbers = self.random.normal(size=shape) * 50
        if dtype.is_complex:
            half = tf.float32 if dtype == tf.complex64 else tf.float64
            return tf.complex(tf.constant(numbers, half), tf.constant(-numbers, half))
        if dtype == tf.bool:
            return tf.constant(numbers > 0, shape=shape)
        return tf.saturate_cast(tf.constant(numbers, tf.float64, shape), dtype)

    def cuts(self, size):
        """Returns ranges that partition [0, size)."""
        places = sorted(set(self.random.integers(1, size, self.random.integers(1, 4)))) if size > 1 else []
        return list(zip([0] + places, places + [size]))

    def parts(self, value):
        """Returns (specification, part) of each part for SaveV2; a single part if the variable cannot be partitioned."""
        if value.shape.rank == 0 or 0 in value.shape or self.random.random() < 0.6:
            return [('', value)]
        grid = [[(0, size)] for size in value.shape]
        for axis in self.random.integers(0, value.shape.rank, self.random.integers(1, 3)):
            grid[axis] = self.cuts(int(value.shape[axis]))
        pieces = [[]]
        for axis in grid:
            pieces = [piece + [extent] for piece in pieces for extent in axis]
        if len(pieces) == 1:
            return [('', value)]
        self.random.shuffle(pieces)
        sizes = ' '.join(map(str, value.shape))
        return [(sizes + ' ' + ':'.join(f'{a},{b - a}' for a, b in piece), value[tuple(slice(a, b) for a, b in piece)])
                for piece in pieces]


class CheckpointOracle(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def dumped(self, path):
        out = self.folder / 'dump'
        result = subprocess.run([TOOL, path, out], capture_output=True, text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        data, variables, at = out.read_bytes(), {}, 0
        for line in result.stdout.splitlines():
            dtype, shape, size, name = line.split(' ', 3)
            variables[name] = int(dtype), shape, data[at:at + int(size)]
            at += int(size)
        self.assertEqual(at, len(data))
        return variables

    def expect(self, path, values):
        ours = self.dumped(path)
        self.assertEqual(sorted(ours), sorted(values))
        for name, value in values.items():
            dtype, shape, data = ours[name]
            with self.subTest(name=name):
                self.assertEqual(dtype, value.dtype.as_datatype_enum)
                self.assertEqual(shape, '[' + ','.join(map(str, value.shape)) + ']')
                self.assertTrue(data == flat(value))

    def expect_as_tensorflow(self, path):
        reader = tf.train.load_checkpoint(str(path))
        self.expect(path, {name: tf.constant(reader.get_tensor(name), reader.get_variable_to_dtype_map()[name])
                           for name in reader.get_variable_to_shape_map()})

    def write(self, seed, count, shards, most):
        maker = Maker(seed, TYPES)
        values = {f'scope_{i % 7}/variable_{i}': maker.value(most) for i in range(count)}
        columns = [([], [], []) for _ in range(shards)]
        for name, value in values.items():
            for spec, piece in maker.parts(value):
                for column, entry in zip(columns[maker.random.integers(shards)], (name, spec, piece)):
                    column.append(entry)
        columns = [column for column in columns if column[0]]
        prefixes = [str(self.folder / f'part{i}') for i in range(len(columns))]
        for prefix, (names, specs, pieces) in zip(prefixes, columns):
            tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=specs, tensors=pieces)
        tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes, destination_prefix=str(self.folder / 'model'),
                                      delete_old_dirs=False)
        return values

    def test_random_bundles(self):
        for seed in range(8):
            values = self.write(seed, 60, 1 + seed % 4, 12)
            self.expect(self.folder / 'model', values)
            for path in self.folder.iterdir():
                path.unlink()

    def test_many_variables(self):
        values = self.write(100, 3000, 3, 4)
        self.expect(self.folder / 'model', values)

    def test_large_variables(self):
        values = self.write(200, 60, 2, 90)
        self.assertGreater(sum(len(flat(value)) for value in values.values()), 5_000_000)
        self.expect(self.folder / 'model', values)

    def test_random_version_1(self):
        maker = Maker(300, [dtype for dtype in TYPES if dtype not in NOT_IN_VERSION_1])
        values = {f'variable_{i}': maker.value(12) for i in range(150)}
        names, specs, pieces = [], [], []
        for name, value in values.items():
            for spec, piece in maker.parts(value):
                names.append(name), specs.append(spec), pieces.append(piece)
        path = self.folder / 'old'
        tf.raw_ops.SaveSlices(filename=str(path), tensor_names=names, shapes_and_slices=specs, data=pieces)
        self.expect(path, values)

    def test_savers(self):
        saved = []
        for version in (tf.compat.v1.train.SaverDef.V1, tf.compat.v1.train.SaverDef.V2):
            for sharded in (False, True):
                with self.subTest(version=version, sharded=sharded), tf.Graph().as_default():
                    whole = tf.compat.v1.get_variable('whole', [50, 40])
                    with tf.compat.v1.variable_scope('cut', partitioner=tf.compat.v1.fixed_size_partitioner(3)):
                        cut = tf.convert_to_tensor(tf.compat.v1.get_variable('weights', [31, 7]))
                    average = tf.compat.v1.train.ExponentialMovingAverage(0.9)
                    average.apply([whole])
                    saver = tf.compat.v1.train.Saver(write_version=version, sharded=sharded)
                    with tf.compat.v1.Session() as session:
                        session.run(tf.compat.v1.global_variables_initializer())
                        path = saver.save(session, str(self.folder / f'saver{version}{sharded}'), global_step=3)
                        values = session.run({'whole': whole, average.average_name(whole): average.average(whole),
                                              'cut/weights': cut})
                    saved.append((path, values))
        for path, values in saved:  # TensorFlow's own reader does not join parts.
            self.expect(path, {name: tf.constant(value) for name, value in values.items()})

    def test_checkpoint_of_objects(self):
        model = tf.keras.Sequential([tf.keras.layers.Input([9]), tf.keras.layers.Dense(200), tf.keras.layers.Dense(3)])
        path = tf.train.Checkpoint(model=model).save(str(self.folder / 'ckpt'))
        self.expect_as_tensorflow(path)

    def test_saved_model(self):
        module = tf.Module()
        module.weights = tf.Variable(tf.random.normal([300, 20]))
        tf.saved_model.save(module, str(self.folder / 'saved'))
        expected = self.folder / 'saved' / 'variables' / 'variables'
        self.assertEqual(self.dumped(self.folder / 'saved'), self.dumped(expected))
        self.expect_as_tensorflow(expected)


if __name__ == '__main__':
    unittest.main()
