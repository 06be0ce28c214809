"""The shared runtimes in a process that has loaded another protobuf for all of its libraries, as programs with TensorFlow do.

    beside_protobuf_test.py FULL_LIBRARY PROGRAM_WITH_SMALL_LIBRARY OTHER_PROTOBUF

Every function of OTHER_PROTOBUF ends the process. The small library uses no protobuf. The full one must be opened with
RTLD_DEEPBIND, as docs/guide/embedding.md says.
"""

import os
import pathlib
import subprocess
import sys
import unittest

FULL, PROGRAM, OTHER = (pathlib.Path(argument).absolute() for argument in sys.argv[1:])
OPEN = """
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | int(sys.argv[3]))
model, error = ctypes.c_void_p(), ctypes.create_string_buffer(512)
status = library.pf_open_file(sys.argv[2].encode(), None, ctypes.byref(model), error, 512)
assert status == 0, error.value
library.pf_free_model(model)
"""


class BesideProtobufTest(unittest.TestCase):

    def run_beside(self, *arguments):
        return subprocess.run(arguments, env=dict(os.environ, LD_PRELOAD=str(OTHER)), capture_output=True, text=True,
                              check=False)

    def open(self, path, flag):
        return self.run_beside(sys.executable, '-c', OPEN, FULL, path, str(flag))

    def test_the_small_library(self):
        result = self.run_beside(PROGRAM)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_the_full_library_bound_to_its_own(self):
        for path in 'tests/formats/cases/encodings.pbtxt', 'tests/models/digits/digits.pb':
            result = self.open(path, os.RTLD_DEEPBIND)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_the_other_protobuf_is_in_the_way_otherwise(self):
        self.assertIn("another library's protobuf", self.open('tests/models/digits/digits.pb', 0).stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
