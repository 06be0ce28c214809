#!/usr/bin/env python3
"""Makes one-operator models of recurrent operators and of detection, runs two steps of each with LiteRT's reference kernels, so that the second
starts with the states that the first has left, and writes them to tests/formats/tflite/ (tflite_test.cc).

    python3 tests/formats/make_tflite_models.py      (needs numpy and ai_edge_litert; same results at every run)
"""
import os
import sys

import numpy as np

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'tflite')
sys.path.insert(0, os.path.join(os.path.dirname(FOLDER), '..', 'kernels'))
import make_more_integer_vectors as made


def write(maker, name):
    """Writes the model, and returns its bytes and its folder."""
    import flatbuffers
    builder = flatbuffers.Builder(1024)
    builder.Finish(maker.model.Pack(builder), file_identifier=b'TFL3')
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, 'model.tflite'), 'wb') as file:
        file.write(builder.Output())
    return bytes(builder.Output()), folder


def record(maker, name, steps=2, resolver='BUILTIN_REF'):
    """Writes the model with the inputs and outputs of several runs of one interpreter."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    content, folder = write(maker, name)
    interpreter = Interpreter(model_content=content, experimental_op_resolver_type=getattr(OpResolverType, resolver))
    interpreter.allocate_tensors()
    for step in range(steps):
        for i, (detail, feed) in enumerate(zip(interpreter.get_input_details(), maker.feeds)):
            value = np.ascontiguousarray(feed[::-1]) if step else feed
            interpreter.set_tensor(detail['index'], value)
            np.save(f'{folder}/input_{step}_{i}.npy', value)
        interpreter.invoke()
        for i, detail in enumerate(interpreter.get_output_details()):
            np.save(f'{folder}/output_{step}_{i}.npy', interpreter.get_tensor(detail['index']))
    return []


def lstm_operands(m, gates, inputs, cells, batch, scale):
    """The 17 operands of one direction behind the input."""
    weight = 'int8' if scale else 'float32'
    ids = [m.values(weight, [cells, inputs], scale, spread=.4) for _ in gates]
    ids += [m.values(weight, [cells, cells], scale, spread=.4) for _ in gates]
    return ids + [-1] * 3 + [m.values('float32', [cells], spread=.5) for _ in gates] + [-1, -1]


def bidirectional_lstm(schema, name, seed, merge, auxiliary=None, scale=None, time_major=False, batch=2):
    """auxiliary: None, 'input' or 'weights'."""
    m = made.Maker(schema, seed)
    time, inputs, cells, extra = 4, 5, 6, 5 if auxiliary == 'input' else 3
    shape = lambda n: [time, batch, n] if time_major else [batch, time, n]
    ids = [m.feed('float32', shape(inputs))]
    for _ in range(2):
        ids += lstm_operands(m, range(4), inputs, cells, batch, scale)
    ids += [m.tensor('float32', [batch, cells], variable=True) for _ in range(4)]
    ids.append(m.feed('float32', shape(extra)) if auxiliary else -1)
    for _ in range(8):
        ids.append(m.values('float32', [cells, extra], spread=.4) if auxiliary == 'weights' else -1)
    outputs = [m.tensor('float32', shape(cells * (2 if merge else 1))) for _ in range(1 if merge else 2)]
    options = schema.BidirectionalSequenceLSTMOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.TANH
    options.mergeOutputs, options.timeMajor = merge, time_major
    m.finish('BIDIRECTIONAL_SEQUENCE_LSTM', 3 if scale else 1, 'BidirectionalSequenceLSTMOptions', options, ids, outputs[0])
    m.graph.outputs = m.graph.operators[0].outputs = outputs
    record(m, name)


def bidirectional_rnn(schema, name, seed, merge, auxiliary=None, time_major=False):
    m = made.Maker(schema, seed)
    batch, time, inputs, units, extra = 3, 4, 5, 6, 5 if auxiliary == 'input' else 2
    shape = lambda n: [time, batch, n] if time_major else [batch, time, n]
    ids = [m.feed('float32', shape(inputs))]
    for _ in range(2):
        ids += [m.values('float32', [units, inputs], spread=.4), m.values('float32', [units, units], spread=.4),
                m.values('float32', [units]), m.tensor('float32', [batch, units], variable=True)]
    ids.append(m.feed('float32', shape(extra)) if auxiliary else -1)
    ids += [m.values('float32', [units, extra], spread=.4) if auxiliary == 'weights' else -1 for _ in range(2)]
    outputs = [m.tensor('float32', shape(units * (2 if merge else 1))) for _ in range(1 if merge else 2)]
    options = schema.BidirectionalSequenceRNNOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.TANH
    options.mergeOutputs, options.timeMajor = merge, time_major
    m.finish('BIDIRECTIONAL_SEQUENCE_RNN', 1, 'BidirectionalSequenceRNNOptions', options, ids, outputs[0])
    m.graph.outputs = m.graph.operators[0].outputs = outputs
    record(m, name)


def rnn_step(schema, name, seed):
    """RNN: one step for each run."""
    m = made.Maker(schema, seed)
    batch, inputs, units = 2, 6, 5
    ids = [m.feed('float32', [batch, inputs]), m.values('float32', [units, inputs], spread=.4),
           m.values('float32', [units, units], spread=.4), m.values('float32', [units]),
           m.tensor('float32', [batch, units], variable=True)]
    output = m.tensor('float32', [batch, units])
    options = schema.RNNOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.RELU
    m.finish('RNN', 1, 'RNNOptions', options, ids, output)
    record(m, name)


def lstm_step(schema, name, seed):
    """LSTM: one step for each run."""
    m = made.Maker(schema, seed)
    batch, inputs, cells = 2, 5, 6
    ids = [m.feed('float32', [batch, inputs])] + lstm_operands(m, range(4), inputs, cells, batch, None)
    ids += [m.tensor('float32', [batch, cells], variable=True) for _ in range(2)]
    output = m.tensor('float32', [batch, cells])
    options = schema.LSTMOptionsT()
    options.fusedActivationFunction = schema.ActivationFunctionType.TANH
    m.finish('LSTM', 1, 'LSTMOptions', options, ids, output)
    record(m, name)


def detection(schema, name, seed, background, regular, quantized=False):
    """TFLite_Detection_PostProcess of 12 boxes and 3 classes."""
    from flatbuffers import flexbuffers
    m = made.Maker(schema, seed)
    boxes, classes = 12, 3
    columns = classes + (1 if background else 0)
    if quantized:
        ids = [m.feed('uint8', [1, boxes, 4], .02, 120), m.feed('uint8', [1, boxes, columns], 1 / 256.)]
    else:
        ids = [m.feed('float32', [1, boxes, 4]), m.feed('float32', [1, boxes, columns])]
    centres = m.random.uniform(.2, .8, [boxes, 2])
    anchors = np.concatenate([centres, m.random.uniform(.2, .4, [boxes, 2])], 1)
    ids.append(m.tensor('uint8', [boxes, 4], np.round(anchors * 200), 1 / 200.) if quantized else
               m.tensor('float32', [boxes, 4], anchors))
    rows = 5 * (1 if regular else 2)
    outputs = [m.tensor('float32', shape) for shape in ([1, rows, 4], [1, rows], [1, rows], [1])]
    m.finish('CUSTOM', 1, None, None, ids, outputs[0])
    m.model.operatorCodes[0].customCode = 'TFLite_Detection_PostProcess'
    m.graph.operators[0].customOptions = np.frombuffer(flexbuffers.Dumps({
        'max_detections': 5, 'max_classes_per_detection': 1 if regular else 2, 'detections_per_class': 3,
        'use_regular_nms': regular, 'nms_score_threshold': .1, 'nms_iou_threshold': .4, 'num_classes': classes,
        'y_scale': 10.0, 'x_scale': 10.0, 'h_scale': 5.0, 'w_scale': 5.0}), np.uint8)
    m.graph.outputs = m.graph.operators[0].outputs = outputs
    record(m, name)


def record_values(maker, name, outputs):
    """Writes a model of an operator that LiteRT lacks, with outputs that were computed here for one run."""
    _, folder = write(maker, name)
    for i, feed in enumerate(maker.feeds):
        np.save(f'{folder}/input_0_{i}.npy', feed)
    for i, output in enumerate(outputs):
        np.save(f'{folder}/output_0_{i}.npy', output)


def operator(m, op, inputs, outputs, options_type=None, options=None, version=1):
    """An operator of a model of several."""
    schema = m.schema
    code, made_operator = schema.OperatorCodeT(), schema.OperatorT()
    code.builtinCode = getattr(schema.BuiltinOperator, op)
    code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), version
    m.model.operatorCodes = (m.model.operatorCodes or []) + [code]
    made_operator.opcodeIndex, made_operator.inputs, made_operator.outputs = len(m.model.operatorCodes) - 1, inputs, outputs
    if hasattr(schema.BuiltinOptions2, options_type or ''):
        made_operator.builtinOptions2Type = getattr(schema.BuiltinOptions2, options_type)
        made_operator.builtinOptions2 = options
    elif options_type is not None:
        made_operator.builtinOptionsType = getattr(schema.BuiltinOptions, options_type)
        made_operator.builtinOptions = options
    return made_operator


def subgraph(m, name):
    """Starts another subgraph of the model, which further tensors belong to; returns the one before."""
    before = m.graph
    m.graph = m.schema.SubGraphT()
    m.graph.name = name
    m.graph.tensors, m.graph.inputs, m.graph.outputs, m.graph.operators = [], [], [], []
    m.model.subgraphs = (m.model.subgraphs or [before]) + [m.graph]
    return before


def one_operator(schema, name, op, feeds, outputs, options_type=None, options=None, constants=(), seed=1, steps=2,
                 resolver='BUILTIN_REF', body=None, low=None):
    """A model of one operator: feeds (kind, shape), constants (kind, values), outputs (kind, shape). `body` adds a
    subgraph after the operands."""
    m = made.Maker(schema, seed)
    ids = [m.feed(kind, shape, low=low) for kind, shape in feeds]
    for kind, values in constants:
        ids.append(m.tensor(kind, np.shape(values), np.array(values)))
    results = [m.tensor(kind, shape) for kind, shape in outputs]
    main = m.graph
    if body is not None:
        body(m)
    m.graph = main
    made_operator = operator(m, op, ids, results, options_type, options)
    m.graph.operators, m.graph.outputs = [made_operator], results
    m.model.subgraphs = m.model.subgraphs or [m.graph]
    record(m, name, steps, resolver)


def body_of(op, kind='float32'):
    """A subgraph that combines two scalars."""
    def add(m):
        subgraph(m, 'body')
        a, b, y = (m.tensor(kind, []) for _ in range(3))
        m.graph.inputs, m.graph.outputs = [a, b], [y]
        if op is None:
            m.graph.outputs = [b]
        else:
            m.graph.operators = [operator(m, op, [a, b], [y])]
    return add


def options_of(schema, table, **values):
    options = getattr(schema, table + 'T')()
    for key, value in values.items():
        assert hasattr(options, key), key
        setattr(options, key, value)
    return options


def variables_reset(schema):
    """Two variables with initial values; one of them is also assigned a constant when the model runs."""
    m = made.Maker(schema, 80)
    x = m.feed('float32', [2])
    handles = {}

    def handle(name):
        index = m.tensor('float32', [])
        m.graph.tensors[index].type = schema.TensorType.RESOURCE
        options = options_of(schema, 'VarHandleOptions', container='', sharedName=name)
        m.graph.operators.append(operator(m, 'VAR_HANDLE', [], [index], 'VarHandleOptions', options))
        return index

    call = operator(m, 'CALL_ONCE', [], [], 'CallOnceOptions', options_of(schema, 'CallOnceOptions', initSubgraphIndex=1))
    m.graph.operators = [call]
    sums, last = handle('sums'), handle('last')
    main = subgraph(m, 'start')
    for name, value in (('sums', [3., -4.]), ('last', [.5, 9.])):
        constant = m.tensor('float32', [2], value)
        m.graph.operators.append(operator(m, 'ASSIGN_VARIABLE', [handle(name), constant], []))
    m.graph = main
    add = lambda a, b: options_of(schema, 'AddOptions', potScaleInt16=False)
    before, total, after, old, reset, result = (m.tensor('float32', [2]) for _ in range(6))
    zero = m.tensor('float32', [2], [-1., 1.])
    m.graph.operators += [
        operator(m, 'READ_VARIABLE', [sums], [before]),
        operator(m, 'ADD', [before, x], [total], 'AddOptions', add(0, 0)),
        operator(m, 'ASSIGN_VARIABLE', [sums, total], []),
        operator(m, 'READ_VARIABLE', [sums], [after]),
        operator(m, 'READ_VARIABLE', [last], [old]),
        operator(m, 'ADD', [after, old], [result], 'AddOptions', add(0, 0)),
        operator(m, 'ASSIGN_VARIABLE', [last, zero], []),
        operator(m, 'READ_VARIABLE', [last], [reset]),
    ]
    m.graph.outputs = [result, reset]
    record(m, 'variables_reset')


def random_operators(schema):
    # Further runs of LiteRT go on in the stream of numbers where the last one ended; TensorFlow skips some.
    for name, op in (('random_uniform', 'RANDOM_UNIFORM'), ('random_normal', 'RANDOM_STANDARD_NORMAL')):
        one_operator(schema, name, op, [], [('float32', [3, 7])], 'RandomOptions',
                     options_of(schema, 'RandomOptions', seed=12, seed2=-5), [('int32', [3, 7])], steps=1)
    one_operator(schema, 'multinomial', 'MULTINOMIAL', [('float32', [3, 5])], [('int32', [3, 6])], 'RandomOptions',
                 options_of(schema, 'RandomOptions', seed=3, seed2=4), [('int32', np.int32(6))], steps=1)


def text_operators(schema):
    one_operator(schema, 'hashtable_lookup', 'HASHTABLE_LOOKUP', [], [('float32', [5, 2]), ('uint8', [5])],
                 constants=[('int32', [7, 1, -3, 8, 4]), ('int32', [-3, 0, 4, 7]),
                            ('float32', np.arange(8).reshape(4, 2) + .5)], steps=1)
    for i, combiner in enumerate(('SUM', 'MEAN', 'SQRTN')):
        one_operator(schema, f'embedding_lookup_sparse_{combiner.lower()}', 'EMBEDDING_LOOKUP_SPARSE',
                     [], [('float32', [3, 2, 4])], 'EmbeddingLookupSparseOptions',
                     options_of(schema, 'EmbeddingLookupSparseOptions', combiner=i),
                     [('int32', [1, 3, 0, 4]), ('int32', [[0, 0, 0], [0, 0, 2], [2, 0, 0], [2, 1, 1]]),
                      ('int32', [3, 2, 3]), ('float32', [1., 2., 4., -.5]),
                      ('float32', np.random.default_rng(5).normal(size=[5, 4]))], steps=1)


def window_operators(schema):
    one_operator(schema, 'dilate', 'DILATE', [('float32', [3, 4])], [('float32', [5, 10])], 'DilateOptions',
                 schema.DilateOptionsT(), [('int32', [2, 3]), ('float32', np.float32(-1))])
    for name, function, shape in (('add', 'ADD', [2, 4, 2]), ('max', 'MAXIMUM', [2, 4, 2])):
        one_operator(schema, f'reduce_window_{name}', 'REDUCE_WINDOW', [('float32', [2, 9, 5])], [('float32', shape)],
                     'ReduceWindowOptions',
                     options_of(schema, 'ReduceWindowOptions', reduceFunction=getattr(schema.ReduceWindowFunction, function)),
                     [('float32', np.float32(.5)), ('int64', [1, 3, 2]), ('int64', [1, 2, 3]), ('int64', [1, 1, 1])])
    one_operator(schema, 'stablehlo_pad', 'STABLEHLO_PAD', [('float32', [3, 4])], [('float32', [6, 5])],
                 'StablehloPadOptions',
                 options_of(schema, 'StablehloPadOptions', edgePaddingLow=[1, -1], edgePaddingHigh=[0, -1],
                            interiorPadding=[1, 1]), [('float32', np.float32(7))])
    one_operator(schema, 'stablehlo_reduce_window', 'STABLEHLO_REDUCE_WINDOW', [('float32', [4, 6])],
                 [('float32', [4, 6])], 'StablehloReduceWindowOptions',
                 options_of(schema, 'StablehloReduceWindowOptions', windowDimensions=[2, 3], windowStrides=[2, 1],
                            baseDilations=[2, 1], windowDilations=[1, 2], padding=[0, 1, 2, 2], bodySubgraphIndex=1),
                 [('float32', np.float32(0))], body=body_of('STABLEHLO_ADD'))


def stablehlo_operators(schema):
    one_operator(schema, 'stablehlo_gather', 'STABLEHLO_GATHER', [('float32', [3, 4, 2])], [('float32', [2, 3, 2, 2])],
                 'StablehloGatherOptions',
                 options_of(schema, 'StablehloGatherOptions', offsetDims=[2, 3], collapsedSliceDims=[0],
                            startIndexMap=[1, 0], indexVectorDim=2, sliceSizes=[1, 2, 2]),
                 [('int64', [[[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [9, 2]]])])
    for name, op in (('update', None), ('add', 'STABLEHLO_ADD')):
        one_operator(schema, f'stablehlo_scatter_{name}', 'STABLEHLO_SCATTER',
                     [('float32', [3, 4, 2])], [('float32', [3, 4, 2])], 'StablehloScatterOptions',
                     options_of(schema, 'StablehloScatterOptions', updateWindowDims=[2, 3], insertedWindowDims=[0],
                                scatterDimsToOperandDims=[1, 0], indexVectorDim=2, updateComputationSubgraphIndex=1),
                     [('int64', [[[0, 2], [1, 0], [2, 1]], [[0, 1], [1, 0], [0, 9]]]),
                      ('float32', np.arange(24).reshape(2, 3, 2, 2) + .25)], body=body_of(op))
    one_operator(schema, 'stablehlo_shift_left', 'STABLEHLO_SHIFT_LEFT', [], [('int32', [6])],
                 constants=[('int32', [1, -3, 5, 7, 100, 2]), ('int32', [0, 1, 4, 31, 7, 30])], steps=1, resolver='BUILTIN')

    def branches(m):
        for i in range(3):
            subgraph(m, f'branch_{i}')
            a, c, y = m.tensor('float32', [4]), m.tensor('float32', [], [float(i + 2)]), m.tensor('float32', [4])
            m.graph.inputs, m.graph.outputs = [a], [y]
            m.graph.operators = [operator(m, 'MUL', [a, c], [y], 'MulOptions', schema.MulOptionsT())]

    m = made.Maker(schema, 90)
    index, x, y = m.feed('int32', [], low=0), m.feed('float32', [4]), m.tensor('float32', [4])
    m.feeds[0] = np.array(1, np.int32)
    main = m.graph
    branches(m)
    m.graph = main
    m.graph.operators = [operator(m, 'STABLEHLO_CASE', [index, x], [y], 'StablehloCaseOptions',
                                  options_of(schema, 'StablehloCaseOptions', branchSubgraphIndices=[1, 2, 3]))]
    m.graph.outputs = [y]
    record(m, 'stablehlo_case', 1, 'BUILTIN')


def pool_params(padding, stride, size):
    """TfLitePoolParams: padding, strides and filter (width first), activation, computed paddings."""
    return np.frombuffer(np.array([padding, stride[1], stride[0], size[1], size[0], 0, 0, 0, 0, 0], np.int32).tobytes(), np.uint8)


def custom(m, name, inputs, outputs, options):
    m.finish('CUSTOM', 1, None, None, inputs, outputs[0])
    m.model.operatorCodes[0].customCode = name
    m.graph.operators[0].customOptions = options
    m.graph.outputs = m.graph.operators[0].outputs = outputs


def pooling_with_positions(schema, name, seed, padding, stride, size):
    """MaxPoolingWithArgmax2D, which LiteRT lacks: the results follow its definition (tflite.md)."""
    m = made.Maker(schema, seed)
    x = m.feed('float32', [2, 5, 7, 3])
    image = m.feeds[0]
    counts = [-(-n // s) if padding == 1 else (n - k + s) // s for n, s, k in zip(image.shape[1:3], stride, size)]
    before = [max(0, (c - 1) * s + k - n) // 2 for c, s, k, n in zip(counts, stride, size, image.shape[1:3])]
    shape = [2] + counts + [3]
    maxima, positions = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    for b, i, j, c in np.ndindex(*shape):
        best = None
        for dy, dx in np.ndindex(*size):
            row, column = i * stride[0] - before[0] + dy, j * stride[1] - before[1] + dx
            if not (0 <= row < 5 and 0 <= column < 7):
                continue
            if best is None or image[b, row, column, c] > best:
                best = image[b, row, column, c]
                positions[b, i, j, c] = np.float32(dy * size[1] + dx) + np.float32(.1)
        maxima[b, i, j, c] = best
    custom(m, 'MaxPoolingWithArgmax2D', [x], [m.tensor('float32', shape) for _ in range(2)],
           pool_params(padding, stride, size))
    record_values(m, name, [maxima, positions])


def unpooling(schema, name, seed, padding, stride, size):
    """MaxUnpooling2D, likewise. Some positions are outside of the image, and some meet."""
    m = made.Maker(schema, seed)
    shape = [2, 3, 4, 2]
    ids = [m.feed('float32', shape), m.feed('float32', shape)]
    values = m.feeds[0]
    m.feeds[1] = (m.random.integers(0, size[0] * size[1] + 1, shape) + .1).astype(np.float32)
    rows, columns = shape[1] * size[0], shape[2] * size[1]
    before = [max(0, (c - 1) * s + k - n) // 2 for c, s, k, n in zip(shape[1:3], stride, size, (rows, columns))]
    result = np.zeros([2, rows, columns, 2], np.float32)
    for b, i, j, c in np.ndindex(*shape):
        position = int(m.feeds[1][b, i, j, c])
        row, column = i * stride[0] - before[0] + position // size[1], j * stride[1] - before[1] + position % size[1]
        if 0 <= row < rows and 0 <= column < columns:
            result[b, row, column, c] = values[b, i, j, c]
    custom(m, 'MaxUnpooling2D', ids, [m.tensor('float32', result.shape)], pool_params(padding, stride, size))
    record_values(m, name, [result])


def dense_blocks(schema, name, seed, zero_points):
    """FULLY_CONNECTED whose weights have a scale for each block of 32. LiteRT's kernels round the input; the results are
    those of the exact product."""
    m = made.Maker(schema, seed)
    x = m.feed('float32', [3, 64])
    codes = m.random.integers(-7, 8, [5, 64])
    scales = m.random.uniform(.01, .03, [5, 2]).astype(np.float32)
    points = m.random.integers(-2, 3, [5, 2]) if zero_points else np.zeros([5, 2], int)
    weights, bias = m.tensor('int8', [5, 64], codes), m.values('float32', [5])
    blocks = schema.BlockwiseQuantizationT()
    blocks.scales, blocks.blockSize = m.tensor('float32', [5, 2], scales), 32
    blocks.zeroPoints = m.tensor('int32', [5, 2], points) if zero_points else 0
    tensor = m.graph.tensors[weights]
    tensor.quantization = schema.QuantizationParametersT()
    tensor.quantization.detailsType, tensor.quantization.details = schema.QuantizationDetails.BlockwiseQuantization, blocks
    output = m.tensor('float32', [3, 5])
    m.finish('FULLY_CONNECTED', 13, 'FullyConnectedOptions', schema.FullyConnectedOptionsT(), [x, weights, bias], output)
    numbers = (codes - np.repeat(points, 32, 1)) * np.repeat(scales, 32, 1).astype(np.float64)
    bias_numbers = np.frombuffer(m.model.buffers[m.graph.tensors[bias].buffer].data.tobytes(), np.float32)
    record_values(m, name, [(m.feeds[0] @ numbers.T + bias_numbers).astype(np.float32)])


def basic_lstm(schema):
    """LSTM with the kernel type BASIC: one step for each run."""
    m = made.Maker(schema, 85)
    batch, inputs, cells = 3, 5, 4
    ids = [m.feed('float32', [batch, inputs]), m.feed('float32', [batch, cells]),
           m.values('float32', [4 * cells, inputs + cells], spread=.4), m.values('float32', [4 * cells]),
           m.feed('float32', [batch, cells])]
    outputs = [m.tensor('float32', [batch, width]) for width in (cells, cells, inputs + cells, 4 * cells)]
    options = options_of(schema, 'LSTMOptions', fusedActivationFunction=schema.ActivationFunctionType.TANH,
                         kernelType=schema.LSTMKernelType.BASIC)
    m.finish('LSTM', 2, 'LSTMOptions', options, ids, outputs[0])
    m.graph.outputs = m.graph.operators[0].outputs = outputs
    record(m, 'lstm_basic')


def main():
    from ai_edge_litert import schema_py_generated as schema
    made.Maker.lines = lambda maker, name: record(maker, name) or []
    made.lstm(schema, 'lstm_float_coupled_peephole', 2, 'float', coupled=True, peephole=True, clip=.6)
    made.lstm(schema, 'lstm_float_all', 3, 'float', peephole=True, norm=True, projection=True, time_major=True)
    made.lstm(schema, 'lstm_hybrid', 4, 'hybrid')
    made.lstm(schema, 'lstm_hybrid_asymmetric_all', 5, 'hybrid', peephole=True, projection=True, asymmetric=True)
    made.lstm(schema, 'lstm_int8_hidden_zero', 8, 'integer', hidden_zero=-9)
    made.lstm(schema, 'lstm_int8_coupled', 9, 'integer', coupled=True)
    made.lstm(schema, 'lstm_int8_all', 13, 'integer', peephole=True, norm=True, projection=True, time_major=True)
    made.rnn(schema, 'rnn_float', 20, False)
    made.rnn(schema, 'rnn_hybrid_time_major', 21, True, time_major=True)
    made.svdf(schema, 'svdf_float', 30, 'float')
    made.svdf(schema, 'svdf_hybrid', 32, 'hybrid', asymmetric=True)
    made.svdf(schema, 'svdf_int8', 33, 'integer')
    rnn_step(schema, 'rnn_step', 60)
    lstm_step(schema, 'lstm_step', 61)
    # LiteRT's kernel mixes up the elements of a larger batch when it merges results that are not time-major.
    bidirectional_lstm(schema, 'bidirectional_lstm_merged', 62, True, batch=1)
    bidirectional_lstm(schema, 'bidirectional_lstm_merged_time_major', 68, True, time_major=True)
    bidirectional_lstm(schema, 'bidirectional_lstm_auxiliary_weights', 63, False, 'weights', time_major=True)
    bidirectional_lstm(schema, 'bidirectional_lstm_hybrid_auxiliary_input', 64, False, 'input', scale=.006)
    bidirectional_rnn(schema, 'bidirectional_rnn', 65, False, time_major=True)
    bidirectional_rnn(schema, 'bidirectional_rnn_auxiliary_weights', 66, True, 'weights')
    bidirectional_rnn(schema, 'bidirectional_rnn_auxiliary_input', 67, False, 'input')
    detection(schema, 'detection_fast', 70, True, False)
    detection(schema, 'detection_regular', 71, False, True)
    detection(schema, 'detection_regular_uint8', 72, True, True, quantized=True)
    variables_reset(schema)
    random_operators(schema)
    text_operators(schema)
    window_operators(schema)
    stablehlo_operators(schema)
    pooling_with_positions(schema, 'max_pooling_with_argmax_same', 81, 1, (2, 3), (3, 2))
    pooling_with_positions(schema, 'max_pooling_with_argmax_valid', 82, 2, (2, 2), (2, 2))
    unpooling(schema, 'max_unpooling', 83, 2, (2, 2), (2, 2))
    unpooling(schema, 'max_unpooling_overlapping', 84, 1, (1, 2), (2, 3))
    basic_lstm(schema)
    dense_blocks(schema, 'dense_blocks', 86, False)
    dense_blocks(schema, 'dense_blocks_zero_points', 87, True)


if __name__ == '__main__':
    main()
