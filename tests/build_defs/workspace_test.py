"""Analyses the example workspace with a separate Bazel server, and the errors for incorrect uses of the rules.

Only the classes of protobuf are compiled, whose rule depends on the place of the sources. For the rest, the same BUILD file
is also a package of this workspace, whose tests build and run it.
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = CHECKOUT / 'docs/examples/bazel'


class WorkspaceTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        if shutil.which('bazel') is None:
            raise unittest.SkipTest('there is no bazel')
        # Independent of the test's folder, because the server requires short paths.
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix='pf_workspace_'))
        cls.app = cls.folder / 'app'
        shutil.copytree(EXAMPLE, cls.app)
        workspace = (cls.app / 'WORKSPACE').read_text()
        old = 'PERMAFROST = "../../.."'
        assert old in workspace
        (cls.app / 'WORKSPACE').write_text(workspace.replace(old, f'PERMAFROST = "{CHECKOUT}"'))

    @classmethod
    def tearDownClass(cls):
        cls.bazel('shutdown')
        subprocess.run(['chmod', '-R', 'u+w', str(cls.folder)], check=False)
        shutil.rmtree(cls.folder, ignore_errors=True)

    @classmethod
    def bazel(cls, command, *arguments):
        environment = dict(os.environ, HOME=str(cls.folder), USER='test')
        return subprocess.run(
            ['bazel', f'--output_user_root={cls.folder}/bazel', '--host_jvm_args=-Xmx600m', command, *arguments],
            cwd=cls.app, env=environment, check=False, capture_output=True, text=True, errors='replace')

    def analyse(self, *targets):
        return self.bazel('build', '--nobuild', '--noshow_progress', '--symlink_prefix=/', *targets)

    def test_the_example_stands_alone(self):
        result = self.analyse('//...')
        self.assertEqual(result.returncode, 0, result.stderr)
        queried = self.bazel('query', '--noshow_progress', 'tests(//...)')
        self.assertEqual(sorted(queried.stdout.split()), ['//:app_test', '//:small_test'], queried.stderr)

    def test_classes_of_protobuf_are_built(self):
        result = self.bazel('build', '--noshow_progress', '--symlink_prefix=/',
                            '@permafrost//io/formats/proto:graphdef_cc_proto')
        self.assertEqual(result.returncode, 0, result.stderr)
        # Neither the warnings nor the sandboxes of Permafrost's sources.
        self.assertLess(result.stderr.count('\n'), 50, result.stderr)

    def test_mistakes_are_told(self):
        load = ('load("@permafrost//tools/build_defs:model_object.bzl", "model_object")\n'
                'load("@permafrost//tools/build_defs:models.bzl", "ops_to_register", "optimized_model")\n'
                'load("@permafrost//tools/build_defs:selective.bzl", "selective_runtime")\n')
        cases = {
            'model_object(name = "a-b", model = "//:small")': 'that of a symbol in C',
            'model_object(name = "1a", model = "//:small")': 'that of a symbol in C',
            'model_object(name = "a", model = "//:small", in_place = False, flags = ["--dedupe"])':
                'flags are for the conversion',
            'ops_to_register(name = "a", models = [])': 'models is empty',
            'optimized_model(name = "a", src = "//:small", transforms = [])': 'transforms is empty',
            'selective_runtime(name = "a", models = [])': 'expected either models or a header',
            'selective_runtime(name = "a", models = ["//:small"], header = "//:ops")':
                'expected either models or a header',
            'selective_runtime(name = "a", models = ["//:small"], instruction_sets = ["avx3"])':
                "found instruction set 'avx3', expected avx2 or avx512",
            'selective_runtime(name = "a", models = ["//:small"], delegates = ["fast"])':
                "found delegate 'fast', expected onednn or xnnpack",
        }
        for number, (text, expected) in enumerate(cases.items()):
            package = self.app / f'case{number}'
            package.mkdir()
            (package / 'BUILD.bazel').write_text(load + text + '\n')
            result = self.analyse(f'//case{number}:all')
            self.assertNotEqual(result.returncode, 0, text)
            self.assertIn(expected, result.stderr, text)
            shutil.rmtree(package)


if __name__ == '__main__':
    unittest.main()
