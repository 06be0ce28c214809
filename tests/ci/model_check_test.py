"""Tests of script/ci/model_check on the bundled model, in a git repository of the test."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path.cwd()
DIGITS = ROOT / 'tests/models/digits'
TOOLS = ROOT / 'tools'
LABELS = [f'--inputs={DIGITS}/eval_images.npy', f'--labels={DIGITS}/eval_labels.npy']


class ModelCheckTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.git('init', '--quiet')
        shutil.copy(DIGITS / 'digits.pb', self.folder / 'model.pb')
        self.git('add', '.')
        self.git('commit', '--quiet', '--message=Add a model')

    def git(self, *arguments):
        subprocess.run(['git', '-c', 'user.name=t', '-c', 'user.email=t@example.org', *arguments], cwd=self.folder, check=True)

    def transform(self, out, transforms):
        subprocess.run([TOOLS / 'transform_graph', f'--in_graph={DIGITS}/digits.pb', f'--out_graph={self.folder}/{out}',
                        f'--transforms={transforms}', '--verify=off'], check=True, capture_output=True)

    def check(self, *arguments):
        """Returns the exit code, the comment and the rows."""
        figures = self.folder / 'figures.json'
        done = subprocess.run([ROOT / 'script/ci/model_check', f'--tools={TOOLS}', f'--json={figures}',
                               '--seconds=0.1', '--delegate=reference', *arguments], cwd=self.folder, capture_output=True, text=True,
                              check=False)
        rows = json.loads(figures.read_text())['models'] if figures.exists() else []
        return done.returncode, done.stdout, rows

    def test_unchanged_model_is_left_out(self):
        code, comment, rows = self.check('model.pb', '--base=HEAD')
        self.assertEqual((code, rows), (0, []))
        self.assertIn('none has changed', comment)
        self.assertIn('1 unchanged model is left out', comment)

    def test_smaller_model_passes(self):
        self.transform('model.pb', 'quantize')
        code, comment, (row,) = self.check('model.pb', '--base=HEAD', *LABELS, '--max_accuracy_drop=0.5%',
                                           '--max_size_increase=0', '--tolerance=10%')
        self.assertEqual((code, row['failures'], row['error']), (0, [], None))
        self.assertLess(row['bytes'][1], 0.3 * row['bytes'][0])
        self.assertGreater(row['accuracy'][1], 0.98)
        low, ratio, high = row['latency_ratio']
        self.assertTrue(0 < low <= ratio <= high)
        self.assertRegex(comment, r'\| model\.pb \| 0\.32 MB \(-7\d\.\d%\) \|.* x \[.*\| passed \|')

    def test_ruined_model_exceeds_each_limit(self):
        self.transform('model.pb', 'round_weights(num_steps=2)')
        with open(self.folder / 'model.pb', 'ab') as model:  # An unknown field makes the file larger.
            model.write(b'\xfa\x3e\x90\x4e' + b'x' * 10000)
        code, comment, (row,) = self.check('model.pb', '--base=HEAD', *LABELS, '--max_accuracy_drop=0.5%',
                                           '--max_size_increase=0.1%', '--tolerance=1%')
        self.assertEqual(code, 1)
        self.assertEqual(len(row['failures']), 3, row['failures'])
        self.assertIn('accuracy fell by', comment)
        self.assertIn('the file grew by', comment)
        self.assertIn('outputs differ by', comment)
        self.assertIn('**exceeded**', comment)

    def test_slower_model_exceeds_the_latency_limit(self):
        self.transform('model.pb', 'strip_unused_nodes')
        tools = self.folder / 'tools'
        tools.mkdir()
        for name in ('summarize_graph', 'validate_model'):
            (tools / name).symlink_to(TOOLS / name)
        slower = {'models': [{'runs': {'median_seconds': 1}}, {'runs': {'median_seconds': 1.3}}],
                  'ratio': 1.3, 'ratio_low': 1.2, 'ratio_high': 1.4}
        (tools / 'benchmark_model').write_text(f"#!/bin/sh\necho '{json.dumps(slower)}'\n")
        (tools / 'benchmark_model').chmod(0o755)
        for limit, expected in (('10%', 1), ('25%', 0)):  # 25 % is within the interval, so it is not exceeded.
            with self.subTest(limit):
                code, comment, (row,) = self.check('model.pb', '--base=HEAD', f'--max_latency_increase={limit}', f'--tools={tools}')
                self.assertEqual((code, len(row['failures'])), (expected, expected))
                self.assertIn('1.3e+03 ms, 1.300 x [1.200, 1.400]', comment)

    def test_new_model_has_no_comparison(self):
        self.transform('new.pb', 'quantize')
        code, comment, (row,) = self.check('new.pb', '--base=HEAD')
        self.assertEqual((code, row['is_new']), (0, True))
        self.assertRegex(comment, r'\| new\.pb \(new\) \| 0\.32 MB \| 0\.\d+ MB \| [\d.]+ ms \|  \| passed \|')

    def test_transforms_apply_to_both_versions(self):
        self.transform('model.pb', 'remove_nodes(op=Identity)')
        code, comment, (row,) = self.check('model.pb', '--base=HEAD', '--transforms=quantize')
        self.assertEqual((code, row['failures']), (0, []))
        self.assertLess(row['bytes'][0], 400000)
        self.assertIn('Both versions after `quantize`', comment)

    def test_errors_name_the_model(self):
        for arguments, expected in [
            (['missing.pb', '--base=HEAD'], 'cannot open'),
            (['model.pb', '--base=no_such_revision'], "found no revision 'no&#95;such&#95;revision'"),
            (['model.pb', '--base_model=missing.pb'], 'cannot open'),
        ]:
            with self.subTest(arguments):
                code, comment, (row,) = self.check(*arguments)
                self.assertEqual(code, 255)
                self.assertIn(expected, comment)
                self.assertIsNotNone(row['error'])

    def test_git_lfs_pointer_is_named(self):
        (self.folder / 'large.pb').write_text('version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n')
        self.git('add', '.')
        self.git('commit', '--quiet', '--message=Add a pointer')
        self.transform('large.pb', 'quantize')
        code, comment, _ = self.check('large.pb', '--base=HEAD')
        self.assertEqual(code, 255)
        self.assertIn('git lfs fetch', comment)

    def test_names_cannot_leave_their_cell(self):
        name = 'a | **b** <img>\n.pb'
        self.transform(name, 'quantize')
        code, comment, _ = self.check(name, '--base=HEAD')
        self.assertEqual(code, 0)
        line = next(line for line in comment.splitlines() if '(new)' in line)
        self.assertEqual(line.count('|'), 7)
        self.assertNotIn('<img>', comment)

    def test_wrong_arguments(self):
        for arguments in (['model.pb'], ['model.pb', '--base=HEAD', '--tolerance=-1'], ['model.pb', '--base=HEAD', '--tolerance=x'],
                          ['model.pb', '--base=HEAD', '--max_accuracy_drop=1%'], ['model.pb', 'b.pb', '--base_model=c.pb']):
            with self.subTest(arguments):
                code, _, _ = self.check(*arguments)
                self.assertEqual(code, 2)


if __name__ == '__main__':
    os.environ['GIT_CONFIG_NOSYSTEM'] = '1'
    unittest.main()
