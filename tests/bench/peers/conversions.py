"""Conversions of the models, each made once in a process of its own and kept in the work folder."""

import dataclasses
import hashlib
import json
import pathlib
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
SECONDS = 900  # Inception v3, calibrated, takes some 100 on a slow core.


@dataclasses.dataclass(frozen=True)
class Kind:
    suffix: str
    source: str = None  # The kind that it is made from; None: the frozen graph.


KINDS = {
    "tflite": Kind(".tflite"),
    "tflite_dynamic": Kind(".dynamic.tflite"),
    "tflite_int8": Kind(".int8.tflite"),
    "onnx": Kind(".onnx"),
    "onnx_optimised": Kind(".optimised.onnx", "onnx"),
    "onnx_dynamic": Kind(".dynamic.onnx", "onnx"),
    "onnx_int8": Kind(".int8.onnx", "onnx"),
    "openvino": Kind(".xml"),
    "openvino_onnx": Kind(".by_onnx.xml", "onnx"),
    "openvino_int8": Kind(".int8.xml", "openvino"),
}


class ConversionError(Exception):
    """A peer cannot convert a model; the text says why."""


def fingerprint(model, kind):
    """Of all that a conversion depends on."""
    digest = hashlib.sha256(kind.encode())
    for path in [model.path, *model.input_files, HERE / "convert.py", HERE / "requirements.txt"]:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def converted(model, kind, folder):
    """The path of `model` as `kind`; makes it when the folder does not have it. ConversionError, remembered too."""
    if kind == "pb":
        return model.path
    source = converted(model, KINDS[kind].source, folder) if KINDS[kind].source else model.path
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / (model.name + KINDS[kind].suffix)
    record = target.with_name(target.name + ".json")
    known = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    if known.get("fingerprint") != fingerprint(model, kind) or not (known["error"] or target.exists()):
        known = {"fingerprint": fingerprint(model, kind), "error": convert(model, kind, source, target)}
        record.write_text(json.dumps(known), encoding="utf-8")
    if known["error"]:
        raise ConversionError(known["error"])
    return target


def convert(model, kind, source, target):
    """Why it failed, or None. What it makes appears under its name when it is complete."""
    print(f"peers: converting {model.name} to {kind}", file=sys.stderr)
    log = target.with_name(target.name + ".log")
    with open(log, "wb") as errors, tempfile.TemporaryDirectory(dir=target.parent) as making:
        try:
            done = subprocess.run([sys.executable, str(HERE / "convert.py"), kind, str(model.path.parent), str(source),
                                   str(pathlib.Path(making) / target.name)], stdout=errors, stderr=errors,
                                  timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"not done after {SECONDS} s"
        if done.returncode == 0:
            for path in pathlib.Path(making).iterdir():
                path.replace(target.parent / path.name)
            return None
    if done.returncode < 0:
        return f"the converter dies of {signal.Signals(-done.returncode).name}"
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else f"exit status {done.returncode}"
