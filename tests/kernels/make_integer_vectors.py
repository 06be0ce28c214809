#!/usr/bin/env python3
"""Writes the recorded cases of quantised operators that tests/kernels/integer_*_test.cc compute.

    python3 tests/kernels/make_integer_vectors.py FOLDER      (needs numpy and ai_edge_litert)

FOLDER has one folder for each case: model.tflite with one operator, input_0_<i>.npy, and output_0_0.npy, the output of
LiteRT's reference kernels. All cases of an operator become one file integer_vectors/<OPERATOR>.txt:

    case <name>
    option <name> <number>
    input <type> <shape> <scales> <zero points> <axis> <bytes>     for each operand; `input none` for an absent one
    intermediate <type> <shape> <scales> <zero points> <axis> -    for each intermediate tensor of a recurrent operator
    output <type> <shape> <scales> <zero points> <axis> <bytes>

Lists are separated by commas and are `-` where empty, scales are hexadecimal floats, and the bytes are those of the
elements in hexadecimal (`-` for a variable, which starts with zeros). Codes of 4 bits are unpacked to int8.
"""
import glob
import json
import os
import sys

import numpy as np

TYPES = {0: ('float32', '<f4'), 1: ('float16', '<f2'), 2: ('int32', '<i4'), 3: ('uint8', 'u1'), 4: ('int64', '<i8'),
         6: ('bool', 'b1'), 7: ('int16', '<i2'), 9: ('int8', 'i1'), 17: ('int8', 'int4')}
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'integer_vectors')


def listed(values):
    return ','.join(values) or '-'


def described(tensor, data):
    """Type, shape, quantisation and elements of a tensor."""
    name, kind = TYPES[tensor.type]
    if data is not None and kind == 'int4' and data.dtype == np.uint8:
        count = int(np.prod(tensor.shape))
        data = ((np.stack([data & 15, data >> 4], 1).ravel()[:count] ^ 8).astype(np.int16) - 8).astype(np.int8)
    quantization = tensor.quantization
    has_scale = quantization is not None and quantization.scale is not None
    scales = [float(np.float32(s)).hex() for s in quantization.scale] if has_scale else []
    zeros = [str(int(z)) for z in quantization.zeroPoint] if has_scale and quantization.zeroPoint is not None else []
    axis = quantization.quantizedDimension if has_scale else 0
    shape = [str(int(d)) for d in tensor.shape] if tensor.shape is not None else []
    raw = '-' if data is None else data.tobytes().hex() or '-'
    return f'{name} {listed(shape)} {listed(scales)} {listed(zeros)} {axis} {raw}'


def case(schema, folder, keep_float=False):
    """The lines of one case, or none if no operand has codes and float cases are not kept."""
    with open(os.path.join(folder, 'model.tflite'), 'rb') as file:
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(file.read(), 0))
    graph = model.subgraphs[0]
    op = graph.operators[0]
    if len(graph.operators) != 1:
        return []
    feeds = {int(i): np.load(f'{folder}/input_0_{k}.npy') for k, i in enumerate(graph.inputs)}
    lines = [f'case {os.path.basename(folder)}']
    options = op.builtinOptions if op.builtinOptions is not None else op.builtinOptions2
    for name, value in sorted(vars(options).items()) if options is not None else []:
        if isinstance(value, (bool, int, float)):
            lines.append(f'option {name} {float(np.float32(value)).hex() if isinstance(value, float) else int(value)}')
    types = set()
    for i in op.inputs:
        if i < 0:
            lines.append('input none')
            continue
        tensor = graph.tensors[i]
        types.add(TYPES[tensor.type][0])
        raw = model.buffers[tensor.buffer].data
        data = feeds.get(int(i), None if raw is None else np.asarray(raw, np.uint8))
        lines.append(f'input {described(tensor, data)}')
    for i in op.intermediates if op.intermediates is not None else []:
        lines.append(f'intermediate {described(graph.tensors[i], None)}')
    output = graph.tensors[op.outputs[0]]
    types.add(TYPES[output.type][0])
    recorded = np.load(f'{folder}/output_0_0.npy')
    output.shape = recorded.shape
    lines.append(f'output {described(output, recorded)}')
    return lines if keep_float or types & {'int8', 'uint8', 'int16'} else []


def main():
    from ai_edge_litert import schema_py_generated as schema
    operators = {}
    for spec in sorted(glob.glob(os.path.join(sys.argv[1], '*', 'spec.json'))):
        with open(spec, encoding='utf-8') as file:
            op = json.load(file)['op']
        lines = case(schema, os.path.dirname(spec))
        if lines:
            operators.setdefault(op, []).extend(lines)
    os.makedirs(FOLDER, exist_ok=True)
    for op, lines in operators.items():
        with open(os.path.join(FOLDER, op + '.txt'), 'w', encoding='utf-8') as file:
            file.write('\n'.join(lines) + '\n')


if __name__ == '__main__':
    main()
