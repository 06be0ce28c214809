"""Runs the complete example of docs/guide/keras.md unchanged: the Python code, the four commands, and the app."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import python_package

WORKSPACE = python_package.WORKSPACE
GUIDE = WORKSPACE / 'docs/guide/keras.md'
TOOLS = pathlib.Path(os.environ.get('PERMAFROST_TOOLS', python_package.BINARIES / 'tools'))
COMMANDS = ['freeze_graph', 'transform_graph', 'validate_model', 'benchmark_model']


class KerasGuideTest(unittest.TestCase):

    def test_the_example_runs(self):
        example = GUIDE.read_text(encoding='utf-8').split('## A complete example')[1].split('\n## ')[0]
        code, = re.findall(r'^```python\n(.*?)^```', example, re.DOTALL | re.MULTILINE)
        commands = [shlex.split(line) for line in re.findall(r'^ {4}(\w.*)$', example[example.index('The four commands'):],
                                                             re.MULTILINE)]
        self.assertEqual([command[0] for command in commands[:4]], COMMANDS)
        self.assertEqual(commands[4], ['bazel', 'build', '//docs/examples:classify_c'])
        environment = dict(os.environ, DIGITS=str(WORKSPACE / 'tests/models/digits'), TF_CPP_MIN_LOG_LEVEL='3')
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, '-c', code], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
            for name, *arguments in commands[:4]:
                done = subprocess.run([TOOLS / name, *arguments], cwd=folder, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, f'{name}: {done.stderr}')
            subprocess.run(commands[4], cwd=WORKSPACE, check=True)
            app = WORKSPACE / commands[5][0]
            printed = subprocess.run([app, *commands[5][1:]], cwd=folder, capture_output=True, text=True, check=True).stdout
        self.assertEqual(len(printed.splitlines()), 10)


if __name__ == '__main__':
    unittest.main()
