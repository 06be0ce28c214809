"""Runs permafrost_doctor in broken environments: devices, interpreters, folders."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path.cwd()
DOCTOR = ROOT / 'tools/permafrost_doctor'
DELEGATES = ('reference', 'onednn', 'xnnpack')


class DoctorTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_doctor(self, *arguments, **variables):
        return subprocess.run([DOCTOR, *arguments], capture_output=True, text=True, check=False,
                              env=dict(os.environ, **{name: str(value) for name, value in variables.items()}))

    def findings(self, *arguments, code=None, **variables):
        """Returns the findings by subject."""
        done = self.run_doctor('--json', *arguments, **variables)
        answer = json.loads(done.stdout)
        problems = [finding['subject'] for finding in answer['findings'] if finding['grade'] == 'problem']
        self.assertEqual(answer['problems'], len(problems))
        self.assertEqual(done.returncode, 1 if problems else 0)
        for subject in problems:
            self.assertIn(subject, done.stderr)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout)
        for finding in answer['findings']:
            self.assertEqual(finding['grade'] == 'ok', not finding['remedy'], finding)
        return {finding['subject']: finding for finding in answer['findings']}

    def make_python(self, *lines):
        path = self.folder / 'python'
        path.write_text('\n'.join(['#!/bin/sh', *lines, '']))
        path.chmod(0o755)
        return f'--python={path}'

    def test_a_whole_installation(self):
        findings = self.findings('--python=', code=0)
        for delegate in DELEGATES:
            self.assertEqual(findings[f'delegate {delegate}']['grade'], 'ok')
            self.assertIn('f32', findings[f'delegate {delegate}']['found'])
        self.assertNotIn('Python package', findings)
        self.assertIn('glibc', findings['program']['found'])
        text = self.run_doctor('--python=').stdout
        self.assertRegex(text, r'ok +delegate onednn +agrees with the built-in kernels')

    def test_no_device(self):
        finding = self.findings('--python=', code=0, OCL_ICD_VENDORS=self.folder).get('delegate opencl')
        if finding is None:
            self.skipTest('there is no delegate for OpenCL')
        self.assertEqual(finding['grade'], 'advice')
        self.assertIn('use another delegate', finding['remedy'])

    def test_temporary_folder_that_does_not_exist(self):
        finding = self.findings('--python=', code=1, TMPDIR=self.folder / 'missing')['temporary folder']
        self.assertIn('No such file or directory', finding['found'])
        self.assertIn('TMPDIR', finding['remedy'])

    def test_cache_folders(self):
        self.assertEqual(self.findings('--python=', f'--cache_dir={self.folder}', code=0)['cache folder']['grade'], 'ok')
        (self.folder / 'file').write_text('')
        finding = self.findings('--python=', f'--cache_dir={self.folder}/file', code=1)['cache folder']
        self.assertIn('is not a folder', finding['found'])

    def test_python_packages(self):
        def package(*arguments):
            return self.findings(*arguments)['Python package']

        self.assertEqual(package('--python=/nowhere/python3')['grade'], 'advice')
        absent = self.make_python('echo absent 3.11.2')
        self.assertEqual(package(absent)['grade'], 'advice')
        self.assertIn('not installed for Python 3.11.2', package(absent)['found'])
        version = self.run_doctor('--version').stdout.split()[-1]
        self.assertEqual(package(self.make_python(f'echo present 3.11.2 {version} "/a b/permafrost/__init__.py"'))['grade'], 'ok')
        other = package(self.make_python('echo present 3.11.2 9.9.9 /x/__init__.py'))
        self.assertEqual(other['grade'], 'problem')
        self.assertIn(f'install version {version}', other['remedy'])
        broken = package(self.make_python('echo broken 3.11.2 ImportError: no such symbol'))
        self.assertEqual(broken['grade'], 'problem')
        self.assertIn('ImportError: no such symbol', broken['found'])
        crashed = package(self.make_python('kill -SEGV $$'))
        self.assertEqual(crashed['grade'], 'problem')
        self.assertIn('ends with', crashed['found'])

    def test_a_real_package_that_cannot_be_imported(self):
        (self.folder / 'permafrost').mkdir()
        (self.folder / 'permafrost/__init__.py').write_text('raise ImportError("_native is for another Python\\nsecond line")')
        finding = self.findings(code=1, PYTHONPATH=self.folder)['Python package']
        self.assertIn('ImportError: _native is for another Python second line', finding['found'])

    def test_names_add_no_lines(self):
        done = self.run_doctor('--python=', TMPDIR='/nowhere\n\x1b[31mok       all is well')
        self.assertEqual(done.returncode, 1)
        self.assertNotIn('\x1b', done.stdout)
        self.assertFalse(any(line.startswith('ok       all') for line in done.stdout.splitlines()))


if __name__ == '__main__':
    unittest.main()
