"""Runs the guide's notebook in a Jupyter kernel, with a Keras model and with plots. tests/python/notebook_test.py runs it
without them."""

import os
import unittest

import nbclient
import nbformat
import python_package

NOTEBOOK = python_package.WORKSPACE / 'docs/guide/notebook.ipynb'
# The origin of the model, which no cell prints.
PROBE = 'print(type(keras).__module__, len(rows), min(share for _, _, share in rows[:2]))'


class NotebookOracle(unittest.TestCase):

    def test_every_cell_runs(self):
        os.environ.pop('MPLBACKEND', None)  # The kernel's backend, which shows figures as images.
        os.environ.update(PYTHONPATH=python_package.folder(), TF_CPP_MIN_LOG_LEVEL='3',
                          PERMAFROST_DIGITS=str(python_package.WORKSPACE / 'tests/models/digits'))
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        nbformat.validate(notebook)
        notebook.cells.append(nbformat.v4.new_code_cell(PROBE))
        nbclient.NotebookClient(notebook, timeout=600, kernel_name='python3').execute()
        outputs = [output for cell in notebook.cells if cell.cell_type == 'code' for output in cell.outputs]
        shown = [output.data for output in outputs if 'data' in output]
        self.assertGreaterEqual(sum('<table>' in data.get('text/html', '') for data in shown), 3)
        self.assertEqual(sum('image/png' in data for data in shown), 1)
        module, count, accuracy = ''.join(notebook.cells[-1].outputs[-1].text).split()
        self.assertTrue(module.startswith('keras.'), module)
        self.assertEqual(int(count), 4)
        self.assertGreater(float(accuracy), 0.9)


if __name__ == '__main__':
    unittest.main()
