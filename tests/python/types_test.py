"""Runs mypy on the package and on code that uses it: annotations are correct, and type errors are found."""

import os
import pathlib
import subprocess
import tempfile
import unittest

GOOD = '''
from typing import Dict
import permafrost
from permafrost import passes

model: permafrost.Model = permafrost.load('x', key=['a'], outputs=['y'])
small: permafrost.Model = model.transform([passes.quantize_weights(minimum_size=3, exclude_op=['MatMul']), 'fold_constants'])
name: str = small.inputs[0].name
answers: Dict[str, object] = model.session(delegate='onednn', threads=2).run({'x': 1})
agree: bool = model.verify(small).passes
best: float = model.benchmark().best
data: bytes = small.to_bytes(compress='zstd')
'''

# Lines of code, with the expected message of mypy.
BAD = (
    ("permafrost.load(3)", 'arg-type'),
    ("passes.quantize_weights(minimum_size='many')", 'arg-type'),
    ("passes.quantize_weights(minimum=3)", 'call-arg'),
    ("passes.rename_op()", 'call-arg'),
    ("permafrost.load('x').transform(3)", 'arg-type'),
    ("permafrost.load('x').session(threads='two')", 'arg-type'),
    ("permafrost.load('x').inputs[0].nonsense", 'attr-defined'),
)


class TypesTest(unittest.TestCase):

    def check(self, code):
        """Returns the output of mypy for the package and a file with this code."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'use.py')
            path.write_text(code, encoding='utf-8')
            return subprocess.run(['/usr/bin/mypy', f'--cache-dir={folder}/cache', '--show-error-codes', '--no-pretty',
                                   '--hide-error-context', str(path), 'python/permafrost'],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                                  env={'PATH': '/usr/bin', 'MYPYPATH': 'python'}).stdout

    def test_what_is_right_passes(self):
        output = self.check(GOOD)
        self.assertNotIn('error:', output)
        self.assertIn('Success', output)

    def test_what_is_wrong_is_found(self):
        head = 'import permafrost\nfrom permafrost import passes\n'
        output = self.check(head + '\n'.join(line for line, _ in BAD) + '\n')
        for number, (line, code) in enumerate(BAD, head.count('\n') + 1):
            self.assertRegex(output, rf'use\.py:{number}: error: .*\[{code}\]', line)

    def test_the_stub_is_that_of_the_extension(self):
        with tempfile.TemporaryDirectory() as folder:
            settings, allowed = pathlib.Path(folder, 'mypy.ini'), pathlib.Path(folder, 'allowed')
            settings.write_text('[mypy]\ncheck_untyped_defs = true\n', encoding='utf-8')
            # pybind11's classes have a metaclass, and a constructor that raises.
            classes = 'EditedNode|Editor|Model|NodeView|Session|TensorBuffer'
            allowed.write_text(rf'permafrost\._native\.({classes})(\.__init__)?' + '\n', encoding='utf-8')
            result = subprocess.run(['/usr/bin/python3', '-m', 'mypy.stubtest', '--concise', '--allowlist', str(allowed),
                                     '--ignore-unused-allowlist', '--mypy-config-file', str(settings), 'permafrost._native'],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=folder,
                                    env={'PATH': '/usr/bin', 'MYPYPATH': os.path.abspath('python'),
                                         'PYTHONPATH': os.environ['PYTHONPATH']})
        self.assertEqual(result.returncode, 0, result.stdout)


if __name__ == '__main__':
    unittest.main()
