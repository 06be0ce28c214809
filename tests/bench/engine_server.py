"""The original engine with the protocol of pass_server: engine_server.py MODEL INPUTS OUTPUTS OUT.

Reads transform strings from standard input, one per line, and answers each with one line of JSON: {"seconds": ...} for
parsing the model's bytes, transforming and writing OUT; or {"error": ...}.
"""

import ctypes
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
import tensorflow as tf  # Registers the ops.
from tensorflow.python.util import _pywrap_transform_graph as engine

model, inputs, outputs, out = sys.argv[1:5]
for line in sys.stdin:
    start = time.perf_counter()
    try:
        with open(model, "rb") as source:
            data = source.read()
        result = engine.TransformGraphWithStringInputs(data, inputs, outputs, line.strip())
        with open(out, "wb") as target:
            target.write(result)
        answer = {"seconds": time.perf_counter() - start}
    except Exception as error:  # The binding maps statuses to several types.
        answer = {"error": str(error).split("\n")[0]}
    data = result = None
    # Memory that malloc retains from the last run would hide the growth of the next one.
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    print(json.dumps(answer), flush=True)
