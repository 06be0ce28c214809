"""Installs into an empty folder and builds the CMake example against it without Bazel."""

import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

WORKSPACE = pathlib.Path.cwd()
INSTALL = WORKSPACE / 'install/install'
EXAMPLE = WORKSPACE / 'docs/examples/cmake'
DIGITS = WORKSPACE / 'tests/models/digits'


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True, errors='replace',
                          **options)


class InstallTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(dir=os.environ['TEST_TMPDIR']))
        cls.prefix = cls.folder / 'prefix'
        cls.first = run(INSTALL, f'--prefix={cls.prefix}')

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def succeed(self, *command, **options):
        result = run(*command, **options)
        self.assertEqual(result.returncode, 0, f'{command}:\n{result.stdout}\n{result.stderr}')
        return result.stdout

    def fail_with(self, text, *command, **options):
        result = run(*command, **options)
        self.assertNotEqual(result.returncode, 0, command)
        self.assertIn(text, result.stderr)
        return result.stderr

    def test_installs_and_installs_again(self):
        self.assertEqual(self.first.returncode, 0, self.first.stderr)
        files = sorted(path for path in self.prefix.rglob('*'))
        self.succeed(INSTALL, f'--prefix={self.prefix}')
        self.assertEqual(sorted(path for path in self.prefix.rglob('*')), files, 'nothing is left behind')

    def test_every_tool_runs_by_its_name(self):
        tools = sorted(path.name for path in (self.prefix / 'bin').iterdir())
        self.assertIn('transform_graph', tools)
        self.assertGreater(len(tools), 10)
        for tool in tools:
            self.assertTrue(self.succeed(self.prefix / 'bin' / tool, '--version').startswith(tool + ' '), tool)
        link = self.folder / 'linked'
        link.symlink_to(self.prefix / 'bin/summarize_graph')
        self.assertIn('probabilities', self.succeed(link, f'--in_graph={DIGITS}/digits.pb'))

    def test_says_what_is_wrong(self):
        self.assertEqual(self.fail_with('no --prefix=DIR', INSTALL).count('\n'), 1)
        self.fail_with("unknown argument '--prefx=/x'", INSTALL, '--prefx=/x')
        blocked = self.folder / 'blocked'
        blocked.write_text('a file where a folder is needed')
        self.fail_with('cannot create the folder', INSTALL, f'--prefix={blocked}')
        self.assertIn('bazel run //:install', self.succeed(INSTALL, '--help'))

    def test_takes_a_relative_prefix_and_destdir(self):
        environment = dict(os.environ, BUILD_WORKING_DIRECTORY=str(self.folder))
        listed = self.succeed(INSTALL, '--prefix=here', '--dry_run', env=environment)
        self.assertIn(f'{self.folder}/here/bin/permafrost\n', listed)
        self.assertFalse((self.folder / 'here').exists(), 'a dry run installs nothing')
        listed = self.succeed(INSTALL, '--prefix=/usr', '--dry_run', env=dict(os.environ, DESTDIR='/staged'))
        self.assertIn('/staged/usr/include/permafrost_runtime.h\n', listed)

    def test_libraries_show_the_interface_only(self):
        if shutil.which('nm') is None:
            self.skipTest('there is no nm')
        for name in ['libpermafrost_runtime.a', 'libpermafrost_runtime_small.a']:
            lines = self.succeed('nm', '-g', '--defined-only', self.prefix / 'lib' / name).splitlines()
            # Unique symbols ("u") are inline variables, of which a process has one instance, whichever library defines
            # it.
            symbols = {line.split()[2] for line in lines if len(line.split()) == 3 and line.split()[1] != 'u'}
            self.assertIn('pf_run', symbols)
            others = {symbol for symbol in symbols if not symbol.startswith('pf_')}
            for_xnnpack = {symbol for symbol in others if symbol.startswith('pthreadpool_')}
            for_onednn = {'GOMP_barrier', 'GOMP_parallel', 'omp_get_max_threads', 'omp_get_num_threads',
                          'omp_get_thread_num', 'omp_in_parallel'}
            is_small = 'small' in name
            self.assertEqual(others - for_xnnpack, set() if is_small else for_onednn, name)
            self.assertEqual(len(for_xnnpack), 0 if is_small else 13, name)
            shared = self.succeed('nm', '-D', '--defined-only', self.prefix / 'lib' / name.replace('.a', '.so.1'))
            versions = {'PERMAFROST_1', 'GOMP_1.0', 'GOMP_4.0', 'OMP_1.0'}
            exported = {line.split()[2].split('@')[0] for line in shared.splitlines()} - versions
            self.assertEqual(exported, symbols - for_xnnpack, name)

    def need_cmake(self):
        if shutil.which('cmake') is None:
            self.skipTest('there is no cmake: script/install_deps installs it')

    def configure(self, build, *options, source=EXAMPLE):
        return run('cmake', '-S', source, '-B', build, f'-DCMAKE_PREFIX_PATH={self.prefix}', *options)

    def test_the_example_builds_and_finds_the_digits(self):
        self.need_cmake()
        model = self.folder / 'model.pb'
        shutil.copy(DIGITS / 'digits.pb', model)
        build = self.folder / 'build'
        configured = self.configure(build, f'-DMODEL={model}')
        self.assertEqual(configured.returncode, 0, configured.stderr)
        self.succeed('cmake', '--build', build)
        self.assertIn('DepthwiseConv2dNative', self.succeed(build / 'ops_of_the_model').split())
        images = self.folder / 'images.raw'
        data = (DIGITS / 'eval_images.npy').read_bytes()
        images.write_bytes(data[-540 * 256:][:20 * 256])
        expected = struct.unpack('<200f', (DIGITS / 'expected_probabilities.npy').read_bytes()[-540 * 40:][:20 * 40])
        digits = [max(range(10), key=lambda digit: expected[row * 10 + digit]) for row in range(20)]
        for library in ['runtime', 'runtime_static', 'runtime_small', 'runtime_small_static']:
            found = self.succeed(build / f'classify_{library}', build / 'small.pb', images)
            self.assertEqual([int(line.split()[0]) for line in found.splitlines()], digits, library)
        self.assertEqual(self.succeed(build / 'classify', build / 'small.pb', images), found)
        with images.open('rb') as image:
            self.assertEqual(self.succeed(build / 'classify_inside', stdin=image), found.splitlines()[0] + '\n')

        # Up-to-date outputs are not rebuilt, and a changed model is.
        self.assertNotIn('Optimising', self.succeed('cmake', '--build', build))
        os.utime(model)
        again = self.succeed('cmake', '--build', build)
        self.assertIn('Optimising small', again)
        self.assertIn('Finding the ops of ops', again)
        # A broken model fails the build, and no partial output is used later.
        model.write_bytes(b'\xff\xff\xff\xff')
        broken = run('cmake', '--build', build)
        self.assertNotEqual(broken.returncode, 0)
        self.assertIn('model.pb', broken.stdout + broken.stderr)

    def test_cmake_says_what_is_wrong(self):
        self.need_cmake()
        begin = 'cmake_minimum_required(VERSION 3.16)\nproject(x CXX)\n'
        cases = {
            'find_package(Permafrost 7.0 REQUIRED)': '0.1.0',
            'find_package(Permafrost REQUIRED)\npermafrost_ops_to_register(ops)': 'MODELS is empty',
            'find_package(Permafrost REQUIRED)\npermafrost_optimized_model(m SRC a.pb)': 'SRC and TRANSFORMS are required',
            'find_package(Permafrost REQUIRED)\npermafrost_ops_to_register(ops MODEL a.pb)':
                "'MODEL;a.pb', which is not an argument of it",
            'find_package(Permafrost REQUIRED)\npermafrost_model_object(a-b MODEL a.pb)': 'must be a C identifier',
            'find_package(Permafrost REQUIRED)\nadd_library(t INTERFACE)\npermafrost_ops_to_register(ops MODELS t)':
                'permafrost_optimized_model did not create',
        }
        for number, (text, expected) in enumerate(cases.items()):
            source = self.folder / f'case{number}'
            source.mkdir()
            (source / 'CMakeLists.txt').write_text(begin + text + '\n')
            result = self.configure(self.folder / f'built{number}', source=source)
            self.assertNotEqual(result.returncode, 0, text)
            self.assertIn(expected, ' '.join(result.stderr.split()), text)

    def test_cmake_notices_that_files_are_missing(self):
        self.need_cmake()
        partial = self.folder / 'partial'
        shutil.copytree(self.prefix, partial, symlinks=True)
        (partial / 'lib/libpermafrost_runtime_small.a').unlink()
        result = run('cmake', '-S', EXAMPLE, '-B', self.folder / 'unbuilt', f'-DCMAKE_PREFIX_PATH={partial}')
        self.assertNotEqual(result.returncode, 0)
        self.assertIn('install Permafrost again', ' '.join(result.stderr.split()))


if __name__ == '__main__':
    unittest.main()
