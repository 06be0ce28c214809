"""Models with branches, loops, lists, variables, tables and attention, for tflite_programs_oracle.py.

PROGRAMS maps a name to a function that returns a tf.Module with the tf.function `serve`, or a Keras model. Weights are random
from a seed; nothing is downloaded.
"""

import keras
import tensorflow as tf
from keras import layers

X = tf.TensorSpec([2, 3], tf.float32, name='x')


class Program(tf.Module):
    """Wraps a function of one tensor that returns a dictionary."""

    def __init__(self, function, spec=X):
        super().__init__()
        self.serve = tf.function(lambda x: function(x), input_signature=[spec])


def loop(condition, body, variables, **arguments):
    """Runs tf.while_loop with a counter before the variables."""
    result = tf.while_loop(lambda i, *v: condition(i, *v), lambda i, *v: (i + 1,) + tuple(body(i, *v)), [0, *variables],
                           **arguments)
    return result[1:]


def loop_in_a_branch(x):
    def iterate():
        return loop(lambda i, a: tf.logical_and(i < 5, tf.reduce_max(a) < 50.), lambda i, a: (a * 2. + x,), [x])[0]
    return {'y': tf.cond(tf.reduce_sum(x) > 0, iterate, lambda: x - 1.)}


def branches_in_a_loop(x):
    def body(i, a):
        inner = lambda: tf.cond(tf.reduce_sum(a) > 3., lambda: a * 0.5, lambda: a * 1.5)
        return (tf.cond(tf.equal(i % 2, 0), lambda: a + x, inner),)
    return {'y': loop(lambda i, a: i < 7, body, [x])[0]}


def loop_in_a_loop(x):
    def body(i, a):
        return loop(lambda j, b: j < i + 1, lambda j, b: (b * 1.1 + x,), [a])
    return {'y': loop(lambda i, a: i < 3, body, [x])[0]}


def swapped_variables(x):
    return dict(zip('ab', loop(lambda i, a, b: i < 5, lambda i, a, b: (b, a + b), [x, x * 2.])))


def equal_results(x):
    return dict(zip('ab', loop(lambda i, a, b: i < 3, lambda i, a, b: (a * 2., a * 2.), [x, x + 1.])))


def constant_results(x):
    return dict(zip('ab', loop(lambda i, a, b: i < 3, lambda i, a, b: (tf.ones([2, 3]), a + b), [x, x + 1.])))


def arguments_as_results(x):
    return dict(zip('ab', tf.cond(tf.reduce_sum(x) > 0, lambda: (x, x), lambda: (tf.zeros([2, 3]), x * 2.))))


def growing_variable(x):
    shapes = [tf.TensorShape([]), tf.TensorShape([None, 3])]
    return {'y': loop(lambda i, a: i < 3, lambda i, a: (tf.concat([a, x], 0),), [x], shape_invariants=shapes)[0]}


def no_iterations(x):
    return {'y': loop(lambda i, a: tf.reduce_sum(a) > 100., lambda i, a: (a + x,), [x])[0]}


def written_array(x):
    array = tf.TensorArray(tf.float32, size=4)
    _, array = loop(lambda i, a, t: i < 4, lambda i, a, t: (a * 1.5, t.write(i, a + tf.cast(i, tf.float32))), [x, array])
    return {'y': array.stack(), 'item': array.read(2)}


def by_a_number(x):
    count = tf.cast(tf.reduce_sum(tf.abs(x)), tf.int32) % 2
    return {'y': tf.cond(tf.cast(count, tf.bool), lambda: x + 1., lambda: x * 2.)}


class Counter(tf.Module):
    """Keeps a counter and a running mean from run to run."""

    def __init__(self):
        super().__init__()
        self.count, self.mean = tf.Variable(0), tf.Variable(1.0)

    @tf.function(input_signature=[X])
    def serve(self, x):
        self.count.assign_add(1)
        self.mean.assign(self.mean * 0.5 + tf.reduce_mean(x))
        return {'y': x * tf.cast(self.count, tf.float32) + self.mean}


class VariablesInFunctions(tf.Module):
    """Assigns one variable in a loop and another in a branch."""

    def __init__(self):
        super().__init__()
        self.total, self.count = tf.Variable(tf.zeros([2, 3])), tf.Variable(0)

    @tf.function(input_signature=[X])
    def serve(self, x):
        def body(i, a):
            self.total.assign(self.total + x * 0.1)
            return (a + self.total,)

        def count():
            self.count.assign_add(2)
            return result + 1.
        result = loop(lambda i, a: i < 3, body, [x])[0]
        return {'y': tf.cond(tf.reduce_sum(x) > 0, count, lambda: result), 'n': self.count + 0}


class Table(tf.Module):
    """Looks words up."""

    def __init__(self):
        super().__init__()
        words = tf.lookup.KeyValueTensorInitializer(tf.constant(['a', 'b', 'c']), tf.constant([1, 2, 3], tf.int64))
        self.table = tf.lookup.StaticHashTable(words, -1)

    @tf.function(input_signature=[tf.TensorSpec([3], tf.string, name='x')])
    def serve(self, x):
        return {'y': self.table.lookup(x) + 1, 'n': self.table.size()}


def spectrum(x):
    return {'y': tf.abs(tf.signal.stft(x, 64, 32, 64))}


def elementwise(x):
    return {'a': tf.math.expm1(x), 'b': tf.math.log1p(tf.abs(x)), 'c': tf.tan(x * 0.3),
            'd': tf.math.divide_no_nan(x, tf.nn.relu(x)), 'e': tf.cast(tf.math.is_nan(x), tf.int32),
            'f': x * tf.cast(tf.size(x), tf.float32), 'g': tf.linalg.band_part(x, 1, 0)}


def encoder(length):
    """Two blocks of attention."""
    def make():
        keras.utils.set_random_seed(3)
        tokens = x = keras.Input((length, 16))
        for _ in range(2):
            x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 8)(x, x))
            x = layers.LayerNormalization()(x + layers.Dense(16)(layers.Dense(32, activation='gelu')(x)))
        return keras.Model(tokens, layers.Dense(5)(layers.GlobalAveragePooling1D()(x)))
    return make


def attention(make_layer, **arguments):
    def make():
        keras.utils.set_random_seed(3)
        x = keras.Input((8, 16))
        return keras.Model(x, make_layer()(x, x, **arguments))
    return make


def sequential(shape, *stack, dtype='float32'):
    def make():
        keras.utils.set_random_seed(1)
        return keras.Sequential([keras.Input(shape, dtype=dtype)] + [make_layer() for make_layer in stack])
    return make


PROGRAMS = {
    'arguments_as_results': lambda: Program(arguments_as_results),
    'branches_in_a_loop': lambda: Program(branches_in_a_loop),
    'by_a_number': lambda: Program(by_a_number),
    'constant_results': lambda: Program(constant_results),
    'counter': Counter,
    'equal_results': lambda: Program(equal_results),
    'foldl': lambda: Program(lambda x: {'y': tf.foldl(lambda a, row: a * 0.5 + row, x)}),
    'growing_variable': lambda: Program(growing_variable),
    'loop_in_a_branch': lambda: Program(loop_in_a_branch),
    'loop_in_a_loop': lambda: Program(loop_in_a_loop),
    'map_fn': lambda: Program(lambda x: {'y': tf.map_fn(lambda row: row * tf.reduce_max(row), x)},
                              tf.TensorSpec([None, 3], tf.float32, name='x')),
    'no_iterations': lambda: Program(no_iterations),
    'scan': lambda: Program(lambda x: {'y': tf.scan(lambda a, row: a * 0.5 + row, x)}),
    'swapped_variables': lambda: Program(swapped_variables),
    'table': Table,
    'variables_in_functions': VariablesInFunctions,
    'written_array': lambda: Program(written_array),
    'keras_bidirectional': sequential((24,), lambda: layers.Embedding(200, 32, mask_zero=True),
                                      lambda: layers.Bidirectional(layers.LSTM(24, return_sequences=True)),
                                      lambda: layers.Bidirectional(layers.GRU(16)),
                                      lambda: layers.Dense(5, activation='softmax'), dtype='int32'),
    'elementwise': lambda: Program(elementwise),
    'keras_attention_any_length': encoder(None),
    'keras_attention_causal': attention(lambda: layers.MultiHeadAttention(4, 8), use_causal_mask=True),
    'keras_attention_encoder': encoder(10),
    'keras_attention_grouped': attention(lambda: layers.GroupQueryAttention(8, 4, 2)),
    'spectrum': lambda: Program(spectrum, tf.TensorSpec([2, 400], tf.float32, name='x')),
    'keras_gru': sequential((12, 8), lambda: layers.GRU(16, return_sequences=True), lambda: layers.GRU(10),
                            lambda: layers.Dense(4)),
    'keras_lstm': sequential((12, 8), lambda: layers.LSTM(16, return_sequences=True), lambda: layers.LSTM(10),
                             lambda: layers.Dense(4)),
    'keras_lstm_any_length': sequential((None, 8), lambda: layers.LSTM(16), lambda: layers.Dense(4)),
    'keras_lstm_unrolled': sequential((6, 8), lambda: layers.LSTM(16, unroll=True), lambda: layers.Dense(4)),
    'keras_simple_rnn': sequential((7, 8), lambda: layers.SimpleRNN(9, return_sequences=True), lambda: layers.Dense(4)),
}
