"""Tests the wheel: built from Bazel's outputs, installed into a new environment, and run without compiler or headers."""

import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import zipfile
from unittest import mock

import models

ROOT = pathlib.Path.cwd()
sys.path.insert(0, str(ROOT / 'python/packaging'))
import backend  # pylint: disable=wrong-import-position
import wheel  # pylint: disable=wrong-import-position

# Limits of the two wheels.
MOST_BYTES = 10_000_000
MOST_BYTES_OF_DELEGATES = 20_000_000
# Lines, and the completions of their last words.
COMPLETIONS = (('transform_graph --in_', '--in_graph='), ('transform_graph --verify=e', '--verify=each'),
               ('permafrost sum', 'summarize'), ('permafrost transform_graph --out_g', '--out_graph='),
               ('permafrost transform --out_g', '--out_graph='))
OF_DELEGATES = ('libdnnl', 'libOpenCL', 'libXNNPACK', 'libpthreadpool', 'libcpuinfo')


class WheelTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        base = pathlib.Path(cls.folder.name)
        for name in ('work', 'documents', 'out'):
            (base / name).mkdir()
        subprocess.run([ROOT / 'tools/documents', base / 'documents'], check=True)
        cls.path = wheel.assemble([ROOT / 'python/permafrost'], base / 'documents', base / 'work', base / 'out')
        cls.delegates = wheel.assemble_delegates(ROOT / 'python/permafrost' / wheel.BUNDLE, base / 'work', base / 'out')
        # Our tests' numpy is the distribution's: nothing is downloaded.
        cls.venv = base / 'venv'
        subprocess.run([sys.executable, '-m', 'venv', '--system-site-packages', cls.venv], check=True)
        subprocess.run([cls.venv / 'bin/pip', 'install', '--quiet', '--no-index', '--disable-pip-version-check',
                        f'--find-links={cls.path.parent}', 'permafrost[delegates]'], check=True,
                       env={'PATH': '/nowhere', 'HOME': str(base)})

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_there(self, *command):
        """Runs a program of the environment with a clean environment."""
        return subprocess.run([self.venv / 'bin' / command[0], *command[1:]], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, cwd='/',
                              env={'PATH': str(self.venv / 'bin')})

    def test_size(self):
        self.assertLess(self.path.stat().st_size, MOST_BYTES)
        self.assertLess(self.delegates.stat().st_size, MOST_BYTES_OF_DELEGATES)
        with zipfile.ZipFile(self.path) as archive:
            names = [os.path.basename(name) for name in archive.namelist()]
        self.assertEqual([name for name in names if name.startswith(OF_DELEGATES)], [])

    def test_without_the_delegates(self):
        """The package works without the second wheel, and says what is missing where the system has no library either."""
        alone = pathlib.Path(self.folder.name) / 'alone'
        with zipfile.ZipFile(self.path) as archive:
            archive.extractall(alone)
        # A library of another version stands for a missing one: the distribution's cannot be hidden.
        other = pathlib.Path(self.folder.name) / 'other'
        other.mkdir()
        (other / 'libdnnl.so.2').write_text('no library')
        code = ('import sys, numpy, permafrost\n'
                'model = permafrost.load(sys.argv[1])\n'
                'x = numpy.zeros((1, 8, 8, 1), numpy.float32)\n'
                'model.session().run(x)\n'
                'try:\n'
                '    model.session(delegate="onednn").run(x)\n'
                'except permafrost.Error as error:\n'
                '    print(error)\n')
        result = subprocess.run([sys.executable, '-c', code, str((ROOT / models.DIGITS / 'digits.pb').resolve())],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd='/',
                                env={'LD_LIBRARY_PATH': str(other), 'PYTHONPATH': str(alone)})
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn('libdnnl.so.2 cannot be loaded', result.stdout)

    def test_needs_nothing_that_a_system_need_not_have(self):
        site = next((self.venv / 'lib').glob('python*/site-packages/permafrost'))
        delegates = site.parent / wheel.DELEGATES
        libraries = [next(site.glob('_native.*.so'))] + list((site / 'libraries').iterdir()) + list(delegates.glob('*.so*'))
        inside = {library.name for library in libraries}
        self.assertGreater(len(libraries), 10)
        for library in libraries:
            text = subprocess.run(['readelf', '--dynamic', '--wide', library], stdout=subprocess.PIPE, text=True,
                                  check=True).stdout
            for needed in re.findall(r'\(NEEDED\).*\[(.*)\]', text):
                self.assertIn(needed, inside | set(wheel.SYSTEM_LIBRARIES), library.name)
            self.assertRegex(text, r'\$ORIGIN')
        loaded = self.run_there('python', '-c',
                                'import sys, permafrost; permafrost.load(sys.argv[1]).session(delegate="onednn"); '
                                'print(open("/proc/self/maps").read())',
                                str((ROOT / models.DIGITS / 'digits.pb').resolve())).stdout
        self.assertIn('libdnnl', loaded)
        for name in set(re.findall(r'/\S*/(lib(?:dnnl|gomp|permafrost|protobuf|absl|zstd|sodium)\S*)', loaded)):
            self.assertIn(str((delegates if (delegates / name).exists() else site / 'libraries') / name), loaded)

    def test_loads_nothing_that_a_system_need_not_have(self):
        # Excludes libraries of numpy and the standard library; the others are in the wheel or covered by its tag.
        code = ('import numpy, sys\n'
                'def mapped():\n'
                '    return {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}\n'
                'before = mapped()\n'
                'import permafrost\n'
                'model = permafrost.load(sys.argv[1])\n'
                'for delegate in permafrost.delegates():\n'
                '    if delegate.name == "opencl": continue\n'  # Its loader and its drivers are the system's.
                '    model.session(delegate=delegate.name).run(numpy.zeros((1, 8, 8, 1), numpy.float32))\n'
                'model.transform("quantize_weights").to_bytes(compress="zstd")\n'
                'print("\\n".join(mapped() - before))\n')
        result = self.run_there('python', '-c', code, str((ROOT / models.DIGITS / 'digits.pb').resolve()))
        self.assertEqual(result.returncode, 0, result.stdout)
        loaded = result.stdout.split()
        self.assertGreater(len(loaded), 10)
        for path in loaded:
            if not path.startswith(str(self.venv)) and '/lib-dynload/' not in path:
                # The target of the link may have a more detailed version.
                name = re.match(r'.*?\.so(\.\d+)?', os.path.basename(path))
                self.assertIn(name.group(), wheel.SYSTEM_LIBRARIES)

    def test_tag(self):
        # tests/oracle/wheel_oracle.py runs auditwheel.
        for symbols, glibc in (('GLIBC_2.2.5', 17), ('GLIBC_2.17', 17), ('GLIBC_2.36', 36), ('GLIBC_ABI_DT_RELR', 36),
                               ('GLIBCXX_3.4', 17), ('GLIBCXX_3.4.19', 17), ('GLIBCXX_3.4.20', 24), ('GLIBCXX_3.4.30', 35),
                               ('CXXABI_1.3.13', 34), ('CXXABI_FLOAT128', 24), ('GCC_3.0', 17), ('GCC_12.0.0', 35),
                               ('GLIBCXX_3.4.99', None), ('GLIBC_PRIVATE', None), ('NOBODYS_1.0', None)):
            self.assertEqual(wheel.glibc_of(symbols), glibc, symbols)
        tag = re.fullmatch(r'permafrost-[0-9.]+-(cp3\d+)-(cp3\d+)-manylinux_2_(\d+)_\w+\.whl', self.path.name)
        self.assertTrue(tag, self.path.name)
        self.assertEqual(tag.group(1), tag.group(2))
        site = next((self.venv / 'lib').glob('python*/site-packages/permafrost'))
        glibcs = [wheel.glibc_of(symbols) for library in site.rglob('*.so*') for symbols in wheel.needed_symbols(library)]
        self.assertEqual(max(glibcs), int(tag.group(3)))
        # The tag cannot be newer than the glibc of the running interpreter.
        with mock.patch.object(wheel, 'needed_symbols', lambda path: {'GLIBC_2.17', 'GLIBC_PRIVATE'}):
            self.assertTrue(wheel.platform_tag([site]).startswith('linux_'))

    def test_package_works(self):
        model = ROOT / models.DIGITS / 'digits.pb'
        code = ('import sys, numpy, permafrost\n'
                'from permafrost import passes\n'
                'model = permafrost.load(sys.argv[1])\n'
                'small = model.transform([passes.fold_constants(), "quantize_weights"])\n'
                'assert model.verify(small, tolerance=0.1)\n'
                'x = numpy.zeros((1, 8, 8, 1), numpy.float32)\n'
                'for delegate in permafrost.delegates():\n'
                '    small.session(delegate=delegate.name).run(x)\n'
                'print(permafrost.__version__)\n')
        result = self.run_there('python', '-c', code, str(model.resolve()))
        self.assertEqual((result.returncode, result.stdout), (0, wheel.version() + '\n'))

    def test_another_interpreter(self):
        """A package of another Python, and an old system, are named."""
        site = next((self.venv / 'lib').glob('python*/site-packages/permafrost'))
        copy = pathlib.Path(self.folder.name) / 'copy'
        shutil.copytree(site, copy / 'permafrost', ignore=shutil.ignore_patterns('_native.*.so', 'libraries', '__pycache__'))

        def message():
            result = self.run_there('python', '-c', 'import sys; sys.path.insert(0, sys.argv[1]); import permafrost', str(copy))
            self.assertEqual(result.returncode, 1)
            return result.stdout.splitlines()[-1]

        self.assertRegex(message(), r"ImportError: the package permafrost in '.*/copy/permafrost' is not built: found no _native\.")
        (copy / 'permafrost/_native.cpython-39-riscv64-linux-gnu.so').touch()
        self.assertRegex(message(), r'is built for cpython-39-riscv64-linux-gnu, found cpython-3\d+-\S+; install a wheel')
        code = ('import permafrost._loading as loading\n'
                "old = ImportError(\"/lib/libc.so.6: version `GLIBC_2.36' not found (required by _native.so)\")\n"
                'print(loading._explained("permafrost._native", old, "/"))\n'
                'print(loading._explained("permafrost._native", ImportError("another reason"), "/"))\n')
        lines = self.run_there('python', '-c', code).stdout.splitlines()
        self.assertRegex(lines[0], r"newer system libraries .*GLIBC_2\.36' not found .*; use a newer system")
        self.assertEqual(lines[1], 'another reason')

    def test_builds_for_no_other_interpreter(self):
        backend.check_interpreter('cpython', (3, 11), 'linux', 'x86_64')
        for other in (('cpython', (3, 8), 'linux', 'x86_64'), ('cpython', (3, 12), 'linux', 'x86_64'),
                      ('pypy', (3, 9), 'linux', 'x86_64'), ('cpython', (3, 11), 'darwin', 'x86_64'),
                      ('cpython', (3, 11), 'linux', 'riscv64')):
            with self.assertRaisesRegex(wheel.WheelError, r'found \w+ 3\.\d+ for \w+ on \w+, expected CPython 3\.9 to 3\.11'):
                backend.check_interpreter(*other)

    def test_tools_are_on_the_path(self):
        self.assertGreater(len(wheel.tools()), 12)
        for tool in wheel.tools():
            result = self.run_there(tool, '--version')
            self.assertEqual((result.returncode, result.stdout), (0, f'{tool} {wheel.version()}\n'))
        self.assertEqual(self.run_there('transform_graph').returncode, 255)
        result = self.run_there('permafrost', 'summarize_graph', '--in_graph=/no/such')
        self.assertEqual((result.returncode, result.stdout),
                         (255, "summarize_graph: cannot open '/no/such': No such file or directory\n"))

    def flags_of(self, tool):
        """The flags that the tool's help lists."""
        flags = set(re.findall(r'^  --(\w+)', self.run_there(tool, '--help=all').stdout, re.M))
        self.assertGreater(len(flags), 2)
        return flags | {'help'}

    def test_pages(self):
        # As man finds them: beside the folder of the PATH that has the command.
        environment = {'PATH': f'{self.venv}/bin:/usr/bin:/bin', 'LANG': 'C.UTF-8', 'MANWIDTH': '120'}
        for tool in wheel.tools():
            with self.subTest(tool):
                result = subprocess.run(['man', '--warnings', tool], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        check=True, env=environment)
                self.assertEqual(result.stderr, '')
                page = re.sub('.\b', '', result.stdout)  # Bold, as terminals that print on paper do it.
                self.assertIn(tool, page)
                self.assertIn(wheel.version(), page)
                if tool == 'permafrost':
                    for other in wheel.tools()[1:]:
                        self.assertIn(f'{other}(1)', page)
                    continue
                flags = set(re.findall(r'^ {7}--(\w+)', page, re.M))  # Descriptions are indented further.
                self.assertEqual(flags, self.flags_of(tool))

    def test_fish_completes(self):
        script = self.venv / 'share/fish/vendor_completions.d/permafrost.fish'
        for prefix in ('', 'permafrost '):
            for tool in wheel.tools()[1:]:
                found = self.fish(script, f'{prefix}{tool} --')
                self.assertEqual({word.split('=')[0] for word in found}, {f'--{flag}' for flag in self.flags_of(tool)} |
                                 {'--version'}, tool)
        self.assertEqual(self.fish(script, 'permafrost sum'), ['summarize'])
        self.assertEqual(self.fish(script, 'transform_graph --verify='), ['--verify=auto', '--verify=each', '--verify=off', '--verify=required'])

    def fish(self, script, line):
        """Returns the completions of fish for a line."""
        with tempfile.TemporaryDirectory() as home:
            result = subprocess.run(['fish', '--private', '-c', f'source {script}; complete --do-complete "{line}"'],
                                    stdout=subprocess.PIPE, text=True, check=True, env={'PATH': '/usr/bin:/bin', 'HOME': home})
        return [line.split('\t')[0] for line in result.stdout.splitlines()]

    def test_zsh_completes(self):
        folder = self.venv / 'share/zsh/site-functions'
        for line, expected in COMPLETIONS:
            with self.subTest(line):
                # zsh removes the = after a flag if no value follows.
                self.assertEqual(self.zsh(folder, line), line.rpartition(' ')[0] + ' ' + expected.rstrip('='))

    def zsh(self, folder, line):
        """Returns a line as completed by Tab. Completion requires an interactive shell, which needs a terminal."""
        with tempfile.TemporaryDirectory() as home:
            pid, terminal = pty.fork()
            if pid == 0:
                os.execve('/bin/zsh', ['zsh', '-f', '-i'], {'TERM': 'dumb', 'HOME': home, 'PATH': '/usr/bin:/bin'})
            try:
                os.write(terminal, f'fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; print re""ady\n'.encode())
                self.read_until(terminal, b'ready\r')
                # The line and a tab; then to its beginning, to have it printed, and to its end.
                os.write(terminal, line.encode() + b'\t\x01print -r -- "<<\x05>>" \n')
                shown = self.read_until(terminal, b'>>\r')
            finally:
                os.close(terminal)
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        return re.findall(r'\n<<(.*)>>\r', shown)[-1].rstrip()

    def read_until(self, terminal, mark):
        shown = b''
        while mark not in shown:
            ready, _, _ = select.select([terminal], [], [], 120)
            self.assertTrue(ready, f'{mark} is not in {shown}')
            shown += os.read(terminal, 4096)
        return shown.decode()

    def test_bash_completes(self):
        share = self.venv / 'share'
        completion = share / 'bash-completion/completions/transform_graph'
        script = (f'source {completion}; COMP_LINE="$1"; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=($1); '
                  'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); compopt() { :; }; _permafrost "${COMP_WORDS[0]}"; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')

        def complete(line):
            return subprocess.run(['bash', '-c', script, 'bash', line], stdout=subprocess.PIPE, text=True,
                                  check=True).stdout.split()

        for line, expected in COMPLETIONS:
            with self.subTest(line):
                # bash completes the text after a = as a separate word.
                self.assertEqual(complete(line), [expected.partition('=')[2] or expected])
        for tool in wheel.tools()[1:]:
            found = {word.rstrip('=') for word in complete(f'{tool} --')}
            self.assertEqual(found, {f'--{flag}' for flag in self.flags_of(tool)} | {'--version'}, tool)

    def test_licences_of_what_is_inside(self):
        with zipfile.ZipFile(self.path) as archive:
            names = [name for name in archive.namelist() if '/licenses/' in name]
        packages = {os.path.basename(name) for name in names}
        self.assertTrue({'LICENSE', 'libprotobuf32'} <= packages, packages)
        with zipfile.ZipFile(self.delegates) as archive:
            packages = {os.path.basename(name) for name in archive.namelist() if '/licenses/' in name}
        self.assertTrue({'LICENSE', 'libdnnl2', 'libgomp1'} <= packages, packages)

    def test_the_record_is_true(self):
        for path in (self.path, self.delegates):
            with self.subTest(path.name):
                self.check_record(path)

    def check_record(self, path):
        import base64
        import hashlib
        with zipfile.ZipFile(path) as archive:
            record = next(name for name in archive.namelist() if name.endswith('/RECORD'))
            rows = [line.rsplit(',', 2) for line in archive.read(record).decode().splitlines()]
            self.assertEqual({row[0] for row in rows}, set(archive.namelist()))
            for name, digest, size in rows:
                if name == record:
                    continue
                data = archive.read(name)
                expected = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
                self.assertEqual((digest, size), (f'sha256={expected}', str(len(data))))


if __name__ == '__main__':
    unittest.main()
