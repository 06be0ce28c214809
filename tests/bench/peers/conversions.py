"""Conversions of the models, each made once in a separate process and cached in the work folder."""

import dataclasses
import hashlib
import json
import pathlib
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
SECONDS = 900  # A calibrated Inception v3 takes about 100 s on a slow core.


@dataclasses.dataclass(frozen=True)
class Kind:
    suffix: str
    source: str = None       # The kind to convert from; None: the frozen graph.
    program: str = None      # Program of this project for the conversion; None: convert.py.
    arguments: tuple = ()    # Arguments of that program other than the names of files and nodes.


PACKER = "convert_graphdef_memmapped_format"

KINDS = {
    "optimised": Kind(".optimised.pb", None, "transform_graph",
                      ("--transforms=optimize_for_inference fuse_activations(depthwise=true)",)),
    "packed_f32": Kind(".f32.pbmm", "optimised", PACKER, ("--pack_for=onednn:f32",)),
    "packed_reference": Kind(".reference.pbmm", "optimised", PACKER, ("--pack_for=reference",)),
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
    """A model cannot be converted, for the given reason."""


def fingerprint(model, kind, programs):
    """Returns a hash of everything that a conversion depends on."""
    source, program = KINDS[kind].source, KINDS[kind].program
    digest = hashlib.sha256(kind.encode())
    if source and program:  # A conversion by convert.py depends on the same files in several steps as in one.
        digest.update(fingerprint(model, source, programs).encode())
    makers = [programs[program]] if program else [HERE / "convert.py", HERE / "requirements.txt"]
    for path in [model.path, *model.input_files, *makers]:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def converted(model, kind, folder, programs):
    """Returns the path of `model` as `kind`, converting it if it is not cached. A ConversionError is cached, too.

    `programs` maps names of this project's programs to paths.
    """
    if kind == "pb":
        return model.path
    source = converted(model, KINDS[kind].source, folder, programs) if KINDS[kind].source else model.path
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / (model.name + KINDS[kind].suffix)
    record = target.with_name(target.name + ".json")
    known = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    made_of = fingerprint(model, kind, programs)
    if known.get("fingerprint") != made_of or not (known["error"] or target.exists()):
        known = {"fingerprint": made_of, "error": convert(model, kind, source, target, programs)}
        record.write_text(json.dumps(known), encoding="utf-8")
    if known["error"]:
        raise ConversionError(known["error"])
    return target


def command_for(model, kind, source, target, programs):
    """Returns the command that writes `source` as `kind` to `target`."""
    program = KINDS[kind].program
    if program is None:
        return [sys.executable, str(HERE / "convert.py"), kind, str(model.path.parent), str(source), str(target)]
    inputs = model.input_files[0] if program == PACKER else ",".join(entry["name"] for entry in model.inputs)
    return [str(programs[program]), f"--in_graph={source}", f"--out_graph={target}", f"--inputs={inputs}",
            f"--outputs={','.join(model.outputs)}", *KINDS[kind].arguments]


def convert(model, kind, source, target, programs):
    """Returns why the conversion failed, or None. The target appears only when it is complete."""
    print(f"peers: converting {model.name} to {kind}", file=sys.stderr)
    log = target.with_name(target.name + ".log")
    with open(log, "wb") as errors, tempfile.TemporaryDirectory(dir=target.parent) as making:
        try:
            command = command_for(model, kind, source, pathlib.Path(making) / target.name, programs)
            done = subprocess.run(command, stdout=errors, stderr=errors, timeout=SECONDS, check=False)
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
