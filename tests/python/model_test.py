"""Tests of models: content, transformation and saving."""

import gc
import pathlib
import sys
import tempfile
import unittest

import permafrost
from permafrost import passes

import models


class ModelTest(unittest.TestCase):

    def test_imports_neither_numpy_nor_tensorflow(self):
        import subprocess
        code = "import sys, permafrost; sys.exit('numpy' in sys.modules or 'tensorflow' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, '-c', code], check=False).returncode, 0)

    def test_optimizes_within_a_budget(self):
        import numpy
        model = models.digits()
        random = numpy.random.default_rng(1)
        shape = [1 if size is None else size for size in model.inputs[0].shape]
        inputs = [random.random(shape, dtype=numpy.float32) for _ in range(8)]
        trials = []
        found = model.optimize(inputs, max_error=0.02, minimize='size', delegates=['reference'], precisions=['f32'],
                               threads=1, callback=trials.append)
        self.assertLess(found.results['result']['relative_rms'], 0.02)
        self.assertLess(len(found.model.to_bytes()), 0.3 * len(model.to_bytes()))
        self.assertEqual(found.run, {'delegate': 'reference', 'precision': 'f32', 'threads': 1})
        self.assertEqual(len(trials), len(found.results['trials']))
        front = found.front()
        self.assertGreater(len(front), 1)
        self.assertEqual(sorted(trial['bytes'] for trial in front), [trial['bytes'] for trial in reversed(front)])
        self.assertEqual(len(found.model_of(front[-1]).to_bytes()), front[-1]['bytes'])
        with self.assertRaisesRegex(permafrost.Error, 'no model is within the budget'):
            model.optimize(inputs, max_error=1e-3, max_size=20000, delegates=['reference'], precisions=['f32'], threads=1)

    def test_describes_nodes(self):
        model = models.small()
        self.assertEqual([node.name for node in model.nodes], ['x', 'w', 'inner', 'outer', 'sum', 'y'])
        self.assertEqual(len(model), len(model.nodes))
        node = model.nodes['sum']
        self.assertEqual((node.op, node.inputs, node.attributes), ('Add', ('outer', 'w'), {'T': 'float'}))
        self.assertIsInstance(node.attributes['T'], permafrost.DType)
        self.assertEqual(model.nodes[-1].name, 'y')
        self.assertEqual([node.name for node in model.nodes[1:3]], ['w', 'inner'])
        self.assertIn('w', model.nodes)
        self.assertNotIn('z', model.nodes)
        self.assertEqual(model.nodes['x'].attributes['shape'], permafrost.Shape([None, 4]))
        self.assertEqual(model.inputs, [('x', 'float', (None, 4))])
        self.assertEqual(model.outputs, [('y', 'float', (None, 4))])

    def test_attributes_of_every_kind(self):
        attrs = ('attr { key: "s" value { s: "t\\377" } } attr { key: "i" value { i: -3 } }'
                 'attr { key: "b" value { b: true } }'
                 'attr { key: "f" value { f: 0.5 } } attr { key: "li" value { list { i: 1 i: 2 } } }'
                 'attr { key: "ls" value { list { s: "a" s: "b" } } } attr { key: "lb" value { list { b: true b: false } } }'
                 'attr { key: "lt" value { list { type: DT_INT32 } } } attr { key: "l" value { list { } } }'
                 'attr { key: "g" value { func { name: "F" attr { key: "n" value { i: 2 } } } } }'
                 'attr { key: "lf" value { list { f: 0.25 } } }'
                 'attr { key: "ln" value { list { shape { unknown_rank: true } } } }')
        model = permafrost.load(models.node('a', 'Unheard', attrs=attrs).encode(), inputs=[], outputs=['a'])
        found = model.nodes['a'].attributes
        self.assertEqual(found, {
            's': b't\xff', 'i': -3, 'b': True, 'f': 0.5, 'li': [1, 2], 'ls': [b'a', b'b'], 'lb': [True, False],
            'lt': ['int32'], 'l': [], 'g': permafrost.Function('F', {'n': 2}), 'lf': [0.25], 'ln': [permafrost.Shape(None)]
        })

    def test_constants_are_views(self):
        model = models.digits()
        weights = model.constants['hidden/weights']
        again = model.nodes['hidden/weights'].value
        self.assertEqual(weights.shape, (1024, 256))
        self.assertEqual(weights.__array_interface__['data'][0], again.__array_interface__['data'][0])
        self.assertFalse(weights.flags.writeable)
        self.assertFalse(weights.flags.owndata)
        total = weights.sum()
        model.close()
        del model, again
        gc.collect()
        self.assertEqual(weights.sum(), total)

    def test_bytes_are_viewed_and_kept_alive(self):
        data = pathlib.Path(models.DIGITS + 'digits.pb').read_bytes()
        model = permafrost.load(data)
        address = model.constants['hidden/weights'].__array_interface__['data'][0]
        begin = memoryview(data)
        import numpy
        start = numpy.frombuffer(begin, numpy.uint8).__array_interface__['data'][0]
        self.assertTrue(start <= address < start + len(data))
        references = sys.getrefcount(data)
        model.close()
        del model
        models.small()  # Drops what was released.
        self.assertLess(sys.getrefcount(data), references)

    def test_transforms(self):
        model = models.digits()
        seen = []
        result = model.transform(['fold_constants fold_batch_norms', passes.quantize_weights(minimum_size=1024)],
                                 progress=lambda index, count, name: seen.append((index, count, name)))
        self.assertEqual(seen, [(0, 3, 'fold_constants'), (1, 3, 'fold_batch_norms'), (2, 3, 'quantize_weights')])
        self.assertEqual([report.name for report in result.passes],
                         ['fold_constants', 'fold_batch_norms', 'quantize_weights'])
        self.assertLess(result.num_bytes, model.num_bytes / 2)
        self.assertEqual(result.passes[-1].nodes_after, len(result))
        self.assertGreater(len(model), len(result))
        same = model.transform('fold_constants fold_batch_norms quantize_weights(minimum_size=1024)')
        self.assertEqual(same.to_bytes(), result.to_bytes())

    def test_calls_say_what_the_transform_string_would(self):
        self.assertEqual(str(passes.strip_unused_nodes(name=['a', 'b'], type='int32', ignore_errors=True)),
                         'strip_unused_nodes(type="int32", name="a", name="b", ignore_errors="true")')
        self.assertEqual(str(passes.quantize_weights(per_channel=True, max_error=0.5)),
                         'quantize_weights(per_channel="true", max_error="0.5")')
        self.assertEqual(passes.fold_constants(), passes.fold_constants())

    def test_every_pass_has_a_function_with_documentation(self):
        self.assertGreater(len(passes.__all__), 40)
        for name in passes.__all__:
            self.assertTrue(getattr(passes, name).__doc__, name)
        self.assertIn('minimum_size', passes.quantize_weights.__doc__)

    def test_writes_and_reads_every_wrapping(self):
        model = models.digits()
        plain = model.to_bytes()
        self.assertEqual(plain, pathlib.Path(models.DIGITS + 'digits.pb').read_bytes())
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'out')
            for options in ({}, {'compress': 'zstd'}, {'compress': 'zstd:1'}, {'format': 'pbtxt'}, {'format': 'package'}):
                with self.subTest(**options):
                    model.save(path, **options)
                    self.assertEqual(path.read_bytes(), model.to_bytes(**options))
                    loaded = permafrost.load(path)
                    self.assertEqual(loaded.source, str(path))
                    self.assertTrue(loaded.verify(model).passes)

    def test_writes_quantised_tensorflow_lite_with_proof(self):
        model = models.digits()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'digits.tflite')
            proof = model.save(path, format='tflite', quantize='int8',
                               calibration_inputs=[models.DIGITS + 'eval_images.npy'])
            self.assertIn('probabilities', proof)
            self.assertLess(path.stat().st_size, 400_000)
            ops = [node.op for node in permafrost.load(path).nodes]
            self.assertIn('UniformQuantize', ops)
            with self.assertRaisesRegex(permafrost.Error, "quantize"):
                model.save(path, format='tflite', quantize='int7')

    def test_encrypts_and_opens(self):
        from permafrost import _native
        model = models.small()
        with tempfile.TemporaryDirectory() as folder:
            key = pathlib.Path(folder, 'key.txt')
            out, _ = _native.run_tool('encrypt_model', ['--keygen', f'--out={key}'])
            recipient = next(word for word in (out + key.read_text(encoding='ascii')).split() if word.startswith('age1'))
            sealed = model.to_bytes(encrypt_to=recipient)
            self.assertEqual(permafrost.load(sealed, key=key).to_bytes(), model.to_bytes())
            self.assertEqual(permafrost.load(sealed, key=key.read_text(encoding='ascii')).to_bytes(), model.to_bytes())
            with self.assertRaises(permafrost.Error):
                permafrost.load(sealed)
            with self.assertRaises(FileNotFoundError):
                permafrost.load(sealed, key=pathlib.Path(folder, 'other'))

    def test_names_that_are_no_text_are_refused_by_place(self):
        data = permafrost.load(models.SMALL.encode()).to_bytes().replace(b'inner', b'inn\xffr')
        with self.assertRaisesRegex(permafrost.Error, "offset .*is not UTF-8"):
            permafrost.load(data)
        model = models.small()
        self.assertNotIn('\udcff', model.nodes)
        with self.assertRaises(ValueError):
            permafrost.load(models.SMALL.encode(), outputs=['\udcff']).inputs  # pylint: disable=expression-not-assigned

    def test_compares_and_verifies(self):
        model = models.digits()
        self.assertEqual(model.compare(models.digits()), [])
        quantized = model.transform('quantize_weights')
        self.assertIn('missing_node', {difference.kind for difference in model.compare(quantized)})
        folded = model.transform('fold_constants')
        self.assertTrue(model.verify(folded))
        verification = model.verify(quantized, tolerance=0)
        self.assertFalse(verification)
        self.assertTrue(verification.was_run)
        self.assertGreater(verification.worst, 0)
        self.assertEqual(verification.outputs[0].name, 'probabilities')

    def test_reports(self):
        report = models.digits().report()
        self.assertEqual(report['nodes'], 139)
        self.assertTrue(report['graph'] == '' or 'graph' in report)

    def test_shows_in_a_notebook(self):
        model = models.digits()
        page = model.transform('fold_constants')._repr_html_()
        self.assertIn('fold_constants', page)
        self.assertIn('image', page)
        self.assertIn('SQNR', model.verify(model)._repr_html_())
        evil = permafrost.load(models.SMALL.replace('"y"', '"y<script>"').encode())
        self.assertNotIn('<script>', evil._repr_html_())

    def test_a_doubtful_interface_is_an_error_only_when_it_is_needed(self):
        text = models.placeholder('a', [2]) + models.placeholder('b', [2]) + models.node('c', 'Neg', ['a']) + models.node(
            'd', 'Neg', ['b'])
        model = permafrost.load(text.encode())
        self.assertEqual(len(model), 4)
        with self.assertRaises(ValueError):
            model.transform('fold_constants')
        given = permafrost.load(text.encode(), inputs=['a'], outputs=['c'])
        self.assertEqual(len(given.transform('strip_unused_nodes')), 2)


if __name__ == '__main__':
    unittest.main()
