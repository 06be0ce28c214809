"""Runs the tests of the Python package, each in a process that has imported TensorFlow first.

TensorFlow loads its protobuf for the whole process.
"""

import os
import subprocess
import sys
import unittest

import python_package

TESTS = python_package.WORKSPACE / 'tests/python'
# The first test measures memory; the others concern mypy and the wheel.
LEFT_OUT = ('endurance_test', 'types_test', 'wheel_test')
CODE = ('import runpy, sys, tensorflow; sys.argv = sys.argv[1:]; sys.path.insert(0, sys.argv[0].rpartition("/")[0]); '
        'runpy.run_path(sys.argv[0], run_name="__main__")')


class BesideTensorFlowOracle(unittest.TestCase):

    def run_there(self, *arguments):
        # Some tests start processes that import the tests' modules.
        environment = dict(os.environ, PYTHONPATH=f'{python_package.folder()}:{TESTS}', TF_CPP_MIN_LOG_LEVEL='3')
        return subprocess.run([sys.executable, *map(str, arguments)], cwd=python_package.WORKSPACE, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

    def test_text_in_either_order(self):
        text = python_package.WORKSPACE / 'tests/formats/cases/encodings.pbtxt'
        for modules in ('tensorflow, permafrost', 'permafrost, tensorflow'):
            with self.subTest(modules):
                result = self.run_there('-c', f'import sys, {modules}; print(len(permafrost.load(sys.argv[1])) > 0)', text)
                self.assertEqual((result.returncode, result.stdout.split()[-1:]), (0, ['True']), result.stdout)

    def test_every_test_of_the_package(self):
        files = [path for path in sorted(TESTS.glob('*_test.py')) if path.stem not in LEFT_OUT]
        self.assertGreater(len(files), 5)
        for path in files:
            with self.subTest(path.stem):
                result = self.run_there('-c', CODE, path)
                self.assertEqual(result.returncode, 0, result.stdout)


if __name__ == '__main__':
    unittest.main()
