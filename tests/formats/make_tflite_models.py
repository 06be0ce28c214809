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


def record(maker, name):
    """Writes the model with the inputs and outputs of two runs of one interpreter."""
    import flatbuffers
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    builder = flatbuffers.Builder(1024)
    builder.Finish(maker.model.Pack(builder), file_identifier=b'TFL3')
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, 'model.tflite'), 'wb') as file:
        file.write(builder.Output())
    interpreter = Interpreter(model_content=bytes(builder.Output()),
                              experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    for step in range(2):
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


def main():
    from ai_edge_litert import schema_py_generated as schema
    made.Maker.lines = record
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


if __name__ == '__main__':
    main()
