"""Runs the tools in their sandbox: with a custom op that tries to leave it, and on all ways of naming files.

Where the kernel has no landlock or no seccomp, the tests of that part are skipped, and the tools must say so.
"""

import ctypes
import hashlib
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

HERE = pathlib.Path.cwd()
DIGITS = HERE / 'tests/models/digits/digits.pb'
PROBE = HERE / 'tests/cli/probing_op.so'
GRAPH = HERE / 'tests/cli/graphs/custom_op.pbtxt'
WITHOUT = HERE / 'tests/cli/without_sandbox'
ERROR = 255


def landlock_version():
    return ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1)


def has_seccomp():
    return any(line.startswith('Seccomp_filters:') for line in pathlib.Path('/proc/self/status').read_text().splitlines())


def field(number, content):
    """A length-delimited field of a protobuf message."""
    size, text = len(content), bytes([number << 3 | 2])
    while size >= 0x80:
        text += bytes([size & 0x7f | 0x80])
        size >>= 7
    return text + bytes([size]) + content


def write_folders(work, graph_def):
    """A SavedModel of the graph, and a model of TensorFlow.js with a file of weights."""
    (work / 'saved_model').mkdir()
    output = field(1, b'y') + field(2, field(1, b'probabilities:0') + b'\x10\x01')
    signature = field(1, b'serving_default') + field(2, field(2, output))
    meta_graph = field(1, field(4, b'serve')) + field(2, graph_def) + field(5, signature)
    (work / 'saved_model/saved_model.pb').write_bytes(b'\x08\x01' + field(2, meta_graph))
    (work / 'tfjs').mkdir()
    (work / 'tfjs/model.json').write_text(json.dumps({
        'format': 'graph-model',
        'modelTopology': {'node': [{'name': 'w', 'op': 'Const', 'attr': {'dtype': {'type': 'DT_FLOAT'}, 'value': {
            'tensor': {'dtype': 'DT_FLOAT', 'tensorShape': {'dim': [{'size': '16'}]}}}}}]},
        'weightsManifest': [{'paths': ['shard'], 'weights': [{'name': 'w', 'shape': [16], 'dtype': 'float32'}]}]}))
    (work / 'tfjs/shard').write_bytes(bytes(64))


HAS_LANDLOCK = landlock_version() > 0


class SandboxTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.work = self.folder / 'work'
        self.work.mkdir()

    def run_tool(self, tool, *flags, before=(), stdin=subprocess.DEVNULL, **variables):
        result = subprocess.run([*before, HERE / 'tools' / tool, *map(str, flags)], cwd=self.work, stdin=stdin,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **variables}, timeout=120)
        return result.returncode, result.stdout.decode(errors='replace')

    def probe(self, *flags, **variables):
        secret = self.folder / 'secret'
        secret.write_text('secret')
        (self.folder / 'new').unlink(missing_ok=True)
        status, text = self.run_tool('validate_model', f'--reference={GRAPH}', f'--candidate={GRAPH}',
                                     f'--custom_ops={PROBE}', *flags, PROBE_SECRET=str(secret),
                                     PROBE_FOLDER=str(self.folder), **variables)
        return status, dict(re.findall(r'^probe ([^:]*): (.*)$', text, re.M)), text

    def test_a_custom_op_reaches_nothing(self):
        if not HAS_LANDLOCK or not has_seccomp():
            self.skipTest('the kernel has no landlock or no seccomp')
        # By default, plug-ins may do anything, and the probe works.
        status, outcomes, text = self.probe()
        self.assertEqual(status, 0, text)
        for name in ('read', 'write', 'replace', 'remove', 'fork', 'local socket', 'environment of another process'):
            self.assertEqual(outcomes[name], 'done', name)
        possible = ('thread', 'own signal', 'processors')
        for name in possible:
            self.assertEqual(outcomes[name], 'done', name)
        status, outcomes, text = self.probe('--sandbox', PROBE_EXEC='1')
        self.assertEqual(status, 0, text)
        self.assertGreater(len(outcomes), 12)
        for name, outcome in outcomes.items():
            (self.assertEqual if name in possible else self.assertNotEqual)(outcome, 'done', name)
        self.assertEqual((self.folder / 'secret').read_text(), 'secret')
        self.assertFalse((self.folder / 'new').exists())

    def test_a_kernel_without_parts_is_named(self):
        tool = HERE / 'tools/summarize_graph'
        summary = self.run_tool('summarize_graph', f'--in_graph={DIGITS}')
        self.assertEqual(summary[0], 0)
        # The default uses what there is, here nothing.
        self.assertEqual(self.run_tool('summarize_graph', f'--in_graph={DIGITS}', before=[WITHOUT]), summary)
        status, text = self.run_tool('summarize_graph', f'--in_graph={DIGITS}', '--sandbox', before=[WITHOUT])
        self.assertEqual(status, ERROR)
        self.assertIn('this kernel offers no landlock', text)
        self.assertEqual(self.run_tool('summarize_graph', f'--in_graph={DIGITS}', '--sandbox=false', before=[WITHOUT]), summary)
        self.assertTrue(tool.exists())

    @unittest.skipUnless(HAS_LANDLOCK, 'the kernel has no landlock')
    def test_a_graph_reaches_only_named_files(self):
        region = self.folder / 'region.bin'
        region.write_bytes(bytes(16))
        graph = self.work / 'mapped.pbtxt'
        graph.write_text('node { name: "c" op: "ImmutableConst" attr { key: "dtype" value { type: DT_FLOAT } } '
                         'attr { key: "shape" value { shape { dim { size: 4 } } } } '
                         f'attr {{ key: "memory_region_name" value {{ s: "{region}" }} }} }}\n'
                         'node { name: "y" op: "Neg" input: "c" attr { key: "T" value { type: DT_FLOAT } } }\n')
        flags = (f'--in_graph={graph}', '--out_graph=out.pb', '--outputs=y', '--transforms=fold_constants')
        with_sandbox = self.run_tool('transform_graph', *flags)[1]
        without = self.run_tool('transform_graph', *flags, '--sandbox=false')[1]
        self.assertNotIn('Permission denied', without)
        self.assertIn('Permission denied', with_sandbox)

    def check(self, tool, *flags, **options):
        status, text = self.run_tool(tool, *flags, **options)
        self.assertEqual(status, 0, f'{tool} {flags}: {text}')
        return text

    def test_all_ways_of_naming_files(self):
        work, model = self.work, self.work / 'model.pb'
        model.write_bytes(DIGITS.read_bytes())
        deep = self.folder / 'outputs/deep'
        deep.mkdir(parents=True)
        # Outputs: relative, in another folder, an existing file, a link, a folder, the standard streams, a device.
        convert = 'convert_model'
        for out in ('out.pb', 'out.pb', './out.pbtxt', '../outputs/deep/x.pb', deep / 'y.pb'):
            self.check(convert, '--in=model.pb', f'--out={out}')
        (work / 'to_existing').symlink_to('../outputs/deep/x.pb')
        (work / 'to_new').symlink_to('../outputs/deep/new.pb')
        (work / 'to_folder').symlink_to('../outputs')
        for out in ('to_existing', 'to_new', 'to_folder/z.pb'):
            self.check(convert, '--in=model.pb', f'--out={out}', '--to=pb')
        self.assertTrue((deep / 'new.pb').exists())
        self.check(convert, '--in=model.pb', '--out=/dev/null', '--to=pb')
        self.check(convert, '--in=model.pb', '--out=-', '--to=pb')
        with open(work / 'redirected', 'wb') as file:
            subprocess.run([HERE / 'tools' / convert, '--in=model.pb', '--out=/dev/stdout', '--to=pb'], cwd=work,
                           stdout=file, check=True)
        self.assertEqual((work / 'redirected').read_bytes(), (work / 'out.pb').read_bytes())
        script = f'{HERE}/tools/{convert} --in=<(cat model.pb) --out=>(cat > piped.pb) --to=pb; wait'
        subprocess.run(['bash', '-c', script], cwd=work, check=True)
        # Inputs: standard input as a file and as a pipe, an inherited file, a link, positional arguments, a folder.
        with open(model, 'rb') as file:
            self.check(convert, '--in=-', '--out=out.pb', stdin=file)
        with open(model, 'rb') as file:
            subprocess.run([HERE / 'tools' / convert, f'--in=/dev/fd/{file.fileno()}', '--out=out.pb'], cwd=work,
                           pass_fds=[file.fileno()], check=True)
        (work / 'link.pb').symlink_to('../outputs/deep/x.pb')
        self.check(convert, 'link.pb', 'out.pb')
        self.check('compare_graphs', 'link.pb', 'model.pb')
        self.check('permafrost', 'convert', 'model.pb', 'out.pb')
        write_folders(work, model.read_bytes())
        self.check(convert, '--in=tfjs/model.json', '--out=out.pb')
        for path in ('saved_model', 'saved_model/saved_model.pb'):
            self.check('summarize_graph', f'--in_graph={path}')
        # Files that a link cache keeps elsewhere.
        blobs, snapshot = work / 'c/blobs', work / 'c/snapshots/r'
        blobs.mkdir(parents=True)
        snapshot.mkdir(parents=True)
        for file in (work / 'tfjs').iterdir():
            blob = blobs / hashlib.sha256(file.read_bytes()).hexdigest()
            blob.write_bytes(file.read_bytes())
            (snapshot / file.name).symlink_to(f'../../blobs/{blob.name}')
        self.check(convert, '--in=c/snapshots/r/model.json', '--out=out.pb')
        # Links of the user to data.
        (self.folder / 'data').mkdir()
        (self.folder / 'data/0.npy').write_bytes((DIGITS.parent / 'eval_images.npy').read_bytes())
        (work / 'inputs').mkdir()
        (work / 'inputs/0.npy').symlink_to('../../data/0.npy')
        text = self.check('transform_graph', '--in_graph=model.pb', '--out_graph=t.pb', '--transforms=fold_constants',
                          '--verify_inputs=inputs/*.npy')
        self.assertNotIn('not verified', text)
        # Further files of flags.
        self.check('transform_graph', '--in_graph=model.pb', '--out_graph=t.pb', '--transforms=fold_constants',
                   '--lineage=lineage.json', '--dump_dir=dumps')
        status, text = self.run_tool('compare_graphs', 'model.pb', 't.pb', '--lineage=lineage.json')
        self.assertEqual(status, 1, text)  # They differ.
        self.check('encrypt_model', '--keygen', '--out=key.txt')
        key = re.search('age1[0-9a-z]+', (work / 'key.txt').read_text())[0]
        (work / 'keys.txt').write_text(key)
        self.check('encrypt_model', '--in=model.pb', '--out=e.pb', '--recipients_file=keys.txt')
        self.check(convert, '--in=e.pb', '--identity=key.txt', '--out=out.pb')
        status, text = self.run_tool(convert, '--in=none/at/all.pb', '--out=out.pb')
        self.assertEqual(status, ERROR)
        self.assertIn('No such file', text)


if __name__ == '__main__':
    unittest.main()
