"""The compared configurations: engines, their modes, the file that each mode loads, and its fastest options."""

import dataclasses

OURS = "Permafrost"


@dataclasses.dataclass(frozen=True)
class Configuration:
    engine: str
    mode: str
    artifact: str       # A kind of conversions.py.
    options: tuple = ()  # Pairs (key, value) of the worker's load request.
    program: str = "session_server"  # Program of this project that runs the mode.

    @property
    def name(self):
        return f"{self.engine} {self.mode}"

    @property
    def is_ours(self):
        return self.engine == OURS


# Configurations in f32. The fastest one of each engine counts, for each model.
F32 = [
    Configuration(OURS, "onednn f32", "pb", (("delegate", "onednn"), ("precision", "f32"))),
    Configuration(OURS, "xnnpack f32", "pb", (("delegate", "xnnpack"), ("precision", "f32"))),
    Configuration(OURS, "reference f32", "pb", (("delegate", "reference"), ("precision", "f32"))),
    Configuration("TensorFlow", "f32", "pb"),
    Configuration("LiteRT", "f32", "tflite"),
    Configuration("ONNX Runtime", "f32", "onnx"),
    Configuration("OpenVINO", "f32", "openvino", (("precision", "f32"),)),
    Configuration("OpenVINO", "f32 by ONNX", "openvino_onnx", (("precision", "f32"),)),
    Configuration("OpenCV", "f32", "onnx", (("kernels", "new"),)),
    Configuration("OpenCV", "f32 classic", "onnx", (("kernels", "classic"),)),
]

# Configurations with fewer bits. Those outside the accuracy budget are excluded.
REDUCED = [
    Configuration(OURS, "onednn auto", "pb", (("delegate", "onednn"), ("precision", "auto"))),
    Configuration(OURS, "onednn bf16x3", "pb", (("delegate", "onednn"), ("precision", "bf16x3"))),
    Configuration(OURS, "onednn bf16", "pb", (("delegate", "onednn"), ("precision", "bf16"))),
    Configuration(OURS, "onednn int8", "pb", (("delegate", "onednn"), ("precision", "int8"))),
    Configuration(OURS, "onednn mixed", "pb", (("delegate", "onednn"), ("precision", "mixed"))),
    Configuration(OURS, "xnnpack int8", "pb", (("delegate", "xnnpack"), ("precision", "int8"))),
    Configuration("TensorFlow", "bf16", "pb", (("precision", "bf16"),)),
    Configuration("LiteRT", "int8 dynamic", "tflite_dynamic"),
    Configuration("LiteRT", "int8", "tflite_int8"),
    Configuration("LiteRT", "int8, delegate off", "tflite_int8", (("kernels", "builtin"),)),
    Configuration("ONNX Runtime", "int8 dynamic", "onnx_dynamic"),
    Configuration("ONNX Runtime", "int8", "onnx_int8"),
    Configuration("OpenVINO", "default", "openvino"),
    Configuration("OpenVINO", "bf16", "openvino", (("precision", "bf16"),)),
    Configuration("OpenVINO", "int8", "openvino_int8"),
]

# Features for a faster start: models that an engine has prepared in advance on this machine.
AHEAD = [
    Configuration(OURS, "onednn f32 packed", "packed_f32", (("delegate", "onednn"), ("precision", "f32"))),
    Configuration(OURS, "reference f32 packed", "packed_reference", (("delegate", "reference"), ("precision", "f32"))),
    Configuration(OURS, "embedded f32 packed", "packed_reference", (("delegate", "reference"), ("precision", "f32")),
                  "embedded_server"),
    Configuration("ONNX Runtime", "f32 optimised ahead", "onnx_optimised", (("optimised", "yes"),)),
    Configuration("OpenVINO", "f32 cached", "openvino", (("precision", "f32"), ("cache", "yes"))),
]
