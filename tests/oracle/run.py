"""Runs the oracle tests whose file names match a pattern. The last line is "N passed, N failed[, N skipped]"."""

import pathlib
import sys
import unittest


def main(pattern):
    suite = unittest.defaultTestLoader.discover(str(pathlib.Path(__file__).parent), pattern=pattern)
    if suite.countTestCases() == 0:
        print(f'no oracle tests: no case in tests/oracle/{pattern}')
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    passed = max(0, result.testsRun - failed - skipped)
    print(f'{passed} passed, {failed} failed' + (f', {skipped} skipped' if skipped else ''))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
