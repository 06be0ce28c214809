#!/usr/bin/env python3
"""A peer with the protocol of session_server.cc: worker.py ENGINE. configurations.py names engines and options.

Each engine reads input buffers that are filled in advance, and writes output buffers that are allocated in advance. The
measured time includes nothing else.
"""

import gc
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.modules["openvino_telemetry"] = None  # Disables telemetry, whose process would outlive this one.


class TensorFlow:
    def __init__(self, settings):
        options = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=settings["threads"],
                                           inter_op_parallelism_threads=1)
        if settings.get("precision") == "bf16":
            options.graph_options.rewrite_options.auto_mixed_precision_onednn_bfloat16 = 1  # RewriterConfig.ON
        graph_def = tf.compat.v1.GraphDef()
        with open(settings["model"], "rb") as file:
            graph_def.ParseFromString(file.read())
        with tf.Graph().as_default() as graph:
            tf.compat.v1.import_graph_def(graph_def, name="")
        session = tf.compat.v1.Session(graph=graph, config=options)
        self.compute = session.make_callable([name + ":0" for name in settings["outputs"]],
                                             [name + ":0" for name in settings["inputs"]])

    def feed(self, arrays):
        self.arrays = arrays

    def invoke(self):
        self.found = self.compute(*self.arrays)

    def outputs(self):
        return self.found


class LiteRT:
    def __init__(self, settings):
        kernels = (litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if settings.get("kernels") == "builtin" else
                   litert.OpResolverType.AUTO)
        self.interpreter = litert.Interpreter(settings["model"], num_threads=settings["threads"],
                                              experimental_op_resolver_type=kernels)
        self.interpreter.allocate_tensors()
        self.invoke = self.interpreter.invoke

    def feed(self, arrays):
        inputs = self.interpreter.get_input_details()
        different = [(details, array) for details, array in zip(inputs, arrays)
                     if tuple(details["shape"]) != array.shape]
        for details, array in different:
            self.interpreter.resize_tensor_input(details["index"], array.shape)
        if different:
            self.interpreter.allocate_tensors()
        for details, array in zip(inputs, arrays):
            self.interpreter.set_tensor(details["index"], array)

    def outputs(self):
        return [self.interpreter.get_tensor(details["index"]) for details in self.interpreter.get_output_details()]


class OnnxRuntime:
    def __init__(self, settings):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = settings["threads"]
        options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.log_severity_level = 3
        options.graph_optimization_level = (onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
                                            if settings.get("optimised") == "yes" else
                                            onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
        options.add_session_config_entry("session.intra_op.allow_spinning", "1")
        options.add_session_config_entry("session.set_denormal_as_zero", "1")
        self.session = onnxruntime.InferenceSession(settings["model"], options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        self.invoke = lambda: self.session.run_with_iobinding(self.binding)

    def feed(self, arrays):
        self.kept = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in arrays]
        for node, value in zip(self.session.get_inputs(), self.kept):
            self.binding.bind_ortvalue_input(node.name, value)
        self.targets = []
        for node in self.session.get_outputs():
            if all(isinstance(size, int) for size in node.shape):
                target = onnxruntime.OrtValue.ortvalue_from_shape_and_type(node.shape, np.float32)
                self.targets.append(target)
                self.binding.bind_ortvalue_output(node.name, target)
            else:
                self.binding.bind_output(node.name)

    def outputs(self):
        return self.binding.copy_outputs_to_cpu()


class OpenVINO:
    def __init__(self, settings):
        options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": settings["threads"]}
        if "precision" in settings:
            options["INFERENCE_PRECISION_HINT"] = settings["precision"]
        core = openvino.Core()
        if settings.get("cache") == "yes":
            core.set_property({"CACHE_DIR": settings["model"] + ".cache"})
        self.compiled = core.compile_model(settings["model"], "CPU", options)
        self.request = self.compiled.create_infer_request()
        # A .tflite file is loaded without names of outputs: all, in the order of the file.
        self.names = ([name + ":0" for name in settings["outputs"]] if settings["outputs"] else
                      [output.any_name for output in self.compiled.outputs])

    def feed(self, arrays):
        self.kept = [openvino.Tensor(array, shared_memory=True) for array in arrays]
        for i, tensor in enumerate(self.kept):
            self.request.set_input_tensor(i, tensor)

    def invoke(self):
        self.request.infer(share_outputs=True)

    def outputs(self):
        return [self.request.get_tensor(name).data for name in self.names]


class OpenCV:
    def __init__(self, settings):
        cv2.setNumThreads(settings["threads"])
        kernels = cv2.dnn.ENGINE_NEW if settings["kernels"] == "new" else cv2.dnn.ENGINE_CLASSIC
        self.net = cv2.dnn.readNetFromONNX(settings["model"], kernels)
        self.names = [name + ":0" for name in settings["outputs"]]

    def feed(self, arrays):
        self.net.setInput(arrays[0])

    def invoke(self):
        self.found = self.net.forward(self.names)

    def outputs(self):
        return self.found


def import_engine(name):
    """Imports the modules of the engine and returns its class."""
    global tf, litert, onnxruntime, openvino, cv2
    if name == "TensorFlow":
        import tensorflow as tf
        return TensorFlow
    if name == "LiteRT":
        from ai_edge_litert import interpreter as litert
        return LiteRT
    if name == "ONNX Runtime":
        import onnxruntime
        return OnnxRuntime
    if name == "OpenVINO":
        import openvino
        return OpenVINO
    import cv2
    return OpenCV


class Server:
    def __init__(self, engine_class):
        self.engine_class = engine_class
        self.engine = None

    def load(self, *words):
        settings = dict(word.split("=", 1) for word in words)
        settings["threads"] = int(settings["threads"])
        for key in ("inputs", "outputs"):
            settings[key] = [name for name in settings[key].split(",") if name]
        start = time.perf_counter_ns()
        self.engine = self.engine_class(settings)
        return {"ns": time.perf_counter_ns() - start}

    def feed(self, *paths):
        arrays = [np.load(path) for path in paths]
        start = time.perf_counter_ns()
        self.engine.feed(arrays)
        return {"ns": time.perf_counter_ns() - start}

    def run(self, runs):
        times = [0] * int(runs)
        invoke, clock = self.engine.invoke, time.perf_counter_ns
        gc.collect()
        gc.disable()
        for i in range(len(times)):
            start = clock()
            invoke()
            times[i] = clock() - start
        gc.enable()
        return {"ns": times}

    def save(self, prefix):
        arrays = self.engine.outputs()
        for i, array in enumerate(arrays):
            np.save(f"{prefix}_{i}.npy", array)
        return {"outputs": len(arrays)}


def main():
    # Output that engines print must not be read as answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    global np
    start = time.perf_counter_ns()
    import numpy as np
    server = Server(import_engine(sys.argv[1]))
    print(json.dumps({"import_ns": time.perf_counter_ns() - start}), file=answers, flush=True)
    for line in sys.stdin:
        request, *words = line.rstrip("\n").split("\t")
        if request == "quit":
            break
        try:
            answer = {"load": server.load, "feed": server.feed, "run": server.run, "save": server.save}[request](*words)
        except Exception as error:  # Each engine has its own exception types.
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(answer), file=answers, flush=True)
    answers.flush()
    os._exit(0)  # Skips destructors, in which some engines crash.


if __name__ == "__main__":
    main()
