"""Checks MODULE.bazel against the declarations that Bazel 4.2 reads, since that Bazel ignores it."""

import ast
import pathlib
import re
import unittest

WORKSPACE = pathlib.Path.cwd()


def calls_of(path):
    """The calls of a file in Bazel's language, which is a subset of Python's, by function."""
    calls = {}
    for node in ast.walk(ast.parse((WORKSPACE / path).read_text(encoding='utf-8'))):
        if isinstance(node, ast.Call):
            calls.setdefault(ast.unparse(node.func), []).append(node)
    return calls


def arguments(call):
    return {keyword.arg: keyword.value.value for keyword in call.keywords if isinstance(keyword.value, ast.Constant)}


class ModuleTest(unittest.TestCase):

    def setUp(self):
        self.module = calls_of('MODULE.bazel')

    def test_the_version_is_that_of_the_tools(self):
        version = re.search(r'kVersion = "([^"]+)"', (WORKSPACE / 'tools/command_line/cli.h').read_text(encoding='utf-8')).group(1)
        self.assertEqual([arguments(call) for call in self.module['module']], [{'name': 'permafrost', 'version': version}])

    def test_it_uses_every_repository(self):
        used = [argument.value for argument in self.module['use_repo'][0].args[1:]]
        tree = ast.parse((WORKSPACE / 'third_party/repositories.bzl').read_text(encoding='utf-8'))
        table = next(node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == 'LIBRARIES')
        libraries = ast.literal_eval(table)
        declared = calls_of('third_party/repositories.bzl')
        tools = {arguments(declared[rule][0])['name'] for rule in ('cross_tools', 'musl', 'python_headers')}
        self.assertGreater(len(libraries), 10)
        self.assertEqual(used, sorted({*libraries, *tools}))

    def test_what_it_loads_exists(self):
        [extension] = self.module['use_extension']
        file, name = (argument.value for argument in extension.args)
        self.assertIn(f'{name} = module_extension(', (WORKSPACE / file.lstrip('/').replace(':', '/')).read_text(encoding='utf-8'))


if __name__ == '__main__':
    unittest.main()
