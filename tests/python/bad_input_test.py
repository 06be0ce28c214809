"""Tests that invalid arguments raise an exception whose message has the found and the expected value."""

import gc
import traceback
import unittest

import numpy
import permafrost
from permafrost import _native, passes, strip_unused_lib
from permafrost.graph_transforms import TransformGraph

import models


class BadInputTest(unittest.TestCase):

    def propagates(self, kind, message, function, *arguments, **named):
        """Asserts that the call raises an error of that kind, such as one of a callback, and returns it."""
        with self.assertRaises(kind) as raised:
            function(*arguments, **named)
        self.assertRegex(str(raised.exception), message)
        return raised.exception

    def fails(self, kind, message, function, *arguments, **named):
        """Asserts that the call raises an error of the package of that kind, and returns it."""
        error = self.propagates(kind, message, function, *arguments, **named)
        # Python itself reports keywords that do not exist, and lookups by name fail as in a dict.
        if message != 'unexpected keyword' and kind is not KeyError:
            self.assertIsInstance(error, permafrost.Error)
        return error

    def test_models(self):
        self.fails(TypeError, 'found None, expected a path', permafrost.load, None)
        self.fails(TypeError, 'found an object of type int', permafrost.load, 3)
        error = self.fails(FileNotFoundError, "cannot open '/no/such'", permafrost.load, '/no/such')
        self.assertEqual(error.code, 'NOT_FOUND')
        self.fails(ValueError, 'null character', permafrost.load, 'a\0b')
        self.fails(ValueError, 'empty', permafrost.load, b'')
        self.fails(permafrost.Error, '.', permafrost.load, b'\xff' * 1000)
        self.fails(permafrost.Error, '.', permafrost.load, 'x' * 100_000)
        self.fails(ValueError, 'contiguous', permafrost.load, memoryview(b'abcdef')[::2])
        self.fails(TypeError, 'inputs: found an object of type str', permafrost.load, models.SMALL.encode(), inputs='x')
        self.fails(TypeError, r'outputs\[0\]: found None', permafrost.load, models.SMALL.encode(), outputs=[None])
        self.fails(ValueError, 'max_bytes', permafrost.load, models.SMALL.encode(), max_bytes=-1)
        self.fails(TypeError, 'passphrase', permafrost.load, models.SMALL.encode(), passphrase=3)

    def test_transforms(self):
        model = models.small()
        self.fails(TypeError, 'found None, expected a transform string', model.transform, None)
        self.fails(TypeError, r'transforms\[1\]: found an object of type int', model.transform, ['fold_constants', 3])
        error = self.fails(ValueError, "'fold_constant' not recognized", model.transform, 'fold_constant')
        self.assertEqual(error.pass_name, 'fold_constant')
        self.fails(ValueError, 'expected', model.transform, 'rename_op(')
        error = self.fails(ValueError, "parameter 'bits' is 77", model.transform, passes.quantize_weights(bits=77))
        self.assertEqual((error.pass_name, error.code), ('quantize_weights', 'INVALID_ARGUMENT'))
        self.fails(TypeError, 'bits: found an object of type object', passes.quantize_weights, bits=object())
        self.fails(TypeError, 'unexpected keyword', passes.quantize_weights, bitz=8)
        self.fails(TypeError, 'ignore_errors', passes.quantize_weights, ignore_errors=1)
        self.fails(TypeError, 'progress', model.transform, 'fold_constants', progress=3)
        self.fails(ValueError, 'threads: found -1', model.transform, 'fold_constants', threads=-1)

    def test_huge_texts(self):
        model = models.small()
        huge = 'x' * 1_000_000
        for function, arguments, named in (
            (model.transform, [huge], {}),
            (model.transform, ['rename_op(old_op_name="' + huge], {}),
            (model.transform, [[passes.quantize_weights(max_error=0.5), f'rename_op({huge}=1)']], {}),
            (permafrost.load, [huge], {}),
            (permafrost.load, [huge.encode()], {}),
            (permafrost.load, [models.SMALL.encode()], {'key': huge}),
            (model.session, [], {'delegate': huge}),
            (model.session, [], {'delegate': 'onednn', 'precision': huge}),
            (model.session, [], {'outputs': [huge]}),
            (model.session().run, [{huge: 1}], {}),
            (model.save, [huge], {}),
            (model.to_bytes, [], {'format': huge}),
            (model.to_bytes, [], {'compress': huge}),
            (model.to_bytes, [], {'encrypt_to': huge}),
            (permafrost.pass_, [], {'pattern': huge + '('}),
        ):
            with self.subTest(function=function.__name__, **{key: str(value)[:9] for key, value in named.items()}):
                with self.assertRaises((permafrost.Error, ValueError, OSError)) as raised:
                    result = function(*arguments, **named)
                    result(lambda match, graph: 0)  # pass_ looks at the pattern with the function.
                self.assertNotIsInstance(raised.exception, UnicodeError)
                if type(raised.exception) is not OSError:  # The system's own has the whole name.
                    self.assertLess(len(str(raised.exception)), 20_000)
        with self.assertRaises(KeyError):
            model.nodes[huge]  # pylint: disable=pointless-statement
        self.assertNotIn(huge, model.nodes)

    def test_text_that_is_no_text(self):
        model = models.small()
        lone = 'a\udcffb'  # A byte that is not UTF-8, as Python writes it; of what follows, one has no bytes at all.
        for text in (lone, 'a\ud800b'):
            for function in (model.transform, permafrost.load, lambda name: model.session(delegate=name),
                             lambda name: model.session(outputs=[name]), lambda name: model.to_bytes(format=name),
                             lambda name: TransformGraph(model.to_bytes(), [name], ['y'], [f'rename_op({name}=1)']),
                             lambda name: permafrost.load(models.SMALL.encode(), outputs=[name]).outputs):
                with self.subTest(text=ascii(text)), self.assertRaises((ValueError, OSError)):
                    function(text)

    def test_arguments_of_the_wrong_kind(self):
        model = models.small()
        session = model.session()
        x = numpy.ones((1, 4), numpy.float32)
        self.fails(TypeError, 'custom_ops: found an object of type str, expected a list', model.session, custom_ops='/a.so')
        self.fails(TypeError, 'custom_ops: found None', model.session, custom_ops=None)
        self.fails(TypeError, r'custom_ops\[0\]: found an object of type int', model.session, custom_ops=[3])
        self.fails(TypeError, 'tolerance: found None', model.verify, model, tolerance=None)
        self.fails(ValueError, 'tolerance: found nan', model.verify, model, tolerance=float('nan'))
        self.fails(TypeError, 'tolerance: found an object of type str', model.compare, model, tolerance='much')
        self.fails(TypeError, 'max_seconds: found None', session.benchmark, x, max_seconds=None)
        self.fails(ValueError, r"expected \['x'\]", session.allocate_outputs, {'z': x})
        self.fails(ValueError, r"expected \['x'\]", session.run, {'z': x})
        self.fails(TypeError, 'shape: found an object of type int', permafrost.empty, 3)
        self.fails(TypeError, 'input_node_names: found None', strip_unused_lib.strip_unused_from_files, '/a', True, '/b',
                   True, None, 'y', 1)
        for function in (lambda value: model.transform('fold_constants', threads=value),
                         lambda value: model.session(threads=value), lambda value: model.benchmark(x, runs=value),
                         lambda value: model.random_inputs(seed=value)):
            self.fails(TypeError, 'found an object of type str, expected an int', function, 'one')
            self.fails(TypeError, 'found an object of type bool', function, True)
            self.fails(ValueError, 'of 32 bits', function, 2**40)
        liar = type('Liar', (), {'SerializeToString': lambda self: 'text'})()
        self.fails(TypeError, 'SerializeToString gave an object of type str', TransformGraph, liar, ['x'], ['y'], [])
        self.fails(ValueError, '.', TransformGraph, memoryview(b'ab' * 10)[::2], ['x'], ['y'], [])

    def test_errors_name_the_node(self):
        text = models.SMALL.replace(models.node('sum', 'Add', ['outer', 'w']), models.node('sum', 'Unheard', ['outer', 'w']))
        error = self.fails(permafrost.Error, "node 'sum'", permafrost.load(text.encode()).session)
        self.assertEqual(error.node, 'sum')
        self.assertIsNone(error.pass_name)

    def test_contradicting_types(self):
        attrs = models.FLOAT + 'attr { key: "Tout" value { type: DT_STRING } }'
        model = permafrost.load((models.placeholder('x', [3]) + models.node('y', 'Complex', ['x', 'x'], attrs)).encode())
        self.assertEqual(len(model), 2)
        for run in (model.session, lambda: model.verify(model), lambda: model.run({'x': [1, 2, 3]})):
            with self.assertRaisesRegex(permafrost.Error, "'y' .Complex.: attr 'Tout' is string and 'T' is float, expected"):
                run()

    def test_callbacks_that_raise(self):
        model = models.small()

        def progress(index, count, name):
            raise KeyError(name)

        error = self.fails(KeyError, 'fold_constants', model.transform, 'fold_constants remove_device', progress=progress)
        self.assertEqual(error.args, ('fold_constants',))
        try:
            model.transform('fold_constants', progress=progress)
        except KeyError as raised:
            # The message contains the place where it was raised.
            self.assertEqual(traceback.extract_tb(raised.__traceback__)[-1].name, 'progress')
        self.assertEqual(len(model.transform('fold_constants')), 6)

        class Exit(BaseException):
            pass

        def leave(*_):
            raise Exit

        self.propagates(Exit, '^$', model.transform, 'fold_constants', progress=leave)
        # One that was made of another arrives with it.
        def wrap(*_):
            try:
                progress(0, 1, 'inner')
            except KeyError as inner:
                raise ValueError('outer') from inner

        error = self.propagates(ValueError, 'outer', model.transform, 'fold_constants', progress=wrap)
        self.assertEqual(error.__cause__.args, ('inner',))
        # The wrong number of arguments is the caller's, too.
        self.propagates(TypeError, 'argument', model.transform, 'fold_constants', progress=lambda: None)

    def test_arrays(self):
        session = models.small().session()
        run = session.run
        good = numpy.ones((2, 4), numpy.float32)
        self.fails(TypeError, "input 'x': found None", run, None)
        self.fails(TypeError, "input 'x': found None", run, {'x': None})
        self.fails(ValueError, r"found \['z'\], expected \['x'\]", run, {'z': good})
        self.fails(ValueError, r'expected \[', run, {})
        self.fails(ValueError, r"input 'x': found an array of double \[2,4\], expected float", run, good.astype(float))
        self.fails(ValueError, 'found an array of int64', run, good.astype(numpy.int64))
        self.fails(ValueError, r'found shape \[2,3\], expected \[\?,4\]', run, numpy.ones((2, 3), numpy.float32))
        self.fails(ValueError, 'is not contiguous', run, numpy.ones((4, 2), numpy.float32).T)
        self.fails(ValueError, 'is not contiguous', run, numpy.ones((2, 8), numpy.float32)[:, ::2])
        self.fails(ValueError, '>f', run, good.astype('>f4'))
        self.fails(ValueError, 'no buffer', run, numpy.array(['2020-01-01'] * 4, 'datetime64[D]').reshape(1, 4))
        self.fails(ValueError, 'found strings', run, numpy.array(['a']))
        self.fails(ValueError, "input 'x'", run, 'text')
        self.fails(ValueError, "input 'x'", run, [[1, 2], [3]])
        self.fails(TypeError, "input 'x'", run, numpy.array([object()]))
        good.flags.writeable = False
        run(good)  # Inputs may be read only.

    def test_bound_outputs(self):
        session = models.small().session()
        x = numpy.ones((2, 4), numpy.float32)

        def run(y):
            session.run(x, y)

        frozen = numpy.empty((2, 4), numpy.float32)
        frozen.flags.writeable = False
        self.fails(ValueError, "output 'y': found an array that is read only", run, {'y': frozen})
        self.fails(ValueError, 'expected float', run, {'y': numpy.empty((2, 4))})
        self.fails(ValueError, r'of shape \[4,2\], expected \[2,4\]', run, {'y': numpy.empty((4, 2), numpy.float32)})
        self.fails(ValueError, 'not contiguous', run, {'y': numpy.empty((4, 2), numpy.float32).T})
        self.fails(ValueError, 'also that of an input', run, {'y': x})
        self.fails(ValueError, 'NoneType|None', run, {'y': None})
        self.fails(TypeError, 'expected a dict', run, [x])
        self.fails(ValueError, r"expected \['y'\]", run, {})

    def test_sessions(self):
        model = models.small()
        self.fails(ValueError, "'nnapi'", model.session, delegate='nnapi')
        self.fails(ValueError, "'int4'", model.session, delegate='onednn', precision='int4')
        for name, _, most in _native.session_counts():
            self.fails(ValueError, f'^{name}: found -1', model.session, **{name: -1})
            self.fails(ValueError, f'{name}: found {most + 1}, expected 0 to {most}', model.session, **{name: most + 1})
        self.fails(permafrost.Error, "'nothing'", model.session, outputs=['nothing'])
        self.fails(permafrost.Error, '.', model.session, custom_ops=['/no/such.so'])
        self.fails(TypeError, 'other: found None', model.verify, None)
        self.fails(ValueError, r'inputs\[0\]', model.verify, model, {'z': 1})
        self.fails(ValueError, 'count: found 0', model.verify, model, count=0)
        self.fails(ValueError, 'runs: found 0', model.benchmark, numpy.ones((1, 4), numpy.float32), runs=0)

    def test_writing(self):
        model = models.small()
        self.fails(TypeError, 'path: found None', model.save, None)
        self.fails(ValueError, "'xyz'", model.save, '/tmp/x', format='xyz')
        self.fails(ValueError, 'compress', model.to_bytes, compress='gzip')
        self.fails(ValueError, '.', model.to_bytes, encrypt_to='age1nonsense')
        self.fails(permafrost.Error, '.', model.save, '/no/such/folder/x.pb')

    def test_after_close(self):
        model = models.small()
        nodes, session = model.nodes, model.session()
        model.close()
        model.close()
        for use in (lambda: model.nodes, lambda: model.inputs, lambda: len(model), lambda: list(nodes), model.to_bytes,
                    model.session, lambda: model.transform('fold_constants'), model.__enter__):
            self.fails(ValueError, 'the model is closed', use)
        self.assertIn('closed', repr(model))
        self.assertEqual(session.run([[0, 0, 0, 0]])['y'].tolist(), [[1, 2, 3, 4]])
        session.close()
        self.fails(ValueError, 'the session is closed', session.run, [[0, 0, 0, 0]])
        self.fails(ValueError, 'the session is closed', session.report)
        del model, session
        gc.collect()


if __name__ == '__main__':
    unittest.main()
