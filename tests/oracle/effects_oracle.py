"""Compares the table of effects (tools/summary/op_effects.txt) with the ops that TensorFlow registers."""

import pathlib
import unittest

from tensorflow.core.framework import op_def_pb2
from tensorflow.python.client import pywrap_tf_session

TABLE = pathlib.Path(__file__).parents[2] / 'tools' / 'summary' / 'op_effects.txt'


class EffectsTable(unittest.TestCase):
    def test_has_every_op_of_tensorflow(self):
        registered = op_def_pb2.OpList()
        registered.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
        rows = dict(line.split() for line in TABLE.read_text().splitlines() if line and not line.startswith('#'))
        ops = {op.name for op in registered.op}
        # Decide for each op what it does besides computing, and add its row.
        self.assertEqual(sorted(ops - rows.keys()), [])
        self.assertEqual(sorted(rows.keys() - ops), [])


if __name__ == '__main__':
    unittest.main()
