"""Makes the system calls and the allocations of each tool that writes fail, one at a time, and kills it at each call.

Whatever happens, the old file is intact or the new one is complete, the tool ends by itself with an error line or with
success, and leaves no temporary file. A killed tool may leave one, which the next writer removes.

Calls fail one after the other, N = 1, 2, 3, ..., until a run passes untouched. A run makes tens of thousands of
allocations: $FAULT_SAMPLES of them (default 20 for each tool), at equal distances, fail. FAULT_SAMPLES=0 tries all.
"""

import errno
import os
import pathlib
import subprocess
import tempfile
import unittest

HERE = pathlib.Path.cwd()
LIBRARY = HERE / 'tests/faults/libfailing_calls.so'
DIGITS = HERE / 'tests/models/digits/digits.pb'
ERROR = 255
OLD = b'the old file'
SAMPLES = int(os.environ.get('FAULT_SAMPLES', '20'))

# By name: the command, which writes {out}.
WRITERS = {
    'transform': 'transform_graph --in_graph={model} --out_graph={out} --transforms=fold_constants --verify=off',
    'verify': 'transform_graph --in_graph={model} --out_graph={out} --threads=2 --transforms=round_weights',
    'convert': 'convert_model --in={model} --out={out} --to=pb --compress=zstd',
    'text': 'convert_model --in={model} --out={out} --to=pbtxt',
    'package': 'convert_graphdef_memmapped_format --in_graph={model} --out_graph={out}',
    'pack': 'convert_graphdef_memmapped_format --in_graph={model} --out_graph={out} --pack_for=onednn:f32',
    'encrypt': 'encrypt_model --in={model} --out={out} '
               '--recipient=age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj',
}


class FaultTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / 'out'

    def run_writer(self, name, **environment):
        """Runs the command over an old file. Returns status, error text, and content of the file afterwards."""
        for left in self.folder.iterdir():
            left.unlink()
        self.out.write_bytes(OLD)
        tool, *flags = WRITERS[name].format(model=DIGITS, out=self.out).split()
        result = subprocess.run([HERE / 'tools' / tool, *flags], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, check=False,
                                timeout=120, env={**os.environ, 'NO_COLOR': '1', 'LD_PRELOAD': str(LIBRARY), **environment})
        return result.returncode, result.stderr.decode(errors='replace'), self.out.read_bytes()

    def count(self, name, kind):
        """The number of calls of an untouched run, and what it writes."""
        count = self.folder / 'count'  # Where the sandbox of the tools lets them write.
        status, text, written = self.run_writer(name, FAULT_KIND=kind, FAULT_NTH='0', FAULT_COUNT=str(count))
        self.assertEqual(status, 0, text)
        self.assertNotEqual(written, OLD)
        calls = int(count.read_text())
        count.unlink()
        self.assertGreater(calls, 10, 'the library was not loaded')
        return calls, written

    def temporaries(self):
        return [path.name for path in self.folder.iterdir() if path != self.out]

    def check(self, name, place, complete, status, text, written):
        is_encrypted = name == 'encrypt'  # Each run has its own key.
        is_complete = len(written) == len(complete) if is_encrypted else written == complete
        if status == 0:
            self.assertTrue(is_complete, f'{place}: success, and the file has {len(written)} bytes: {text}')
        else:
            self.assertEqual(status, ERROR, f'{place}: {text}')
            self.assertTrue(text.strip(), f'{place}: no error line')
            # Only a folder that cannot be synced is an error after the file is complete.
            self.assertTrue(written == OLD or is_complete, f'{place}: {len(written)} bytes: {text}')
        self.assertEqual(self.temporaries(), [], place)

    def fail_calls(self, name, error):
        calls, complete = self.count(name, 'calls')
        for nth in range(1, 2 * calls):
            status, text, written = self.run_writer(name, FAULT_KIND='calls', FAULT_NTH=str(nth), FAULT_ERRNO=str(error))
            self.check(name, f'{name}: call {nth} fails with {errno.errorcode[error]}', complete, status, text, written)
            if nth > calls and status == 0:
                return
        self.fail(f'{name}: no run passed untouched')

    def fail_allocations(self, name):
        count, complete = self.count(name, 'allocations')
        step = max(1, count // SAMPLES) if SAMPLES > 0 else 1
        for nth in range(1, count + 1, step):
            status, text, written = self.run_writer(name, FAULT_KIND='allocations', FAULT_NTH=str(nth))
            self.check(name, f'{name}: allocation {nth} of {count} fails', complete, status, text, written)

    def kill(self, name):
        calls, complete = self.count(name, 'calls')
        for nth in range(1, calls + 1):
            status, text, written = self.run_writer(name, FAULT_KIND='calls', FAULT_NTH=str(nth), FAULT_ERRNO='0')
            place = f'{name}: killed at call {nth}'
            is_complete = len(written) == len(complete) if name == 'encrypt' else written == complete
            self.assertTrue(written == OLD or is_complete, f'{place}: {len(written)} bytes')
            for left in self.temporaries():
                self.assertRegex(left, r'^\.permafrost-[0-9a-f]{16}\.tmp$', place)
            if not self.temporaries():
                continue
            sweeper = [HERE / 'tools/convert_model', f'--in={DIGITS}', f'--out={self.folder / "next"}', '--to=pb']
            subprocess.run(sweeper, check=True, capture_output=True)
            (self.folder / 'next').unlink()
            self.assertEqual(self.temporaries(), [], f'{place}: not swept')

    def test_a_file_size_limit_is_an_error(self):
        self.out.write_bytes(OLD)
        result = subprocess.run(['bash', '-c', f'ulimit -f 8; exec {HERE}/tools/convert_model --in={DIGITS} --out={self.out} '
                                 '--to=pb'], capture_output=True, check=False, text=True)
        self.assertEqual(result.returncode, ERROR, result.stderr)
        self.assertIn('File too large', result.stderr)
        self.assertEqual(self.out.read_bytes(), OLD)
        self.assertEqual(self.temporaries(), [])


def add_tests():
    for name in WRITERS:
        for error in (errno.EIO, errno.ENOSPC):
            setattr(FaultTest, f'test_{name}_calls_fail_with_{errno.errorcode[error]}',
                    lambda self, name=name, error=error: self.fail_calls(name, error))
        setattr(FaultTest, f'test_{name}_allocations_fail', lambda self, name=name: self.fail_allocations(name))
        setattr(FaultTest, f'test_{name}_is_killed', lambda self, name=name: self.kill(name))


add_tests()

if __name__ == '__main__':
    unittest.main(verbosity=2)
