"""The wheel: made of what Bazel has built, installed into a fresh environment, and run there without compiler or headers."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

import models

ROOT = pathlib.Path.cwd()
sys.path.insert(0, str(ROOT / 'python/packaging'))
import wheel  # pylint: disable=wrong-import-position

# The issue's: with oneDNN's library inside, and without what only delegates need.
MOST_BYTES = 25_000_000
MOST_BYTES_WITHOUT_DELEGATES = 10_000_000
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
        # Our tests' numpy is the distribution's: nothing is downloaded.
        cls.venv = base / 'venv'
        subprocess.run([sys.executable, '-m', 'venv', '--system-site-packages', cls.venv], check=True)
        subprocess.run([cls.venv / 'bin/pip', 'install', '--quiet', '--no-index', '--disable-pip-version-check', cls.path],
                       check=True, env={'PATH': '/nowhere', 'HOME': str(base)})

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_there(self, *command):
        """Runs a program of the environment, with nothing of this process's surroundings."""
        return subprocess.run([self.venv / 'bin' / command[0], *command[1:]], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False, cwd='/',
                              env={'PATH': str(self.venv / 'bin')})

    def test_size(self):
        self.assertLess(self.path.stat().st_size, MOST_BYTES)
        with zipfile.ZipFile(self.path) as archive:
            rest = sum(entry.compress_size for entry in archive.infolist()
                       if not os.path.basename(entry.filename).startswith(OF_DELEGATES))
        self.assertLess(rest, MOST_BYTES_WITHOUT_DELEGATES)

    def test_needs_nothing_that_a_system_need_not_have(self):
        with zipfile.ZipFile(self.path) as archive:
            names = archive.namelist()
        inside = {os.path.basename(name) for name in names if '/libraries/' in name}
        site = next((self.venv / 'lib').glob('python*/site-packages/permafrost'))
        libraries = [next(site.glob('_native.*.so'))] + list((site / 'libraries').iterdir())
        self.assertGreater(len(libraries), 10)
        for library in libraries:
            text = subprocess.run(['readelf', '--dynamic', '--wide', library], stdout=subprocess.PIPE, text=True,
                                  check=True).stdout
            for needed in re.findall(r'\(NEEDED\).*\[(.*)\]', text):
                self.assertIn(needed, inside | set(wheel.SYSTEM_LIBRARIES), library.name)
            self.assertRegex(text, r'\$ORIGIN')
        loaded = self.run_there('python', '-c',
                                'import permafrost; permafrost.delegates(); print(open("/proc/self/maps").read())').stdout
        self.assertIn('libdnnl', loaded)
        for name in set(re.findall(r'/\S*/(lib(?:dnnl|protobuf|absl|zstd|sodium)\S*)', loaded)):
            self.assertIn(str(site / 'libraries' / name), loaded)

    def test_tag(self):
        self.assertRegex(self.path.name, r'^permafrost-[0-9.]+-cp3\d+-cp3\d+-manylinux_2_\d+_\w+\.whl$')

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

    def test_tools_are_on_the_path(self):
        self.assertGreater(len(wheel.tools()), 12)
        for tool in wheel.tools():
            result = self.run_there(tool, '--version')
            self.assertEqual((result.returncode, result.stdout), (0, f'{tool} {wheel.version()}\n'))
        self.assertEqual(self.run_there('transform_graph').returncode, 255)
        result = self.run_there('permafrost', 'summarize_graph', '--in_graph=/no/such')
        self.assertEqual((result.returncode, result.stdout),
                         (255, "summarize_graph: cannot open '/no/such': No such file or directory\n"))

    def test_pages_and_completions(self):
        share = self.venv / 'share'
        for tool in wheel.tools():
            self.assertIn('.SH NAME', (share / f'man/man1/{tool}.1').read_text(encoding='utf-8'))
        completion = share / 'bash-completion/completions/transform_graph'
        script = (f'source {completion}; COMP_LINE="$1"; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=($1); '
                  'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); compopt() { :; }; _permafrost "${COMP_WORDS[0]}"; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        for line, expected in (('transform_graph --in_', '--in_graph='), ('transform_graph --verify=e', 'each'),
                               ('permafrost sum', 'summarize_graph'),
                               ('permafrost transform_graph --out_g', '--out_graph=')):
            with self.subTest(line):
                result = subprocess.run(['bash', '-c', script, 'bash', line], stdout=subprocess.PIPE, text=True, check=True)
                self.assertEqual(result.stdout.split(), [expected])

    def test_licences_of_what_is_inside(self):
        with zipfile.ZipFile(self.path) as archive:
            names = [name for name in archive.namelist() if '/licenses/' in name]
        packages = {os.path.basename(name) for name in names}
        self.assertTrue({'LICENSE', 'libdnnl2', 'libprotobuf32', 'libgomp1'} <= packages, packages)

    def test_the_record_is_true(self):
        import base64
        import hashlib
        with zipfile.ZipFile(self.path) as archive:
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
