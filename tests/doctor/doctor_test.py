"""Runs permafrost_doctor in broken environments: libraries, devices, interpreters, folders."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path.cwd()
DOCTOR = ROOT / 'tools/permafrost_doctor'
LIBRARIES = {'onednn': 'libdnnl.so.2', 'xnnpack': 'libXNNPACK.so.0'}


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

    def make_library(self, name, source):
        if shutil.which('gcc') is None:
            self.skipTest('there is no compiler')
        subprocess.run(['gcc', '-shared', '-fPIC', '-xc', '-', '-o', self.folder / name], input=source, text=True, check=True)

    def make_python(self, *lines):
        path = self.folder / 'python'
        path.write_text('\n'.join(['#!/bin/sh', *lines, '']))
        path.chmod(0o755)
        return f'--python={path}'

    def test_a_whole_installation(self):
        findings = self.findings('--python=', code=0)
        for delegate, library in LIBRARIES.items():
            self.assertEqual(findings[f'delegate {delegate}']['grade'], 'ok')
            self.assertIn(library, findings[f'delegate {delegate}']['found'])
        self.assertNotIn('Python package', findings)
        self.assertIn('glibc', findings['program']['found'])
        text = self.run_doctor('--python=').stdout
        self.assertRegex(text, r'ok +delegate onednn +\S+libdnnl\S+; agrees with the built-in kernels; f32')

    def test_no_device(self):
        finding = self.findings('--python=', code=0, OCL_ICD_VENDORS=self.folder).get('delegate opencl')
        if finding is None:
            self.skipTest('there is no delegate for OpenCL')
        self.assertEqual(finding['grade'], 'advice')
        self.assertIn('use another delegate', finding['remedy'])

    def test_libraries_that_are_damaged(self):
        for library in LIBRARIES.values():
            (self.folder / library).write_text('no library')
        findings = self.findings('--python=', code=1, LD_LIBRARY_PATH=self.folder)
        for delegate, library in LIBRARIES.items():
            finding = findings[f'delegate {delegate}']
            self.assertEqual(finding['grade'], 'problem')
            self.assertIn(library, finding['found'])
            self.assertIn('LD_LIBRARY_PATH', finding['remedy'])
        self.assertEqual(findings['delegate reference']['grade'], 'ok')

    def test_other_tools_name_a_damaged_library(self):
        (self.folder / 'libdnnl.so.2').write_text('no library')
        digits = ROOT / 'tests/models/digits/digits.pb'
        for tool, arguments in (('benchmark_model', [f'--graph={digits}', '--delegate=onednn']),
                                ('convert_graphdef_memmapped_format', [f'--in_graph={digits}', f'--out_graph={self.folder}/model.pkg',
                                                                       '--pack_for=onednn:f32'])):
            result = subprocess.run([ROOT / 'tools/permafrost', tool, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    text=True, check=False, env={**os.environ, 'LD_LIBRARY_PATH': str(self.folder)})
            self.assertEqual(result.returncode, 255, result.stdout)
            self.assertIn("delegate 'onednn': libdnnl.so.2 cannot be loaded", result.stdout)
        # The built-in kernels need no library, and --compare leaves the delegate out.
        result = subprocess.run([ROOT / 'tools/permafrost', 'benchmark_model', f'--graph={digits}', '--compare', '--compare_time=0.1'],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                                env={**os.environ, 'LD_LIBRARY_PATH': str(self.folder)})
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, 'onednn .* does not run: .*libdnnl.so.2 cannot be loaded')

    def test_libraries_of_another_version(self):
        self.make_library('libdnnl.so.2', 'int dnnl_version(void) { return 0; }')
        self.make_library('libXNNPACK.so.0', 'int xnn_reshape_convolution2d_nhwc_f32(void) { return 0; }')
        findings = self.findings('--python=', code=1, LD_LIBRARY_PATH=self.folder)
        self.assertRegex(findings['delegate onednn']['found'], "another version: it lacks the function 'dnnl_")
        self.assertRegex(findings['delegate xnnpack']['found'], "another version: it has the function 'xnn_reshape")

    def test_a_library_that_needs_another_one(self):
        self.make_library('libneeded.so', 'int needed(void) { return 0; }')
        subprocess.run(['gcc', '-shared', '-fPIC', '-xc', '-', '-o', self.folder / 'libdnnl.so.2', '-Wl,--no-as-needed',
                        '-xnone', self.folder / 'libneeded.so', '-Wl,-soname,libdnnl.so.2'], input='int x;', text=True, check=True)
        (self.folder / 'libneeded.so').unlink()
        finding = self.findings('--python=', code=1, LD_LIBRARY_PATH=self.folder)['delegate onednn']
        self.assertIn('libneeded.so', finding['found'])

    def test_a_library_that_cannot_be_initialised(self):
        self.make_library('libXNNPACK.so.0', '\n'.join(
            ['int xnn_initialize(void* a) { return 6; }'] +
            [f'int {name}(void) {{ return 6; }}' for name in self.xnnpack_functions() if name != 'xnn_initialize']))
        finding = self.findings('--python=', code=1, LD_LIBRARY_PATH=self.folder)['delegate xnnpack']
        self.assertIn('out of memory', finding['found'])

    def xnnpack_functions(self):
        declared = (ROOT / 'third_party/xnnpack.BUILD').read_text().split('deferred_library(')[-1]
        return [word for word in declared.split('"') if word.startswith(('xnn_', 'pthreadpool_')) and 'reshape' not in word]

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
