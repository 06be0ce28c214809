"""Tests which sources of kernels a selective build compiles (tools/build_defs/selected_kernels.sh).

    selected_kernels_test.py SCRIPT ARCHIVE FILE...

ARCHIVE: the library with all kernels. FILE: the sources of kernels and their headers.

For each source that defines kernels, the selected sources must define every symbol of the archive that their objects
refer to. Otherwise a selective runtime for the ops of that source does not link.
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SCRIPT, ARCHIVE, *FILES = sys.argv[1:]
SOURCES = [pathlib.Path(file) for file in FILES if file.endswith('.cc')]


def ops_of(source):
    return re.findall(r'^DEFINE_KERNEL\((\w+)\)', source.read_text(), re.MULTILINE)


def select(ops):
    """Returns the written files, name to content, for a header that lists `ops`."""
    with tempfile.TemporaryDirectory() as folder:
        header = pathlib.Path(folder) / 'ops_to_register.h'
        names = ' '.join(f'"{op}",' for op in ops)
        header.write_text('inline constexpr const char* kHint = "Conv2D";\n'
                          f'inline constexpr const char* kOps[] = {{{names}\n  "_None"}};\n'
                          'inline constexpr const char* kOther[] = {"MatMul"};\n')
        output = pathlib.Path(folder) / 'selected'
        subprocess.run(['sh', SCRIPT, header, output, *FILES], check=True)
        return {file.name: file.read_text() for file in output.iterdir()}


def symbols_of_objects():
    """Returns two maps from the stem of an object in ARCHIVE: symbols that only it defines, and undefined symbols."""
    listing = subprocess.run(['nm', '--format=posix', ARCHIVE], check=True, capture_output=True, text=True).stdout
    defined, undefined = collections.defaultdict(set), collections.defaultdict(set)
    stem = None
    for line in listing.splitlines():
        match = re.match(r'.*\[(.*?)(\.pic)?\.o\]:$', line)
        if match:
            stem = match.group(1)
            continue
        name, kind = line.split()[:2]
        if kind == 'U':
            undefined[stem].add(name)
        elif kind in 'TDBR':  # Neither local nor weak: an inline function is in each object that calls it.
            defined[stem].add(name)
    return defined, undefined


class SelectedKernelsTest(unittest.TestCase):

    def test_selected_sources_define_what_they_refer_to(self):
        defined, undefined = symbols_of_objects()
        place = {name: stem for stem, names in defined.items() for name in names}
        checked = 0
        for source in SOURCES:
            ops = ops_of(source)
            if not ops:
                continue
            selected = {pathlib.Path(name).stem for name in select(ops)}
            self.assertIn(source.stem, selected)
            for stem in sorted(selected):
                needed = {place[name]: name for name in undefined[stem] if name in place}
                needed.pop('kernel', None)  # The table of kernels, which is always compiled.
                for other, name in needed.items():
                    checked += 1
                    self.assertIn(other, selected, f'for {source.name}, {stem} refers to {name}')
        self.assertGreater(checked, 500)

    def test_sources_of_other_ops_are_left_out(self):
        selected = select(['Relu', 'MatMul'])
        self.assertIn('gemm.cc', selected)
        self.assertIn('inner_loops_avx2.cc', selected)
        for name in ('pooling.cc', 'regular_expression.cc', 'integer_recurrent.cc', 'einsum.cc'):
            self.assertNotIn(name, selected)
        self.assertLess(len(selected), len(SOURCES) // 3)
        # Ops are read from kOps alone.
        self.assertNotIn('convolution.cc', select(['Relu']))

    def test_a_file_names_the_ops_of_its_source(self):
        selected = select(['AvgPool'])
        self.assertEqual(selected['pooling.cc'].splitlines()[1:], [
            '#define PERMAFROST_OPS_OF_THIS_FILE "AvgPool", "MaxPool", "MaxPoolV2", "MaxPoolWithArgmax"',
            '#include "runtime_check/kernels/pooling.cc"',
        ])
        self.assertEqual(selected['window.cc'].splitlines()[1:], ['#include "runtime_check/kernels/window.cc"'])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
