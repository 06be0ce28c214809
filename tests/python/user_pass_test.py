"""Tests of passes written in Python."""

import gc
import unittest
import weakref

import numpy
import permafrost
from permafrost import user_passes

import models


@permafrost.pass_('drop_double_negation', pattern='outer=Neg(inner=Neg(x=*))')
def drop_double_negation(match, graph):
    """Drops a negation of a negation."""
    graph.replace_uses(match['outer'].name, match.tensors['x'])
    match['outer'].remove()
    if match['inner'].num_uses == 0:
        match['inner'].remove()
    return True


@permafrost.pass_()
def scale_constants(graph, factor=2.0, only=''):
    """Multiplies float constants."""
    count = 0
    for node in graph.nodes:
        if node.is_constant and node.value.dtype == numpy.float32 and only in node.name:
            node.set_attribute('value', (node.value * factor).astype(numpy.float32))
            count += 1
    graph.note(f'scaled {count}')
    return count


def define(function, **options):
    """A pass for one test."""
    return permafrost.pass_('only_here', **options)(function)


class UserPassTest(unittest.TestCase):

    def tearDown(self):
        user_passes._registered.pop('only_here', None)

    def test_runs_beside_others(self):
        model = models.small()
        result = model.transform(['fold_constants drop_double_negation', drop_double_negation, 'remove_device'])
        self.assertEqual([node.name for node in result.nodes], ['x', 'w', 'sum', 'y'])
        self.assertEqual(result.nodes['sum'].inputs, ('x', 'w'))
        self.assertEqual([report.rewrites for report in result.passes], [0, 1, 0, 0])
        self.assertTrue(model.verify(result, tolerance=0))
        self.assertEqual(len(model), 6)

    def test_takes_arguments(self):
        model = models.small()
        for call in ('scale_constants(factor=3, only=w)', scale_constants(factor=3.0, only='w')):
            result = model.transform(call)
            self.assertEqual(result.constants['w'].tolist(), [3, 6, 9, 12])
            self.assertEqual(result.passes[0].notes, ['scaled 1'])
        with self.assertRaisesRegex(ValueError, "unknown parameter 'by'"):
            model.transform('scale_constants(by=3)')
        with self.assertRaisesRegex(ValueError, "'factor' is 'x', expected a float"):
            model.transform('scale_constants(factor=x)')

    def test_builds_nodes(self):

        def add(graph):
            graph.add_constant('two', numpy.full(4, 2, numpy.float32), before=graph.find('sum'))
            node = graph.add_node(graph.unique_name('y'), 'Mul', ['sum', 'two'], {'T': permafrost.DType('float')})
            graph.find('y').set_input(0, node.name)
            return 1

        model = models.small()
        result = model.transform(define(add))
        self.assertEqual(result.nodes['y'].inputs, ('y_1',))
        self.assertEqual(result.run([[0, 0, 0, 0]])['y'].tolist(), [[2, 4, 6, 8]])

    def test_is_held_to_its_word(self):
        model = models.small()
        with self.assertRaisesRegex(permafrost.Error, 'reports 1 rewrites, but the graph is unchanged') as raised:
            model.transform(define(lambda graph: 1))
        self.assertEqual(raised.exception.pass_name, 'only_here')

    def test_leaves_no_broken_graph(self):

        def break_it(graph):
            graph.find('sum').set_attribute('T', permafrost.DType('int32'))
            return 1

        with self.assertRaisesRegex(permafrost.Error, 'not valid'):
            models.small().transform(define(break_it))

    def test_exceptions_arrive(self):

        def fail(graph):
            raise LookupError('mine')

        with self.assertRaisesRegex(LookupError, 'mine'):
            models.small().transform(['fold_constants', define(fail)])
        result = models.small().transform([user_passes.calls.PassCall('only_here', (), True), 'drop_double_negation'])
        self.assertIn('a callback raised LookupError: mine', result.passes[0].ignored_error)
        self.assertEqual(len(result), 4)

    def test_exceptions_that_were_ignored_are_let_go(self):
        seen = []

        class Mine(Exception):
            pass

        def fail(graph):
            error = Mine()
            seen.append(weakref.ref(error))
            raise error

        define(fail)
        models.small().transform([user_passes.calls.PassCall('only_here', (), True)] * 3)
        models.small()  # Drops what was released.
        gc.collect()
        self.assertEqual([item() for item in seen], [None] * 3)

    def test_the_graph_ends_with_the_pass(self):
        kept = []

        def keep(graph):
            kept.extend([graph, graph.find('w')])
            return 0

        models.small().transform(define(keep))
        for use in (lambda: kept[0].nodes, lambda: kept[1].name, lambda: kept[1].remove()):
            with self.assertRaisesRegex(RuntimeError, 'the pass has ended'):
                use()

    def test_removed_nodes_are_told_apart(self):

        def remove(graph):
            node = graph.find('outer')
            graph.replace_uses('outer', 'x')
            node.remove()
            with self.assertRaisesRegex(permafrost.Error, "'outer' was removed"):
                node.inputs  # pylint: disable=pointless-statement
            graph.add_node('outer', 'NoOp')
            with self.assertRaisesRegex(permafrost.Error, "'outer' was removed"):
                node.inputs  # pylint: disable=pointless-statement
            with self.assertRaises(RuntimeError):
                graph.find('sum').remove()
            return 1

        models.small().transform(define(remove))

    def test_what_cannot_be_a_pass(self):
        with self.assertRaisesRegex(ValueError, "there is a pass 'fold_constants'"):
            permafrost.pass_('fold_constants')(lambda graph: 0)
        with self.assertRaisesRegex(ValueError, 'letters'):
            permafrost.pass_('a b')(lambda graph: 0)
        with self.assertRaisesRegex(TypeError, 'no default'):
            permafrost.pass_('a')(lambda graph, size: 0)
        for pattern in ('', 'Add(', 'Add)', 'a=Add(a=*)', 'Add(Mul Mul)', '(', '=', 'a==b', 'A' + '(A' * 60):
            with self.subTest(pattern), self.assertRaisesRegex(ValueError, 'pattern'):
                permafrost.pass_('a', pattern=pattern)(lambda match, graph: False)
        with self.assertRaisesRegex(TypeError, 'expected the number'):
            models.small().transform(define(lambda graph: None))

    def test_patterns(self):
        for pattern, count in (('Neg', 2), ('Neg|Relu', 3), ('*', 6), ('Neg(Neg)', 1), ('Add(*, Const)', 1),
                               ('Add(Const, *)', 0), ('Add(*)', 0), ('Relu(Add(Neg(Neg(Placeholder)), c=Const))', 1)):
            seen = []
            define(lambda match, graph: seen.append(match.head.name), pattern=pattern)  # pylint: disable=cell-var-from-loop
            models.small().transform('only_here')
            self.assertEqual(len(seen), count, pattern)


if __name__ == '__main__':
    unittest.main()
