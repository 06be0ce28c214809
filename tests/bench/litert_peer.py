#!/usr/bin/env python3
"""The peer of the runtime benchmark: LiteRT's built-in kernels with the default delegate off.

    litert_peer.py convert MODEL.pb INPUT OUTPUT OUT.tflite
    litert_peer.py run MODEL.tflite THREADS       prints {"median_ms": ...}
"""

import json
import os
import statistics
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

WARMUP_RUNS = 2
RUNS = 7


def convert(source, input_name, output_name, target):
    import tensorflow as tf
    graph_def = tf.compat.v1.GraphDef.FromString(open(source, "rb").read())

    def import_graph():
        tf.compat.v1.import_graph_def(graph_def, name="")

    wrapped = tf.compat.v1.wrap_function(import_graph, [])
    function = wrapped.prune(wrapped.graph.as_graph_element(input_name + ":0"),
                             wrapped.graph.as_graph_element(output_name + ":0"))
    with open(target, "wb") as out:
        out.write(tf.lite.TFLiteConverter.from_concrete_functions([function]).convert())


def run(model, threads):
    import numpy as np
    from ai_edge_litert import interpreter as litert
    interpreter = litert.Interpreter(
        model, num_threads=int(threads),
        experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()[0]
    interpreter.set_tensor(details["index"], np.random.default_rng(1).random(details["shape"], dtype=np.float32))
    times = []
    for i in range(WARMUP_RUNS + RUNS):
        start = time.perf_counter()
        interpreter.invoke()
        if i >= WARMUP_RUNS:
            times.append(time.perf_counter() - start)
    print(json.dumps({"median_ms": statistics.median(times) * 1e3}))


if __name__ == "__main__":
    {"convert": convert, "run": run}[sys.argv[1]](*sys.argv[2:])
