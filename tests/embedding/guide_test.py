"""Compares the programs shown in the guide with the files that are built, and runs those."""

import os
import pathlib
import re
import struct
import subprocess
import tempfile
import unittest

GUIDE = pathlib.Path('docs/guide/embedding.md')
DIGITS = pathlib.Path('tests/models/digits')
EXAMPLES = ['classify_c', 'classify_c_small', 'classify_c_shared', 'classify_cc']


def npy_floats(path, count):
    data = path.read_bytes()
    start = 10 + struct.unpack('<H', data[8:10])[0]
    return data[start:start + 4 * count]


class GuideTest(unittest.TestCase):

    def test_the_guide_shows_the_files(self):
        shown = re.findall(r'<!-- (\S+) -->\n```\w+\n(.*?)```\n', GUIDE.read_text(), re.DOTALL)
        self.assertEqual([path for path, _ in shown],
                         ['docs/examples/embedding/classify.c', 'docs/examples/embedding/classify.cc'])
        for path, text in shown:
            self.assertEqual(text, pathlib.Path(path).read_text(), f'{GUIDE} shows another {path}')

    def test_the_examples_find_the_digits(self):
        probabilities = struct.unpack('<300f', npy_floats(DIGITS / 'expected_probabilities.npy', 300))
        rows = [probabilities[i:i + 10] for i in range(0, 300, 10)]
        expected = [row.index(max(row)) for row in rows]
        with tempfile.TemporaryDirectory(dir=os.environ['TEST_TMPDIR']) as folder:
            images = pathlib.Path(folder) / 'images.raw'
            images.write_bytes(npy_floats(DIGITS / 'eval_images.npy', 30 * 64))
            for example in EXAMPLES:
                with self.subTest(example=example):
                    run = subprocess.run([f'docs/examples/{example}', str(DIGITS / 'digits.pb'), str(images)],
                                         check=True, capture_output=True, text=True)
                    self.assertEqual([int(line.split()[0]) for line in run.stdout.splitlines()], expected)
                    broken = subprocess.run([f'docs/examples/{example}', str(images), str(images)],
                                            check=False, capture_output=True, text=True)
                    self.assertEqual(broken.returncode, 1)
                    self.assertIn('cannot open the model', broken.stderr)


if __name__ == '__main__':
    unittest.main()
