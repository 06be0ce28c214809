"""Runs whole searches of optimize_model on the digits model: results are within their budgets, are reproduced by the
printed command, and go on from a journal after an interruption or a kill."""

import json
import pathlib
import shlex
import signal
import subprocess
import tempfile
import time
import unittest

HERE = pathlib.Path.cwd()
DIGITS = HERE / 'tests/models/digits'
INPUTS = [f'--inputs=image={DIGITS}/eval_images.npy', f'--labels={DIGITS}/eval_labels.npy',
          '--output_layer=probabilities', '--samples=200', '--threads=1']


def run(tool, *flags, folder, status=0):
    done = subprocess.run([str(HERE / 'tools' / tool), *map(str, flags)], cwd=folder, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    assert done.returncode == status, f'{tool} ended with {done.returncode}: {done.stdout}{done.stderr}'
    return done.stdout + done.stderr


class OptimizeModelTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def optimize(self, *flags, status=0, out='best.pb', inputs=INPUTS):
        return run('optimize_model', DIGITS / 'digits.pb', out, *inputs, *flags, folder=self.folder, status=status)

    def results(self, name='best.json'):
        return json.loads((self.folder / name).read_text())

    def test_result_is_within_its_budget_and_is_reproduced(self):
        self.optimize('--minimize=size', '--max_error=2%', '--delegates=reference',
                      '--certificate=best.certificate.json')
        results = self.results()
        result = results['result']
        self.assertLess(result['file_bytes'], 0.3 * results['in_bytes'])
        self.assertEqual(result['file_bytes'], (self.folder / 'best.pb').stat().st_size)
        self.assertEqual(result['bytes'], result['file_bytes'])
        self.assertLessEqual(result['relative_rms'], 0.02)
        self.assertEqual([check['inputs'] for check in result['checks']], ['held back', 'seeded'])
        for check in result['checks']:
            self.assertLessEqual(check['share_of_budget'], 1)
        self.assertEqual(result['checks'][0]['labelled_rows'], 100)
        # No trial within the budget is smaller.
        for trial in results['trials']:
            if trial['inputs'] == 'search' and not trial['failure'] and trial['share_of_budget'] <= 1:
                self.assertGreaterEqual(trial['bytes'], result['bytes'])
        # The command writes the same bytes.
        before = (self.folder / 'best.pb').read_bytes()
        (self.folder / 'best.pb').unlink()
        tool, *flags = shlex.split(result['command'])
        run(tool, *flags, folder=self.folder)
        self.assertEqual((self.folder / 'best.pb').read_bytes(), before)
        # An independent tool agrees about the error.
        run('validate_model', DIGITS / 'digits.pb', 'best.pb', f'--inputs=image={DIGITS}/eval_images.npy',
            '--outputs=probabilities', '--tolerance=0.25', folder=self.folder)
        self.check_certificate()
        page = (self.folder / 'best.html').read_text()
        self.assertIn('<script id="facts" type="application/json">', page)
        self.assertIn('"in_model"', page)

    def check_certificate(self):
        """The proof is repeated; an altered certificate, model or output is found."""
        certificate = self.folder / 'best.certificate.json'
        check = lambda status=0, **kwargs: run('validate_model', '--certificate=best.certificate.json',
                                               '--candidate=best.pb', folder=self.folder, status=status)
        self.assertIn('identical', check())
        summary = run('summarize_graph', '--in_graph=best.pb', folder=self.folder)
        self.assertIn("Certificate 'best.certificate.json'", summary)
        self.assertIn('of this file; original ', summary)
        text = certificate.read_text()
        certificate.write_text(text.replace('"right":', '"right":1', 1))
        self.assertIn('it was altered: its hash is ', check(status=255))
        self.assertIn('not valid: ', run('summarize_graph', '--in_graph=best.pb', folder=self.folder))
        certificate.write_text('{"format": 1}')
        self.assertIn("expected a 'permafrost certificate', version 1", check(status=255))
        certificate.write_text(text)
        model = (self.folder / 'best.pb').read_bytes()
        (self.folder / 'best.pb').write_bytes(model[:-1] + bytes([model[-1] ^ 1]))
        self.assertIn("'best.pb' is not the model of the certificate: its SHA-256 is ", check(status=1))
        self.assertIn('of another file', run('summarize_graph', '--in_graph=best.pb', folder=self.folder))
        (self.folder / 'best.pb').write_bytes(model)

    def test_stopped_search_keeps_the_folded_model(self):
        """A search that ends before any weights were reduced writes the folded model, which is within the budget."""
        flags = ['--minimize=size', '--delegates=reference', '--journal=search.journal']
        self.optimize(*flags, out='whole.pb')
        # The journal knows the original and the folded model; no time is left to measure more.
        records = (self.folder / 'search.journal').read_bytes().splitlines(keepends=True)
        (self.folder / 'search.journal').write_bytes(b''.join(records[:3]))
        text = self.optimize(*flags, '--time=1ms')
        self.assertIn('this is the folded model in float', text)
        self.assertLess((self.folder / 'best.pb').stat().st_size, (DIGITS / 'digits.pb').stat().st_size * 1.1)
        self.assertEqual([check['inputs'] for check in self.results()['result']['checks']], ['held back', 'seeded'])
        # Without a result for the original there is nothing to write.
        (self.folder / 'best.pb').unlink()
        (self.folder / 'search.journal').write_bytes(records[0])
        self.assertIn('stopped before a model within the budget was found', self.optimize(*flags, '--time=1ms', status=255))
        self.assertFalse((self.folder / 'best.pb').exists())

    def test_certificate_is_in_the_model(self):
        """The model holds its certificate; an altered model is found, and other tools read and rewrite the model."""
        self.optimize('--minimize=size', '--max_error=2%', '--delegates=reference')
        self.assertFalse((self.folder / 'best.certificate.json').exists())
        model = (self.folder / 'best.pb').read_bytes()
        result = self.results()['result']
        self.assertEqual(result['file_bytes'], len(model))
        self.assertEqual(result['bytes'], len(model) - result['certificate_bytes'])
        check = lambda *flags, status=0: run('validate_model', '--certificate=best.pb', *flags, folder=self.folder,
                                             status=status)
        self.assertIn('identical', check())
        summary = run('summarize_graph', '--in_graph=best.pb', folder=self.folder)
        self.assertIn("Certificate in 'best.pb'", summary)
        self.assertIn('of this file; original ', summary)
        # The command writes the certified bytes, of which the certificate is no part.
        tool, *flags = shlex.split(result['command'])
        (self.folder / 'best.pb').rename(self.folder / 'kept.pb')
        run(tool, *flags, folder=self.folder)
        again = (self.folder / 'best.pb').read_bytes()
        self.assertEqual(again, model[:result['bytes']])
        self.assertIn("'best.pb' holds no certificate", check('--candidate=best.pb', status=255))
        self.assertIn('identical', run('validate_model', '--certificate=kept.pb', '--candidate=best.pb',
                                       folder=self.folder))
        # Tools that write the model anew leave it out, so that a certified model can be optimised again.
        run('transform_graph', 'kept.pb', 'other.pb', '--transforms=remove_device', folder=self.folder)
        self.assertEqual((self.folder / 'other.pb').read_bytes(), again)
        altered = bytearray(model)
        altered[len(again) // 2] ^= 1
        (self.folder / 'best.pb').write_bytes(altered)
        self.assertIn("'best.pb' is not the model of the certificate: its SHA-256 is ", check(status=1))

    def test_certificate_is_beside_a_model_that_has_no_room(self):
        self.optimize('--minimize=size', '--max_error=2%', '--delegates=reference')
        size = self.results()['result']['bytes']
        for flags in [[f'--max_size={size}B'], ['--compress=zstd']]:
            text = self.optimize('--minimize=size', '--max_error=2%', '--delegates=reference', *flags, out='small.pb')
            self.assertTrue((self.folder / 'small.certificate.json').exists())
            self.assertLessEqual((self.folder / 'small.pb').stat().st_size, size)
            self.assertEqual('would exceed --max_size' in text, flags[0].startswith('--max_size'))
            run('validate_model', '--certificate=small.certificate.json', '--candidate=small.pb', folder=self.folder)
            (self.folder / 'small.certificate.json').unlink()

    def test_nearest_miss_is_reported_and_nothing_is_written(self):
        text = self.optimize('--max_size=20kB', '--max_error=0.001', '--delegates=reference', status=1)
        self.assertIn('no model is within the budget; nothing was written. The nearest: ', text)
        self.assertIn(' times its limit', text)
        self.assertFalse((self.folder / 'best.pb').exists())
        self.assertIsNone(self.results()['result'])
        self.assertGreater(self.results()['nearest_miss']['size_share'], 1)

    def test_journal_goes_on_after_a_kill_with_the_same_result(self):
        flags = ['--minimize=size', '--delegates=reference', '--journal=search.journal', '--certificate=']
        self.optimize(*flags, out='whole.pb')
        whole = (self.folder / 'whole.pb').read_bytes()
        records = (self.folder / 'search.journal').read_bytes().splitlines(keepends=True)
        # A journal that was cut off at any place, as by a kill: the search measures the rest.
        for kept in [1, len(records) // 2, len(records)]:
            (self.folder / 'search.journal').write_bytes(b''.join(records[:kept]) + b'{"key":"sea')
            self.optimize(*flags, out='again.pb')
            self.assertEqual((self.folder / 'again.pb').read_bytes(), whole)
        self.assertIn(', 0 of them measured now', self.optimize(*flags, out='again.pb'))
        # Another seed has other inputs: the results cannot be used.
        text = self.optimize(*flags, '--seed=2', status=255)
        self.assertIn("journal 'search.journal': its results are of another search: found inputs '", text)
        # Not a journal.
        (self.folder / 'search.journal').write_text('hello\n')
        self.assertIn('it is not a journal of optimize_model', self.optimize(*flags, status=255))

    def test_killed_search_leaves_a_journal_that_goes_on(self):
        flags = [DIGITS / 'digits.pb', 'best.pb', *INPUTS, '--minimize=size', '--delegates=reference',
                 '--journal=search.journal']
        process = subprocess.Popen([str(HERE / 'tools/optimize_model'), *map(str, flags)], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        journal = self.folder / 'search.journal'
        while process.poll() is None and not (journal.exists() and len(journal.read_bytes().splitlines()) > 5):
            time.sleep(0.01)
        process.kill()
        process.wait()
        self.assertFalse((self.folder / 'best.pb').exists())
        self.assertIn('going on from a journal of ', self.optimize(*flags[2:], inputs=[]))

    def test_interruption_keeps_the_best_so_far(self):
        flags = [DIGITS / 'digits.pb', 'best.pb', *INPUTS, '--minimize=size', '--delegates=reference',
                 '--journal=search.journal']
        process = subprocess.Popen([str(HERE / 'tools/optimize_model'), *map(str, flags)], cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        journal = self.folder / 'search.journal'
        # The way to run is timed before weights are coded; a few trials later there is a model.
        while process.poll() is None and not (journal.exists() and b'"few | ' in journal.read_bytes()):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate()
        if 'the search was interrupted' not in text:
            self.skipTest('the search was over before the signal')
        self.assertEqual(process.returncode, 0, text)
        self.assertTrue(self.results()['interrupted'])
        self.assertLess((self.folder / 'best.pb').stat().st_size, (DIGITS / 'digits.pb').stat().st_size)

    def test_accuracy_budget_and_delegates(self):
        self.optimize('--max_accuracy_drop=0', '--time=10m')
        result = self.results()['result']
        self.assertLessEqual(result['accuracy_drop'], 0)
        self.assertLessEqual(result['checks'][0]['accuracy_drop'], 0)
        self.assertGreater(result['seconds'], 0)
        if result['precision_plan']:
            plan = json.loads((self.folder / result['precision_plan']).read_text())
            self.assertEqual(plan['precision'], result['precision'])
            run('validate_model', DIGITS / 'digits.pb', 'best.pb', f'--inputs=image={DIGITS}/eval_images.npy',
                '--outputs=probabilities', f'--delegate={result["delegate"]}', f'--precision={result["precision"]}',
                f'--precision_plan={result["precision_plan"]}', folder=self.folder)

    def test_random_inputs_are_named(self):
        text = self.optimize('--delegates=reference', inputs=['--output_layer=probabilities'])
        self.assertIn('no inputs were given: the accuracy was measured on random numbers', text)

    def test_refuses_a_device_as_a_journal(self):
        text = self.optimize('--delegates=reference', '--journal=/dev/full', status=255)
        self.assertIn("journal '/dev/full': it is not a regular file", text)


if __name__ == '__main__':
    unittest.main()
