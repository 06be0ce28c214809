"""Checks the source tree: every #include against the table of layers, each third-party header against its one home
(docs/architecture.md), that each type has one definition, and that each tool is documented."""

import pathlib
import re
import unittest

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]

ARCHITECTURE = WORKSPACE / 'docs/architecture.md'


def layers(text):
    """The table of docs/architecture.md: rows of a folder and the prefixes that it may include."""
    table = re.search(r'^\| folder \| may include \|\n\|---\|---\|\n((?:\|.*\|\n)+)', text, re.MULTILINE).group(1)
    paths = lambda cell: re.findall(r'`([^`]+)`', cell)
    return [(paths(folder)[0], paths(allowed)) for folder, allowed in
            (line.strip('|').split('|') for line in table.splitlines())]


LAYERS = layers(ARCHITECTURE.read_text(encoding='utf-8'))
# Folders whose headers are included by their paths, and those that have sources only.
PROJECT = ('graph/', 'io/', 'transforms/', 'runtime_check/', 'embedding/', 'tools/', 'python/', 'tests/')
OTHERS = ('selective/', 'install/', 'docs/examples/')
# CMake and shell alone.
WITHOUT_SOURCES = ('install/',)

# A third-party header and the only places that may include it. A place is a prefix of the file's path.
HOMES = [
    (r'google/protobuf/|.*\.pb\.h$', ['io/formats/']),
    (r'flatbuffers/', ['io/formats/tflite/']),
    (r'sodium', ['io/formats/age/crypto.']),
    (r'leveldb/', ['tests/']),
    (r'snappy\.h', ['io/formats/checkpoint/sorted_table.']),
    (r'zlib\.h', ['io/formats/gzip.']),
    (r'zstd', ['io/formats/zstd.']),
    (r'(unsupported/)?Eigen/', ['runtime_check/kernels/']),
    (r'jpeglib\.h|jerror\.h', ['runtime_check/images/', 'tools/images/jpeg_codec.']),
    (r'png\.h', ['runtime_check/images/']),
    (r'dnnl|oneapi/', ['runtime_check/delegates/onednn/']),
    (r'CL/', ['runtime_check/delegates/opencl/']),
    (r'xnnpack|pthreadpool|cpuinfo', ['runtime_check/delegates/xnnpack/']),
    (r'third_party/deferred/', ['runtime_check/delegates/', 'third_party/']),
    (r'permafrost_(delegate|custom_op)\.h$', ['runtime_check/delegates/external/', 'docs/examples/']),
    (r'permafrost_runtime\.hp?p?$', ['embedding/', 'docs/examples/']),
    (r'pybind11/|Python\.h', ['python/']),
    # What the build makes of a model.
    (r'ops_to_register\.h$', ['graph/base/selection.', 'tests/build_defs/', 'docs/examples/cmake/']),
    (r'digits(_\w+)?\.h$', ['tests/build_defs/', 'docs/examples/bazel/']),
    (r'gtest/|gmock/|benchmark/', ['tests/']),
    (r'tensorflow/', ['tests/oracle/']),
]
# May be included anywhere.
EVERYWHERE = r'absl/'

# The lines that open and close a namespace, and that define a type in it.
NAMESPACE = re.compile(r'^namespace\s*([\w:]*)\s*\{')
END_OF_NAMESPACE = re.compile(r'^\}\s*//\s*namespace')
TYPE = re.compile(r'^(?:template\s*<[^{;]*>\s*)?(?:struct|class|enum class|enum|union)\s+(\w+)(?:\s+final)?\s*(?::[^:;{][^;{]*)?\{')

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)


def types_in(text):
    """The qualified names of types that other files could define, too."""
    namespaces = []
    for line in text.splitlines():
        if opened := NAMESPACE.match(line):
            namespaces.append(opened.group(1))
        elif END_OF_NAMESPACE.match(line) and namespaces:
            namespaces.pop()
        elif (defined := TYPE.match(line)) and '' not in namespaces:
            yield '::'.join([*namespaces, defined.group(1)])


def problem(path, delimiter, header):
    """Returns why `path` must not include `header`, or None."""
    if header.startswith(PROJECT) and not header.endswith('.pb.h'):
        for folder, allowed in LAYERS:
            if path.startswith(folder):
                if folder.endswith('delegates/'):
                    allowed = allowed + ['/'.join(path.split('/')[:3]) + '/']
                if not header.startswith(tuple(allowed)):
                    return f'{path} includes {header}; {folder} may include {" ".join(allowed)}'
                return None
        return None if path.startswith('tests/') else f'{path} is in no layer'
    for pattern, homes in HOMES:
        if re.match(pattern, header):
            # Tests compare with the libraries themselves.
            if path.startswith(tuple(homes) + ('tests/',)):
                return None
            return f'{path} includes {header}, whose home is {" ".join(homes)}'
    # An example of several files stands for a project of a user's.
    if delimiter == '"' and path.startswith('docs/examples/') and ((WORKSPACE / path).parent / header).is_file():
        return None
    if delimiter == '"' and not re.match(EVERYWHERE, header):
        return f'{path} includes "{header}", which is neither the project\'s nor a known library\'s'
    if delimiter == '<' and '/' in header and not header.startswith(('sys/', 'linux/', 'asm/')):
        return f'{path} includes <{header}>, whose home is not settled: add a row to HOMES'
    return None


def sources():
    for folder in PROJECT + OTHERS:
        for path in sorted((WORKSPACE / folder).rglob('*')):
            if path.suffix in ('.h', '.hpp', '.c', '.cc', '.inc', '.def') and path.is_file():
                yield path


class LayeringTest(unittest.TestCase):

    def test_every_include_fits_the_table(self):
        files = 0
        problems = []
        for path in sources():
            files += 1
            relative = path.relative_to(WORKSPACE).as_posix()
            for delimiter, header in INCLUDE.findall(path.read_text(encoding='utf-8')):
                found = problem(relative, delimiter, header)
                if found:
                    problems.append(found)
        self.assertGreater(files, 0)
        self.assertEqual(problems, [], '\n' + '\n'.join(problems))

    def test_every_file_says_what_it_is_for(self):
        silent = [path.relative_to(WORKSPACE).as_posix() for path in sources()
                  if not path.read_text(encoding='utf-8').startswith(('//', '/*'))]
        self.assertEqual(silent, [])

    def test_each_type_has_one_definition(self):
        # Two types with one name are undefined behaviour: the linker keeps one instance of std::vector<T> for both.
        homes = {}
        for path in sources():
            relative = path.relative_to(WORKSPACE).as_posix()
            if not relative.startswith(('tests/', 'docs/')):
                for name in types_in(path.read_text(encoding='utf-8')):
                    homes.setdefault(name, []).append(relative)
        self.assertGreater(len(homes), 500)
        self.assertEqual({name: paths for name, paths in homes.items() if len(paths) > 1}, {})

    def test_a_second_definition_is_found(self):
        text = ('namespace a {\nnamespace {\nstruct B {\n};\n}  // namespace\nclass C final : public D {\n};\nstruct E;\n'
                '}  // namespace a\n')
        self.assertEqual(list(types_in(text)), ['a::C'])

    def test_kernels_reach_elements_through_views(self):
        """The views of ComputeContext check types and sizes; the members of a Value do not."""
        members = re.compile(r'\b\w+(?:\.|->)(?:data|strings|objects)\b(?![(<])')
        # These use a Value regardless of its type.
        whole_values = ('element_store.cc', 'element_store.h', 'lookup_table.cc', 'stand_in.cc', 'tensor_text.cc')
        problems = [f'{path.name}: {found.group()}' for path in sources()
                    if path.parts[-3:-1] == ('runtime_check', 'kernels') and path.name not in whole_values
                    for found in members.finditer(re.sub(r'//.*', '', path.read_text(encoding='utf-8')))]
        self.assertEqual(problems, [])

    def test_the_table_is_complete(self):
        """Each row has sources, and no source is outside of all rows but those of tests."""
        files = [path.relative_to(WORKSPACE).as_posix() for path in sources()]
        used = {next((folder for folder, _ in LAYERS if file.startswith(folder)), 'tests/') for file in files
                if not file.startswith('tests/')}
        self.assertEqual(used - {'tests/'}, {folder for folder, _ in LAYERS if folder not in WITHOUT_SOURCES})
        for folder, allowed in LAYERS:
            for prefix in allowed:
                self.assertTrue(prefix.startswith(PROJECT), f'{folder}: {prefix}')
                self.assertTrue((WORKSPACE / prefix).exists() or prefix.endswith('_'), f'{folder}: {prefix}')

    def test_the_table_refuses_what_it_should(self):
        for path, header in [('graph/graph.cc', 'io/model_file.h'), ('io/model_file.cc', 'transforms/pass.h'),
                             ('transforms/passes/a.cc', 'runtime_check/session.h'),
                             ('runtime_check/session.cc', 'transforms/pass.h'),
                             ('runtime_check/delegates/onednn/a.cc', 'runtime_check/session.h'),
                             ('runtime_check/delegates/onednn/a.cc', 'runtime_check/delegates/xnnpack/b.h'),
                             ('runtime_check/session.cc', 'tools/command_line/cli.h'), ('graph/graph.cc', 'gtest/gtest.h'),
                             ('io/model_file.cc', 'google/protobuf/message.h'), ('graph/attr.cc', 'io/formats/proto/a.pb.h'),
                             ('runtime_check/session.cc', 'Eigen/Core'), ('io/formats/npy.cc', 'zstd.h'),
                             ('selective/status.cc', 'graph/graph.h'), ('docs/examples/bazel/app.c', 'graph/graph.h'),
                             ('docs/examples/extending/a.cc', 'tools/command_line/cli.h'),
                             ('selective/status.cc', 'zlib.h'), ('graph/graph.cc', 'unknown.h'), ('stray/a.cc', 'graph/graph.h')]:
            with self.subTest(path=path, header=header):
                self.assertIsNotNone(problem(path, '"', header))

    def test_the_table_allows_what_it_should(self):
        for path, header in [('io/model_file.cc', 'graph/graph.h'), ('graph/graph.cc', 'absl/strings/str_cat.h'),
                             ('runtime_check/delegates/onednn/a.cc', 'runtime_check/delegate.h'),
                             ('runtime_check/delegates/onednn/a.cc', 'runtime_check/delegates/onednn/b.h'),
                             ('io/formats/zstd.cc', 'zstd.h'), ('tests/transforms/a_test.cc', 'transforms/pass.h')]:
            with self.subTest(path=path, header=header):
                self.assertIsNone(problem(path, '"', header))

    def test_every_tool_is_documented(self):
        declared = re.search(r'^declare_tools\(\{\n(.*?)^\}\)', (WORKSPACE / 'tools/BUILD.bazel').read_text(encoding='utf-8'),
                             re.MULTILINE | re.DOTALL).group(1)
        tools = re.findall(r'^    "(\w+)": \[', declared, re.MULTILINE)
        self.assertIn('transform_graph', tools)
        self.assertEqual(tools, sorted(tools))
        readme = (WORKSPACE / 'README.md').read_text(encoding='utf-8')
        guides = [page.read_text(encoding='utf-8') for page in (WORKSPACE / 'docs/guide').glob('*.md')]
        for tool in tools:
            with self.subTest(tool):
                self.assertIn(f'`{tool}`', readme)
                self.assertTrue(any(f'{tool} --' in page for page in guides), f'no page of docs/guide/ has a call of {tool}')


if __name__ == '__main__':
    unittest.main()
