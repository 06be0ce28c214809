#!/usr/bin/env python3
"""Writes the checkpoints that checkpoint_test.cc reads with TensorFlow, and records their values.

    python3 tests/formats/checkpoint/make_checkpoints.py      (needs TensorFlow)

written/<name>* are the files of each checkpoint. written/<name>.expected.pb is a GraphDef with a constant for each
variable, whose attribute _name is the variable's name. Also writes the corpus of tests/fuzz/checkpoint_fuzz.cc
and the weights of tests/golden/sparsify_gather and tests/cli.
"""

import os
import pathlib
import shutil

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
os.environ['CUDA_VISIBLE_DEVICES'] = ''
import numpy as np
import tensorflow as tf

CORPUS = pathlib.Path(__file__).resolve().parents[2] / 'fuzz' / 'corpus' / 'checkpoint'
GOLDEN = pathlib.Path(__file__).resolve().parents[2] / 'golden' / 'sparsify_gather'
FOLDER = pathlib.Path(__file__).resolve().parent / 'written'
RANDOM = np.random.default_rng(20240229)


def some(dtype, *shape):
    return tf.cast(tf.constant(RANDOM.integers(-100, 100, shape)), dtype)


def complexes(dtype, *shape):
    real = np.float32 if dtype == tf.complex64 else np.float64
    return tf.complex(tf.cast(some(tf.int32, *shape), real), tf.cast(some(tf.int32, *shape), real))


def as_proto(value):
    """Handles quantised types too, which numpy turns into integers."""
    codes = {tf.qint8: tf.int8, tf.quint8: tf.uint8, tf.qint32: tf.int32}.get(value.dtype)
    proto = tf.make_tensor_proto(tf.bitcast(value, codes) if codes else value)
    proto.dtype = value.dtype.as_datatype_enum
    return proto


def record(name, values):
    graph = tf.compat.v1.GraphDef()
    for i, (variable, value) in enumerate(sorted(values.items())):
        node = graph.node.add(name=f'v{i}', op='Const')
        node.attr['_name'].s = variable.encode()
        node.attr['dtype'].type = value.dtype.as_datatype_enum
        node.attr['value'].tensor.CopyFrom(as_proto(value))
    (FOLDER / f'{name}.expected.pb').write_bytes(graph.SerializeToString(deterministic=True))


def quantized(value, dtype):
    return tf.bitcast(value, dtype)


def all_types():
    """One variable of each type, and edge cases of shapes."""
    return {
        'types/float': tf.constant(RANDOM.normal(size=(3, 5)), tf.float32),
        'types/special': tf.constant([np.nan, np.inf, -np.inf, -0.0, 1e-45], tf.float32),
        'types/double': tf.constant(RANDOM.normal(size=(7,)), tf.float64),
        'types/half': tf.constant(RANDOM.normal(size=(2, 3)), tf.float16),
        'types/bfloat16': tf.cast(tf.constant(RANDOM.normal(size=(5,))), tf.bfloat16),
        'types/int8': some(tf.int8, 4),
        'types/uint8': tf.constant([0, 1, 127, 128, 255], tf.uint8),
        'types/int16': some(tf.int16, 3),
        'types/uint16': tf.constant([0, 65535], tf.uint16),
        'types/int32': tf.constant([-2**31, -1, 0, 2**31 - 1], tf.int32),
        'types/int64': tf.constant([-2**63, -1, 0, 2**63 - 1], tf.int64),
        'types/bool': tf.constant([[True, False], [False, True]]),
        'types/complex64': complexes(tf.complex64, 3),
        'types/complex128': complexes(tf.complex128, 2),
        'types/qint8': quantized(some(tf.int8, 6), tf.qint8),
        'types/quint8': quantized(tf.constant([0, 200, 255], tf.uint8), tf.quint8),
        'types/qint32': quantized(tf.constant([-5, 2**30], tf.int32), tf.qint32),
        'types/string': tf.constant([[b'', b'a'], [b'nul\0 and \xff', 'grün'.encode()]]),
        'shapes/scalar': tf.constant(2.5),
        'shapes/one': tf.constant([[[7]]], tf.int64),
        'shapes/empty': tf.zeros([0, 3]),
        'shapes/empty_string': tf.constant([], tf.string),
        'shapes/scalar_string': tf.constant(b'x' * 300),
    }


def partitioned():
    """Whole values and their partitions: a slice is a (start, length) or None for each dimension."""
    rows = tf.constant(RANDOM.normal(size=(7, 3)), tf.float32)
    columns = some(tf.int32, 2, 9, 2)
    tiles = tf.constant(RANDOM.normal(size=(4, 6)), tf.float64)
    words = tf.constant([b'a', b'bc', b'', b'def'])
    return {
        'parts/rows': (rows, [[(0, 3), None], [(3, 2), None], [(5, 2), None]]),
        'parts/columns': (columns, [[None, (0, 4), None], [None, (4, 5), None]]),
        'parts/tiles': (tiles, [[(i, 2), (j, 3)] for i in (0, 2) for j in (3, 0)]),
        'parts/words': (words, [[(0, 1)], [(1, 3)]]),
        # Starts and lengths that need more than one byte in the key.
        'parts/long': (some(tf.int8, 1000), [[(0, 63)], [(63, 64)], [(127, 873)]]),
    }


def part(value, extents):
    text = ' '.join(map(str, value.shape)) + ' ' + ':'.join('-' if e is None else f'{e[0]},{e[1]}' for e in extents)
    return text, value[tuple(slice(None) if e is None else slice(e[0], e[0] + e[1]) for e in extents)]


def write_version_2():
    """Two shards, as written by a Saver with sharded=True; each partitioned variable is in both."""
    wholes, parts = all_types(), partitioned()
    shards = [([], [], []), ([], [], [])]

    def add(shard, name, spec, value):
        for column, entry in zip(shards[shard], (name, spec, value)):
            column.append(entry)

    for i, (name, value) in enumerate(wholes.items()):
        add(i % 2, name, '', value)
    for name, (value, cuts) in parts.items():
        for i, extents in enumerate(cuts):
            add(i % 2, name, *part(value, extents))
    prefixes = []
    for i, (names, specs, values) in enumerate(shards):
        prefixes.append(str(FOLDER / f'part{i}'))
        tf.raw_ops.SaveV2(prefix=prefixes[-1], tensor_names=names, shape_and_slices=specs, tensors=values)
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes, destination_prefix=str(FOLDER / 'v2'),
                                  delete_old_dirs=False)
    record('v2', {**wholes, **{name: value for name, (value, _) in parts.items()}})


def write_version_1():
    """One file, and a pair of shards."""
    unsupported = ('types/bfloat16',)
    wholes = {name: value for name, value in all_types().items() if name not in unsupported}
    cut = partitioned()
    names, specs, values = list(wholes), [''] * len(wholes), list(wholes.values())
    for name, (value, cuts) in cut.items():
        for extents in cuts:
            spec, piece = part(value, extents)
            names.append(name), specs.append(spec), values.append(piece)
    tf.raw_ops.SaveSlices(filename=str(FOLDER / 'v1'), tensor_names=names, shapes_and_slices=specs, data=values)
    record('v1', {**wholes, **{name: value for name, (value, _) in cut.items()}})

    value, cuts = cut['parts/rows']
    for i in range(2):
        pieces = [part(value, extents) for extents in cuts[i::2]]
        tf.raw_ops.SaveSlices(filename=str(FOLDER / f'v1_shards-{i:05d}-of-00002'),
                              tensor_names=['rows'] * len(pieces) + [f'own{i}'],
                              shapes_and_slices=[spec for spec, _ in pieces] + [''],
                              data=[piece for _, piece in pieces] + [tf.constant([float(i)])])
    record('v1_shards', {'rows': value, 'own0': tf.constant([0.0]), 'own1': tf.constant([1.0])})


def write_objects():
    """The files that tf.train.Checkpoint writes in two saves, with the file that names the latest."""
    folder = FOLDER / 'objects'
    kernel = tf.Variable(tf.constant(RANDOM.normal(size=(2, 2)), tf.float32))
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(kernel=kernel), folder, max_to_keep=2)
    for _ in range(2):
        kernel.assign_add(tf.ones([2, 2]))
        manager.save()
    record('objects', {'kernel/.ATTRIBUTES/VARIABLE_VALUE': tf.constant(kernel)})


def write_corpus():
    """Writes the seeds of tests/fuzz/checkpoint_fuzz.cc: each is a table, followed by the shard if it is a bundle."""
    wholes, cut = all_types(), partitioned()['parts/rows']
    pieces = [part(cut[0], extents) for extents in cut[1]]
    few = ('types/float', 'types/string', 'types/bool', 'shapes/scalar', 'shapes/empty')
    names, values = list(few), [wholes[name] for name in few]
    names += ['rows'] * len(pieces)
    specs = [''] * len(few) + [spec for spec, _ in pieces]
    values += [piece for _, piece in pieces]
    CORPUS.mkdir(exist_ok=True)
    prefix = FOLDER / 'part'
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=specs, tensors=values)
    index, shard = (pathlib.Path(f'{prefix}{end}').read_bytes() for end in ('.index', '.data-00000-of-00001'))
    (CORPUS / 'bundle.bin').write_bytes(index + shard)
    tf.raw_ops.SaveSlices(filename=str(prefix), tensor_names=names, shapes_and_slices=specs, data=values)
    (CORPUS / 'slices.bin').write_bytes(prefix.read_bytes())


def write_golden():
    """Writes the weights that the golden cases of sparsify_gather read."""
    column = lambda *values: tf.constant([[value] for value in values], tf.float32)
    halves = [[(0, 2), None], [(2, 4), None]]
    part_values = column(0, 0.5, 0, 0, 0, -1)
    pieces = [part(part_values, extents) for extents in halves]
    tf.raw_ops.SaveV2(prefix=str(GOLDEN / 'weights'), tensor_names=['v', 'part', 'part'],
                      shape_and_slices=[''] + [spec for spec, _ in pieces],
                      tensors=[column(0, 3, 0, 0, 1e-6, -2)] + [piece for _, piece in pieces])
    for path in GOLDEN.glob('weights.*'):
        shutil.copy(path, GOLDEN.parents[1] / 'cli' / 'graphs')


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    write_version_2()
    write_version_1()
    write_objects()
    write_corpus()
    write_golden()
    for path in FOLDER.glob('part*'):
        path.unlink()
    print(f'{sum(p.stat().st_size for p in FOLDER.rglob("*") if p.is_file())} bytes in {FOLDER}')


if __name__ == '__main__':
    main()
