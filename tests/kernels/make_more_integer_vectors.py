#!/usr/bin/env python3
"""Makes one-operator models of recurrent operators, and of elementwise ones with types and zero points that other
recorded cases lack, runs them with LiteRT's reference kernels, and writes the cases to tests/kernels/integer_vectors/
(make_integer_vectors.py describes the form).

    python3 tests/kernels/make_more_integer_vectors.py      (needs numpy and ai_edge_litert; same results at every run)
"""
import os
import tempfile

import numpy as np

import make_integer_vectors

KINDS = {'float32': 0, 'int32': 2, 'uint8': 3, 'int64': 4, 'bool': 6, 'int16': 7, 'int8': 9}


class Maker:
    """One model with one operator."""

    def __init__(self, schema, seed):
        self.schema, self.random = schema, np.random.default_rng(seed)
        self.model, self.graph = schema.ModelT(), schema.SubGraphT()
        self.model.version = 3
        self.model.buffers = [schema.BufferT()]
        self.graph.tensors, self.graph.inputs, self.graph.outputs = [], [], []
        self.feeds = []

    def tensor(self, kind, shape, data=None, scale=None, zero=0, variable=False):
        tensor = self.schema.TensorT()
        tensor.type, tensor.shape, tensor.isVariable = KINDS[kind], list(shape), variable
        tensor.name = f't{len(self.graph.tensors)}'
        tensor.buffer = 0
        if data is not None:
            buffer = self.schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(data, kind).tobytes(), np.uint8)
            tensor.buffer = len(self.model.buffers)
            self.model.buffers.append(buffer)
        if scale is not None:
            tensor.quantization = self.schema.QuantizationParametersT()
            tensor.quantization.scale, tensor.quantization.zeroPoint = [scale], [zero]
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def values(self, kind, shape, scale=None, zero=0, spread=1.0):
        if kind == 'float32':
            return self.tensor(kind, shape, self.random.normal(0, spread, shape))
        limit = int(spread) if spread > 1 else {'int8': 127, 'int16': 32767, 'int32': 2000}[kind]
        return self.tensor(kind, shape, self.random.integers(-limit, limit + 1, shape), scale, zero)

    def feed(self, kind, shape, scale=None, zero=0, low=None):
        i = self.tensor(kind, shape, None, scale, zero)
        self.graph.inputs.append(i)
        self.feeds.append(self.random.normal(0, 1, shape).astype(kind) if kind == 'float32' else
                          self.random.integers(np.iinfo(kind).min if low is None else low, np.iinfo(kind).max + 1,
                                               shape).astype(kind))
        return i

    def finish(self, op, version, options_type, options, inputs, output, intermediates=()):
        schema = self.schema
        code, operator = schema.OperatorCodeT(), schema.OperatorT()
        code.builtinCode = getattr(schema.BuiltinOperator, op)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), version
        operator.opcodeIndex, operator.inputs, operator.outputs = 0, inputs, [output]
        operator.intermediates = list(intermediates)
        if options_type is not None:
            operator.builtinOptionsType, operator.builtinOptions = getattr(schema.BuiltinOptions, options_type), options
        self.graph.operators, self.graph.outputs = [operator], [output]
        self.model.operatorCodes, self.model.subgraphs = [code], [self.graph]

    def lines(self, name):
        import flatbuffers
        from ai_edge_litert.interpreter import Interpreter, OpResolverType
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), file_identifier=b'TFL3')
        interpreter = Interpreter(model_content=bytes(builder.Output()),
                                  experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
        interpreter.allocate_tensors()
        for detail, feed in zip(interpreter.get_input_details(), self.feeds):
            interpreter.set_tensor(detail['index'], feed)
        interpreter.invoke()
        output = interpreter.get_tensor(interpreter.get_output_details()[0]['index'])
        with tempfile.TemporaryDirectory() as root:
            folder = os.path.join(root, name)
            os.mkdir(folder)
            with open(os.path.join(folder, 'model.tflite'), 'wb') as file:
                file.write(builder.Output())
            for i, feed in enumerate(self.feeds):
                np.save(f'{folder}/input_0_{i}.npy', feed)
            np.save(f'{folder}/output_0_0.npy', output)
            return make_integer_vectors.case(self.schema, folder, keep_float=True)


def lstm(schema, name, seed, kind, coupled=False, peephole=False, norm=False, projection=False, clip=0.0,
         asymmetric=False, time_major=False, batch=2, hidden_zero=0):
    """UNIDIRECTIONAL_SEQUENCE_LSTM. kind: float, hybrid, integer."""
    m = Maker(schema, seed)
    time, inputs, cells = 5, 7, 9
    outputs = 6 if projection else cells
    integer = kind == 'integer'
    weight = 'float32' if kind == 'float' else 'int8'
    value = 'int8' if integer else 'float32'
    shape = [time, batch, inputs] if time_major else [batch, time, inputs]
    state_scale, hidden_scale = 1 / 100., 1 / 120.
    scale = lambda: float(np.float32(m.random.uniform(.004, .008))) if weight == 'int8' else None
    state_zero = hidden_zero if integer and not projection else 4 if integer else 0
    if integer and not projection:
        state_scale = hidden_scale
    ids = [m.feed(value, shape, 1 / 40. if integer else None, 3 if integer else 0)]
    gates = range(1 if coupled else 0, 4)
    ids += [m.values(weight, [cells, inputs], scale(), spread=.4) if g in gates else -1 for g in range(4)]
    ids += [m.values(weight, [cells, outputs], scale(), spread=.4) if g in gates else -1 for g in range(4)]
    for g in (0, 1, 3):
        if not peephole or g not in gates:
            ids.append(-1)
        elif integer:
            ids.append(m.values('int16', [cells], 1 / 32768., spread=20000))
        else:
            ids.append(m.values(weight, [cells], scale(), spread=.4))
    bias = 'int32' if integer else 'float32'
    ids += [m.values(bias, [cells], 1e-4 if integer else None, spread=3000 if integer else .5) if g in gates else -1
            for g in range(4)]
    ids.append(m.values(weight, [outputs, cells], scale(), spread=.4) if projection else -1)
    ids.append(m.values(bias, [outputs], 1e-4 if integer else None, spread=3000 if integer else .5)
               if projection else -1)
    ids.append(m.tensor(value, [batch, outputs], None, state_scale if integer else None, state_zero, True))
    ids.append(m.tensor('int16' if integer else 'float32', [batch, cells], None, 2.0**-11 if integer else None, 0, True))
    for g in range(4):
        if not norm or g not in gates:
            ids.append(-1)
        elif integer:
            ids.append(m.values('int16', [cells], 1 / 20000., spread=30000))
        else:
            ids.append(m.values('float32', [cells], spread=1.0))
    intermediates = []
    if integer:
        intermediates = [m.tensor('int16', [], None, float(np.float32(m.random.uniform(.001, .002)))) for _ in range(4)]
        intermediates.append(m.tensor('int8', [], None, hidden_scale, hidden_zero))
    output = m.tensor(value, shape[:2] + [outputs], None, state_scale if integer else None, state_zero)
    options = schema.UnidirectionalSequenceLSTMOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.TANH
    options.cellClip, options.projClip = clip, clip / 2
    options.timeMajor, options.asymmetricQuantizeInputs = time_major, asymmetric
    version = {'float': 1, 'hybrid': 3 if asymmetric else 2, 'integer': 1}[kind]
    m.finish('UNIDIRECTIONAL_SEQUENCE_LSTM', version, 'UnidirectionalSequenceLSTMOptions', options, ids, output,
             intermediates)
    return m.lines(name)


def rnn(schema, name, seed, hybrid, asymmetric=False, time_major=False):
    """UNIDIRECTIONAL_SEQUENCE_RNN."""
    m = Maker(schema, seed)
    batch, time, inputs, units = 3, 4, 6, 5
    shape = [time, batch, inputs] if time_major else [batch, time, inputs]
    weight = 'int8' if hybrid else 'float32'
    ids = [m.feed('float32', shape), m.values(weight, [units, inputs], .006 if hybrid else None, spread=.4),
           m.values(weight, [units, units], .005 if hybrid else None, spread=.4), m.values('float32', [units]),
           m.tensor('float32', [batch, units], variable=True)]
    output = m.tensor('float32', shape[:2] + [units])
    options = schema.SequenceRNNOptionsT()
    options.timeMajor, options.asymmetricQuantizeInputs = time_major, asymmetric
    options.fusedActivationFunction = schema.ActivationFunctionType.TANH
    m.finish('UNIDIRECTIONAL_SEQUENCE_RNN', 3 if asymmetric else 2 if hybrid else 1, 'SequenceRNNOptions', options, ids,
             output)
    return m.lines(name)


def svdf(schema, name, seed, kind, asymmetric=False):
    """SVDF. kind: float, hybrid, integer."""
    m = Maker(schema, seed)
    batch, inputs, units, rank, memory = 2, 10, 6, 2, 5
    filters, integer = units * rank, kind == 'integer'
    if integer:
        ids = [m.feed('int8', [batch, inputs], .02, 5), m.values('int8', [filters, inputs], .01),
               m.values('int16', [filters, memory], 1e-4, spread=9000), m.values('int32', [units], 1e-6),
               m.tensor('int16', [batch, filters * memory], None, .0007, 0, True)]
        output = m.tensor('int8', [batch, units], None, .03, -20)
    else:
        weight = 'int8' if kind == 'hybrid' else 'float32'
        scale = .01 if kind == 'hybrid' else None
        ids = [m.feed('float32', [batch, inputs]), m.values(weight, [filters, inputs], scale),
               m.values(weight, [filters, memory], scale), m.values('float32', [units]),
               m.tensor('float32', [batch, filters * memory], variable=True)]
        output = m.tensor('float32', [batch, units])
    options = schema.SVDFOptionsT()
    options.rank, options.asymmetricQuantizeInputs = rank, asymmetric
    options.fusedActivationFunction = (schema.ActivationFunctionType.RELU
                                       if integer else schema.ActivationFunctionType.NONE)
    m.finish('SVDF', {'float': 1, 'hybrid': 4 if asymmetric else 2, 'integer': 3}[kind], 'SVDFOptions', options, ids,
             output)
    return m.lines(name)


def elementwise(schema, op, seed, kind, version, options_type=None, scales=(.001, .0013), inputs=1, zeros=(0, 0, 0), low=None,
                output_kind=None, **values):
    """An operator of one or two operands. `scales`: of the inputs, then of the output."""
    m = Maker(schema, seed)
    ids = [m.feed(kind, [4, 24], scales[i], zeros[i], low if i + 1 == inputs else None) for i in range(inputs)]
    output = m.tensor(output_kind or kind, [4, 24], None, None if output_kind else scales[inputs], zeros[inputs])
    options = getattr(schema, options_type + 'T')() if options_type else None
    for name, value in values.items():
        setattr(options, name, value)
    m.finish(op, version, options_type, options, ids, output)
    return m.lines(f'{op.lower()}_{kind}_made')


def main():
    from ai_edge_litert import schema_py_generated as schema
    files = {
        'UNIDIRECTIONAL_SEQUENCE_LSTM': [
            lstm(schema, 'lstm_float', 1, 'float'),
            lstm(schema, 'lstm_float_coupled_peephole', 2, 'float', coupled=True, peephole=True, clip=.6),
            lstm(schema, 'lstm_float_all', 3, 'float', peephole=True, norm=True, projection=True, time_major=True),
            lstm(schema, 'lstm_hybrid', 4, 'hybrid'),
            lstm(schema, 'lstm_hybrid_asymmetric_all', 5, 'hybrid', peephole=True, projection=True, asymmetric=True),
            lstm(schema, 'lstm_hybrid_norm', 6, 'hybrid', norm=True, time_major=True),
            lstm(schema, 'lstm_integer', 7, 'integer'),
            lstm(schema, 'lstm_integer_hidden_zero', 8, 'integer', hidden_zero=-9),
            lstm(schema, 'lstm_integer_coupled', 9, 'integer', coupled=True),
            lstm(schema, 'lstm_integer_projection', 10, 'integer', projection=True, clip=.8),
            lstm(schema, 'lstm_integer_projection_hidden_zero', 11, 'integer', projection=True, hidden_zero=-9),
            lstm(schema, 'lstm_integer_norm', 12, 'integer', norm=True),
            lstm(schema, 'lstm_integer_all', 13, 'integer', peephole=True, norm=True, projection=True, time_major=True),
        ],
        'UNIDIRECTIONAL_SEQUENCE_RNN': [
            rnn(schema, 'rnn_float', 20, False), rnn(schema, 'rnn_hybrid', 21, True, time_major=True),
            rnn(schema, 'rnn_hybrid_asymmetric', 22, True, asymmetric=True),
        ],
        'SVDF_MADE': [
            svdf(schema, 'svdf_float', 30, 'float'), svdf(schema, 'svdf_hybrid_symmetric', 31, 'hybrid'),
            svdf(schema, 'svdf_hybrid_asymmetric', 32, 'hybrid', asymmetric=True),
            svdf(schema, 'svdf_integer', 33, 'integer'),
        ],
    }
    small, two = (.0002, .0003), (.01, .017)
    files.update({
        'NEG_MADE': [elementwise(schema, 'NEG', 40, 'int8', 1, 'NegOptions', (.05, .05), zeros=(-15, -15))],
        'ABS_MADE': [elementwise(schema, 'ABS', 41, 'int16', 3, 'AbsOptions', small)],
        'LOG_MADE': [elementwise(schema, 'LOG', 42, 'int16', 2, None, (.0018, .0005), low=1)],
        'EXP_MADE': [elementwise(schema, 'EXP', 43, 'int16', 2, 'ExpOptions', (.0001, .001))],
        'SQRT_MADE': [elementwise(schema, 'SQRT', 44, 'int16', 2, None, (.0002, .0001), low=0)],
        'RSQRT_MADE': [elementwise(schema, 'RSQRT', 45, 'int16', 3, None, (.0001, .0001), low=1)],
        'GELU_MADE': [elementwise(schema, 'GELU', 46, 'uint8', 2, 'GeluOptions', (.03, .02), zeros=(120, 7))],
        'RELU_MADE': [elementwise(schema, 'RELU', 47, 'int16', 3, None, small)],
        'LESS_MADE': [elementwise(schema, 'LESS', 48, 'int16', 3, 'LessOptions', two, 2, output_kind='bool')],
        'GREATER_EQUAL_MADE': [elementwise(schema, 'GREATER_EQUAL', 49, 'int16', 3, 'GreaterEqualOptions', two, 2,
                                           output_kind='bool')],
        'DIV_MADE': [elementwise(schema, 'DIV', 50, 'int16', 1, 'DivOptions', (.26, .037, .24), 2, low=1)],
        'L2_NORMALIZATION_MADE': [elementwise(schema, 'L2_NORMALIZATION', 51, 'uint8', 1, 'L2NormOptions',
                                              (.02, 1 / 128.), zeros=(100, 128))],
        'LOG_SOFTMAX_MADE': [elementwise(schema, 'LOG_SOFTMAX', 52, 'uint8', 1, 'LogSoftmaxOptions', (.03, 1 / 16.),
                                         zeros=(100, 255)),
                             elementwise(schema, 'LOG_SOFTMAX', 53, 'int8', 2, 'LogSoftmaxOptions', (.2, 1 / 16.),
                                         zeros=(3, 127))],
    })
    for op, cases in files.items():
        with open(os.path.join(make_integer_vectors.FOLDER, op + '.txt'), 'w', encoding='utf-8') as file:
            file.write('\n'.join(line for lines in cases for line in lines) + '\n')


if __name__ == '__main__':
    main()
