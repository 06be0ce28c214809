"""Tests that every cell of the guide's notebook runs, in order, as in a kernel.

The cells are executed here by Python alone, so that the test runs where Jupyter is not installed; what it shows is the
values of last expressions, of which those with a page of their own make it.
"""

import ast
import contextlib
import io
import json
import os
import pathlib
import unittest

import models

NOTEBOOK = pathlib.Path('docs/guide/notebook.ipynb')


def run_cell(source, scope):
    """Executes a cell and returns the value of its last expression, or None."""
    tree = ast.parse(source)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, 'cell', 'exec'), scope)  # pylint: disable=exec-used
    return None if last is None else eval(compile(last, 'cell', 'eval'), scope)  # pylint: disable=eval-used


class NotebookTest(unittest.TestCase):

    def test_every_cell_runs(self):
        os.environ['PERMAFROST_DIGITS'] = models.DIGITS
        notebook = json.loads(NOTEBOOK.read_text(encoding='utf-8'))
        self.assertEqual(notebook['nbformat'], 4)
        scope = {'__name__': '__main__'}
        pages = 0
        printed = io.StringIO()
        for number, cell in enumerate(notebook['cells']):
            if cell['cell_type'] != 'code':
                continue
            with self.subTest(cell=number), contextlib.redirect_stdout(printed):
                self.assertEqual((cell['outputs'], cell['execution_count']), ([], None))
                value = run_cell(''.join(cell['source']), scope)
                if hasattr(value, '_repr_html_'):
                    self.assertIn('<table>', value._repr_html_())
                    pages += 1
        self.assertGreaterEqual(pages, 3)
        text = printed.getvalue()
        for expected in ('onednn', 'float', '4 bits'):
            self.assertIn(expected, text)
        self.assertGreater(min(share for _, _, share in scope['rows'][:2]), 0.95)


if __name__ == '__main__':
    unittest.main()
