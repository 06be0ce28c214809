"""Checks that auditwheel agrees with the platform tag of the wheel."""

import json
import subprocess
import sys
import tempfile
import unittest

import python_package


class WheelOracle(unittest.TestCase):

    def test_the_tag_is_what_auditwheel_finds(self):
        with tempfile.TemporaryDirectory() as folder:
            path = python_package.assemble_wheel(folder)
            printed = subprocess.run([sys.executable, '-m', 'auditwheel', 'show', path], stdout=subprocess.PIPE, check=True,
                                     text=True).stdout
        tag = path.stem.rsplit('-', 1)[1]
        self.assertTrue(tag.startswith('manylinux_'), tag)
        self.assertIn(f'consistent with the following platform tag: "{tag}"', ' '.join(printed.split()))


if __name__ == '__main__':
    unittest.main()
