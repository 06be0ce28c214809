"""Writes a small tfjs graph model: write_tfjs.py FOLDER. A depthwise convolution with relu6, a convolution with prelu; the
filters quantised, and cut in two shards."""
import json
import pathlib
import struct
import sys

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True)
bias_add, relu6, prelu, same = 'Qmlhc0FkZA==', 'UmVsdTY=', 'UHJlbHU=', 'U0FNRQ=='
number = {'type': 'DT_FLOAT'}


def const(name):
    return {'name': name, 'op': 'Const', 'attr': {'dtype': number}}


def fused(op, name, inputs, ops):
    ones = {'list': {'i': ['1'] * 4}}
    return {'name': name, 'op': op, 'input': inputs,
            'attr': {'T': number, 'num_args': {'i': str(len(inputs) - 2)}, 'fused_ops': {'list': {'s': ops}},
                     'padding': {'s': same}, 'strides': ones, 'dilations': ones, 'data_format': {'s': 'TkhXQw=='}}}


dims = {'dim': [{'size': size} for size in ('1', '2', '2', '2')]}
topology = {'node': [
    {'name': 'x', 'op': 'Placeholder', 'attr': {'dtype': number, 'shape': {'shape': dims}}},
    const('depthwise'), const('bias'), const('filter'), const('slopes'),
    fused('FusedDepthwiseConv2dNative', 'd', ['x', 'depthwise', 'bias'], [bias_add, relu6]),
    fused('_FusedConv2D', 'y', ['d', 'filter', 'bias', 'slopes'], [bias_add, prelu]),
], 'versions': {'producer': 440}}
codes = {'dtype': 'uint8', 'scale': 0.5, 'min': -2}
weights = [{'name': 'depthwise', 'shape': [1, 1, 2, 1], 'dtype': 'float32', 'quantization': codes},
           {'name': 'filter', 'shape': [1, 1, 2, 2], 'dtype': 'float32', 'quantization': codes},
           {'name': 'bias', 'shape': [2], 'dtype': 'float32'}, {'name': 'slopes', 'shape': [2], 'dtype': 'float32'}]
content = bytes([6, 0, 8, 1, 2, 7]) + struct.pack('<4f', 0.5, -0.5, 0.25, 0.1)
(folder / 'shard1.bin').write_bytes(content[:4])
(folder / 'shard2.bin').write_bytes(content[4:])
signature = {'inputs': {'x': {'name': 'x:0'}}, 'outputs': {'y': {'name': 'y:0'}}}
(folder / 'model.json').write_text(json.dumps({
    'format': 'graph-model', 'signature': signature, 'modelTopology': topology,
    'weightsManifest': [{'paths': ['shard1.bin', 'shard2.bin'], 'weights': weights}]}))
