"""Tests the original functions with substitutes for TensorFlow's messages; tests/oracle/python_oracle.py has the real ones."""

import pathlib
import tempfile
import unittest

import permafrost
from permafrost import optimize_for_inference_lib, strip_unused_lib
from permafrost.graph_transforms import TransformGraph

import models


class Message:
    """The methods of a GraphDef that are used."""

    def __init__(self, data=b''):
        self.data = data

    def SerializeToString(self):  # pylint: disable=invalid-name
        return self.data

    @classmethod
    def FromString(cls, data):  # pylint: disable=invalid-name
        return cls(data)


class OldMessage:
    """A message that can only parse into itself."""

    data = b''

    def SerializeToString(self):  # pylint: disable=invalid-name
        return self.data

    def ParseFromString(self, data):  # pylint: disable=invalid-name
        self.data = data


def names(data):
    return [node.name for node in permafrost.load(data, inputs=[], outputs=[]).nodes]


class NamesOfTheOriginalTest(unittest.TestCase):

    def setUp(self):
        self.data = models.small().to_bytes()

    def test_modules_are_found_without_an_import_of_their_own(self):
        for name, function in (('freeze_graph', 'freeze_graph'), ('graph_transforms', 'TransformGraph'),
                               ('strip_unused_lib', 'strip_unused')):
            self.assertTrue(callable(getattr(getattr(permafrost, name), function)))
        with self.assertRaises(AttributeError):
            permafrost.nothing  # pylint: disable=no-member,pointless-statement

    def test_gives_back_what_it_was_given(self):
        arguments = ['x'], ['outer'], ['strip_unused_nodes']
        self.assertIsInstance(TransformGraph(self.data, *arguments), bytes)
        self.assertEqual(names(TransformGraph(self.data, *arguments)), ['x', 'inner', 'outer'])
        message = TransformGraph(Message(self.data), *arguments)
        self.assertIsInstance(message, Message)
        self.assertEqual(names(message.data), ['x', 'inner', 'outer'])
        old = OldMessage()
        old.data = self.data
        result = TransformGraph(old, *arguments)
        self.assertIsInstance(result, OldMessage)
        self.assertEqual(names(result.data), ['x', 'inner', 'outer'])
        self.assertEqual(old.data, self.data)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'model.pbtxt')
            path.write_text(models.SMALL, encoding='ascii')
            for item in (path, str(path)):
                self.assertEqual(names(TransformGraph(item, *arguments)), ['x', 'inner', 'outer'])

    def test_takes_transforms_as_the_original_does(self):
        transforms = ['strip_unused_nodes remove_device', 'rename_op(old_op_name="Neg", new_op_name="Abs")']
        result = permafrost.load(TransformGraph(self.data, ['x'], ['outer'], transforms))
        self.assertEqual(result.nodes['outer'].op, 'Abs')
        self.assertEqual(TransformGraph(self.data, ['x'], ['y'], []), self.data)
        self.assertEqual(TransformGraph(self.data, ['x'], ['y'], [' ']), self.data)
        self.assertEqual(TransformGraph(self.data, ['not there'], ['y'], ['remove_device']), self.data)

    def test_errors_are_of_the_original_kinds(self):
        with self.assertRaisesRegex(ValueError, "'nope' not recognized"):
            TransformGraph(self.data, ['x'], ['y'], ['nope'])
        with self.assertRaisesRegex(ValueError, 'z'):
            TransformGraph(self.data, ['x'], ['z'], ['remove_device'])
        with self.assertRaises(ValueError):
            TransformGraph(b'\xff\xff', ['x'], ['y'], ['remove_device'])
        with self.assertRaisesRegex(TypeError, 'input_graph_def: found None'):
            TransformGraph(None, ['x'], ['y'], ['remove_device'])
        with self.assertRaisesRegex(TypeError, 'outputs: found None'):
            TransformGraph(self.data, ['x'], None, ['remove_device'])

    def test_strips(self):
        result = strip_unused_lib.strip_unused(Message(self.data), ['inner'], ['outer'], 1)
        stripped = permafrost.load(result.data)
        self.assertEqual([(node.name, node.op) for node in stripped.nodes], [('inner', 'Placeholder'), ('outer', 'Neg')])
        integers = permafrost.load(models.SMALL.replace('DT_FLOAT', 'DT_INT32').replace('float_val', 'int_val').encode())
        by_list = strip_unused_lib.strip_unused(integers.to_bytes(), ['inner'], ['outer'], [3])
        self.assertEqual(permafrost.load(by_list).nodes['inner'].attributes['dtype'], 'int32')
        with self.assertRaisesRegex(RuntimeError, 'expected int32') as raised:
            strip_unused_lib.strip_unused(integers.to_bytes(), ['inner'], ['outer'], 1)
        self.assertEqual(raised.exception.pass_name, 'strip_unused_nodes')
        with self.assertRaisesRegex(ValueError, 'refer to a Tensor'):
            strip_unused_lib.strip_unused(self.data, ['x:0'], ['y'], 1)
        with self.assertRaisesRegex(KeyError, 'z'):
            strip_unused_lib.strip_unused(self.data, ['z'], ['y'], 1)
        with self.assertRaisesRegex(ValueError, 'found 2 types'):
            strip_unused_lib.strip_unused(self.data, ['x'], ['y'], [1, 1])
        with self.assertRaises(ValueError):
            strip_unused_lib.strip_unused(self.data, ['x'], ['y'], 4711)

    def test_strips_files(self):
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, 'in.pb'), pathlib.Path(folder, 'out.pb')
            source.write_bytes(self.data)
            strip_unused_lib.strip_unused_from_files(str(source), True, str(target), True, 'inner', 'outer', 1)
            self.assertEqual(names(target.read_bytes()), ['inner', 'outer'])

    def test_optimizes(self):
        with open(models.DIGITS + 'digits.pb', 'rb') as file:
            data = file.read()
        result = optimize_for_inference_lib.optimize_for_inference(Message(data), ['image'], ['probabilities'], 1)
        model, optimized = models.digits(), permafrost.load(result.data)
        self.assertLess(len(optimized), len(model))
        self.assertNotIn('CheckNumerics', {node.op for node in optimized.nodes})
        self.assertTrue(model.verify(optimized, model.random_inputs()))
        folded = optimize_for_inference_lib.fold_batch_norms(data, ['probabilities'])
        self.assertTrue(model.verify(permafrost.load(folded), model.random_inputs()))


if __name__ == '__main__':
    unittest.main()
