"""Checks the documents: links, named files and tests, commands and figures of the front page, the page on interoperability.

    documents_test.py PERMAFROST    PERMAFROST: the program with all tools
"""

import importlib.machinery
import importlib.util
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

WORKSPACE = pathlib.Path(__file__).resolve().parents[2]
PERMAFROST = pathlib.Path(sys.argv[1]).absolute() if sys.argv[1:] else WORKSPACE / 'bazel-bin/tools/permafrost'
README = WORKSPACE / 'README.md'
# The first element of paths that the documents name.
FOLDERS = ('docs/', 'embedding/', 'graph/', 'install/', 'io/', 'python/', 'runtime_check/', 'script/', 'selective/', 'tests/',
           'third_party/', 'tools/', 'transforms/')
# Made by a build, not kept.
GENERATED = ('python/dist/',)


def pages():
    return [page for page in sorted(WORKSPACE.glob('*.md')) + sorted((WORKSPACE / 'docs').rglob('*.md'))]


def without_code(text):
    return re.sub(r'```.*?```|^ {4}.*?$|`[^`\n]*`', '', text, flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    """The anchors that the headings of a page have on GitHub."""
    headings = re.findall(r'^#+ (.*)$', page.read_text(encoding='utf-8'), re.MULTILINE)
    return {re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-') for heading in headings}


def load(path):
    loader = importlib.machinery.SourceFileLoader(path.stem, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(path.stem, loader))
    sys.dont_write_bytecode = True
    loader.exec_module(module)
    return module


class DocumentsTest(unittest.TestCase):
    maxDiff = None

    def test_links_lead_somewhere(self):
        broken = []
        for page in pages():
            for target in re.findall(r'\]\(([^)\s]+)\)', without_code(page.read_text(encoding='utf-8'))):
                if re.match(r'\w+:', target):
                    continue
                path, _, anchor = target.partition('#')
                place = (page.parent / path).resolve() if path else page
                if not place.exists() or anchor and anchor not in anchors(place):
                    broken.append(f'{page.relative_to(WORKSPACE)}: {target}')
        self.assertEqual(broken, [])

    def test_named_files_exist(self):
        """Paths in backticks, in the pages for those who change the code."""
        missing = []
        for page in pages():
            if page.name in ('CHANGELOG.md', 'kernels.md', 'passes.md') or page.parent.name == 'guide':
                continue
            for name in re.findall(r'`([\w./-]+)`', page.read_text(encoding='utf-8')):
                if name.startswith(FOLDERS) and not name.startswith(GENERATED):
                    place = WORKSPACE / name
                    if not place.exists() and not list(place.parent.glob(place.name + '*')):
                        missing.append(f'{page.relative_to(WORKSPACE)}: {name}')
        self.assertEqual(missing, [])


class FrontPageTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.text = README.read_text(encoding='utf-8')

    def test_each_section_names_tests_that_exist(self):
        sections = re.split(r'^#+ ', self.text, flags=re.MULTILINE)[1:]
        for section in sections:
            title = section.split('\n', 1)[0]
            named = [name for comment in re.findall(r'<!--(.*?)-->', section, re.DOTALL)
                     for name in re.findall(r'//[\w/:]+|tests/[\w/]+\.py', comment)]
            with self.subTest(title):
                self.assertTrue(named, 'the section has no comment that names a test')
                self.assertEqual([name for name in named if not self.exists(name)], [])

    @staticmethod
    def exists(name):
        if not name.startswith('//'):
            return (WORKSPACE / name).is_file()
        package, target = name[2:].split(':')
        build = WORKSPACE / package / 'BUILD.bazel'
        if not build.is_file():
            return False
        # The name of a rule, or one of a list of names, or of a glob of sources.
        text = build.read_text(encoding='utf-8')
        return f'"{target}"' in text or 'glob(["*_test.cc"])' in text and (build.parent / f'{target}.cc').is_file()

    def test_commands_run(self):
        first = self.text.split('\n## ', 1)[0]
        commands = [shlex.split(line, comments=True) for line in re.findall(r'^ {4}(\w+ --.*)$', first, re.MULTILINE)]
        self.assertEqual([command[0] for command in commands], ['summarize_graph', 'transform_graph', 'benchmark_model'])
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / 'model.pb').symlink_to(WORKSPACE / 'tests/models/digits/digits.pb')
            for command in commands:
                with self.subTest(command[0]):
                    more = ['--max_num_runs=3'] if command[0] == 'benchmark_model' else []
                    done = subprocess.run([PERMAFROST, *command, *more], cwd=folder, capture_output=True, text=True,
                                          check=False)
                    self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLess((pathlib.Path(folder) / 'small.pb').stat().st_size * 3,
                            (WORKSPACE / 'tests/models/digits/digits.pb').stat().st_size)

    def test_figures_are_those_measured(self):
        figures = load(WORKSPACE / 'script/readme_figures')
        rows = json.loads(figures.RESULTS.read_text(encoding='utf-8'))
        self.assertIn(f'{figures.BEGIN}\n{figures.table(rows)}\n{figures.END}', self.text)


class InteroperabilityTest(unittest.TestCase):
    maxDiff = None

    def test_the_page_shows_what_was_recorded(self):
        generator = load(WORKSPACE / 'tests/oracle/interoperability_page.py')
        self.assertEqual((WORKSPACE / 'docs/interoperability.md').read_text(encoding='utf-8'), generator.page(),
                         'run tests/oracle/interoperability_page.py')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
