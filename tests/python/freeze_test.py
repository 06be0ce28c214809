"""Tests freeze_graph under its original name, on models saved by TensorFlow."""

import pathlib
import tempfile
import unittest

import permafrost
from permafrost.freeze_graph import freeze_graph, freeze_graph_with_def_protos

FOLDER = pathlib.Path('tests/freeze/models')


class FreezeTest(unittest.TestCase):

    def test_a_saved_model(self):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder, 'frozen.pb')
            data = freeze_graph('', '', True, '', '', '', '', str(output), True, '',
                                input_saved_model_dir=str(FOLDER / 'tf2_cnn'))
            self.assertEqual(data, output.read_bytes())
        frozen = permafrost.load(data)
        self.assertNotIn('VarHandleOp', {node.op for node in frozen.nodes})
        # load freezes the model, and the signature determines the inputs and outputs.
        loaded = permafrost.load(FOLDER / 'tf2_cnn')
        self.assertEqual({name.split(':')[0] for name, _, _ in loaded.inputs}, {name for name, _, _ in frozen.inputs})
        self.assertTrue(loaded.inputs)

    def test_a_checkpoint(self):
        folder = FOLDER / 'tf1_checkpoint_v2'
        graph, prefix = folder / 'graph.pb', str(folder / 'model.ckpt')
        data = freeze_graph(str(graph), None, True, prefix, 'scores', 'save/restore_all', 'save/Const:0', '', True, '')
        frozen = permafrost.load(data)
        self.assertFalse({'VariableV2', 'VarHandleOp'} & {node.op for node in frozen.nodes})
        self.assertEqual([name for name, _, _ in frozen.outputs], ['scores'])
        same = freeze_graph_with_def_protos(graph.read_bytes(), None, prefix, 'scores', '', '', '', True, '')
        self.assertEqual(same, data)

    def test_errors(self):
        with self.assertRaisesRegex(ValueError, 'what to freeze is missing'):
            freeze_graph('', '', True, '', 'y', '', '', '', True, '')
        with self.assertRaises(FileNotFoundError):
            freeze_graph('/no/such.pb', '', True, '/no/such', 'y', '', '', '', True, '')
        with self.assertRaisesRegex(ValueError, 'checkpoint_version: found 3'):
            freeze_graph('a', '', True, 'b', 'y', '', '', '', True, '', checkpoint_version=3)
        with self.assertRaisesRegex(TypeError, 'input_graph: found an object of type int'):
            freeze_graph(3, '', True, 'b', 'y', '', '', '', True, '')


if __name__ == '__main__':
    unittest.main()
