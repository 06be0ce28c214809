#!/usr/bin/env python3
"""Converts one model for a peer: convert.py KIND MODEL_FOLDER SOURCE TARGET. conversions.py names the kinds.

A process makes one conversion and exits without destructors, because those of TensorFlow, LiteRT and NNCF conflict.
"""

import json
import os
import pathlib
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

OPSET = 17  # The newest version supported by tf2onnx and all engines.


class Interface:
    """Returns a model's spec.json and its recorded inputs."""

    def __init__(self, folder):
        spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
        self.name, self.shape = spec["inputs"][0]["name"], spec["inputs"][0]["shape"]
        self.outputs = spec["outputs"]
        self.feeds = [np.load(path) for path in sorted(folder.glob("input_*.npy"))]


def to_tflite(source, target, interface, kind):
    import tensorflow as tf
    converter = tf.compat.v1.lite.TFLiteConverter.from_frozen_graph(
        source, [interface.name], interface.outputs, input_shapes={interface.name: interface.shape})
    if kind != "tflite":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "tflite_int8":
        converter.representative_dataset = lambda: ([feed] for feed in interface.feeds)
    pathlib.Path(target).write_bytes(converter.convert())


def to_onnx(source, target, interface, _):
    subprocess.run([sys.executable, "-m", "tf2onnx.convert", "--graphdef", source, "--inputs",
                    f"{interface.name}:0[{','.join(map(str, interface.shape))}]", "--outputs",
                    ",".join(name + ":0" for name in interface.outputs), "--opset", str(OPSET), "--output", target],
                   check=True)


def to_optimised_onnx(source, target, *_):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = target
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def to_quantised_onnx(source, target, interface, kind):
    from onnxruntime import quantization
    prepared = target + ".prepared"
    quantization.quant_pre_process(source, prepared, skip_symbolic_shape=True)
    if kind == "onnx_dynamic":
        quantization.quantize_dynamic(prepared, target, weight_type=quantization.QuantType.QInt8, per_channel=True)
        os.remove(prepared)
        return

    class Feeds(quantization.CalibrationDataReader):
        def __init__(self):
            self.left = iter(interface.feeds)

        def get_next(self):
            feed = next(self.left, None)
            return None if feed is None else {interface.name + ":0": feed}

    quantization.quantize_static(prepared, target, Feeds(), quant_format=quantization.QuantFormat.QDQ, per_channel=True,
                                 activation_type=quantization.QuantType.QUInt8,
                                 weight_type=quantization.QuantType.QInt8)
    os.remove(prepared)


def to_openvino(source, target, interface, kind):
    import openvino
    if kind == "openvino":
        model = openvino.convert_model(source, input=[(interface.name + ":0", interface.shape)],
                                       output=[name + ":0" for name in interface.outputs])
    else:
        model = openvino.convert_model(source)
    openvino.save_model(model, target, compress_to_fp16=False)


def to_quantised_openvino(source, target, interface, _):
    import nncf
    import openvino
    model = nncf.quantize(openvino.Core().read_model(source), nncf.Dataset(interface.feeds),
                          subset_size=len(interface.feeds), preset=nncf.QuantizationPreset.MIXED)
    openvino.save_model(model, target, compress_to_fp16=False)


CONVERTERS = {
    "tflite": to_tflite,
    "tflite_dynamic": to_tflite,
    "tflite_int8": to_tflite,
    "onnx": to_onnx,
    "onnx_optimised": to_optimised_onnx,
    "onnx_dynamic": to_quantised_onnx,
    "onnx_int8": to_quantised_onnx,
    "openvino": to_openvino,
    "openvino_onnx": to_openvino,
    "openvino_int8": to_quantised_openvino,
}

if __name__ == "__main__":
    chosen, model_folder, source_path, target_path = sys.argv[1:5]
    CONVERTERS[chosen](source_path, target_path, Interface(pathlib.Path(model_folder)), chosen)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
