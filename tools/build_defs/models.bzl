"""Rules for builds that ship models: optimise them, compare them with a reference, and list the ops that they need.

    load("@permafrost//tools/build_defs:models.bzl", "model_test", "ops_to_register", "optimized_model")

    optimized_model(
        name = "small",
        src = "model.pb",
        inputs = ["image"],
        outputs = ["probabilities"],
        transforms = ["strip_unused_nodes", "fold_constants(ignore_errors=true)", "fold_batch_norms"],
    )

    model_test(
        name = "small_test",
        model = ":small",
        reference = "model.pb",
        outputs = ["probabilities"],
        tolerance = "1e-5",
    )

    ops_to_register(
        name = "ops",
        models = [":small"],
    )

All of them run in the sandbox, need nothing but their inputs, and write the same bytes in each build. The tools are built once,
with the options of the build. --define=tools=host, which the configurations for size and for other processors set, builds them
for the host.
"""

_TOOLS = Label("//tools:BUILD.bazel")

def _tool(name):
    return str(_TOOLS.relative(":" + name))

# A tool as an input of a rule that runs it: see //:host_tools.
_HOST_TOOLS = str(_TOOLS.relative("//:host_tools"))

def _source(name):
    return select({_HOST_TOOLS: [], "//conditions:default": [_tool(name)]})

def _host_tool(name):
    return select({_HOST_TOOLS: [_tool(name)], "//conditions:default": []})

def _joined(names):
    return ",".join(names)

def ops_to_register(name, models, style = "permafrost", flags = [], **kwargs):
    """Writes <name>/ops_to_register.h for the models.

    Args:
      name: of the target, whose only output is the header.
      models: labels of model files of any format that can be read.
      style: "permafrost" for our own runtime, "tensorflow" for a build of TensorFlow.
      flags: more flags of print_selective_registration_header.
      **kwargs: as of any rule (visibility, tags).
    """
    if not models:
        fail("ops_to_register(name = '%s'): models is empty" % name)
    native.genrule(
        name = name,
        srcs = models + _source("print_selective_registration_header"),
        tools = _host_tool("print_selective_registration_header"),
        outs = [name + "/ops_to_register.h"],
        cmd = "$(location {tool}) --style={style} {flags} {graphs} > $@".format(
            tool = _tool("print_selective_registration_header"),
            style = style,
            flags = " ".join(["'%s'" % flag for flag in flags]),
            graphs = " ".join(["--graphs=$(location %s)" % model for model in models]),
        ),
        **kwargs
    )

def program_files_of(name, models, **kwargs):
    """Writes <name>/<model>.program for each model, which a selective runtime with program_files reads.

    Args:
      name: of the target, whose outputs are the files.
      models: labels of model files of any format that can be read, with different names.
      **kwargs: as of any rule (visibility, tags).

    Returns:
      The labels of the files.
    """
    files = []
    for model in models:
        base = model.split(":")[-1].split("/")[-1]
        file = "%s/%s.program" % (name, base.rsplit(".", 1)[0])
        if file in files:
            fail("%s: two models have the name '%s'" % (name, base))
        files.append(file)
    native.genrule(
        name = name,
        srcs = models + _source("convert_model"),
        tools = _host_tool("convert_model"),
        outs = files,
        cmd = " && ".join([
            "$(location {tool}) $(location {model}) $(location {file}) --to=program > /dev/null".format(
                tool = _tool("convert_model"),
                model = model,
                file = file,
            )
            for model, file in zip(models, files)
        ]),
        **kwargs
    )
    return [":" + file for file in files]

def _searched_model(name, src, budget, inputs, outputs, calibration, flags, out, kwargs):
    """Runs optimize_model as a build step, which measures and is therefore neither sent to another machine nor cached there."""
    arguments = ["--%s='%s'" % (limit, value) for limit, value in budget.items()]
    if inputs:
        arguments.append("--input_layer='%s'" % _joined(inputs))
    if outputs:
        arguments.append("--output_layer='%s'" % _joined(outputs))
    arguments += ["--inputs=$(location %s)" % file for file in calibration]
    native.genrule(
        name = name,
        srcs = [src] + calibration + _source("optimize_model"),
        tools = _host_tool("optimize_model"),
        outs = [out or name + ".pb"],
        cmd = ("$(location {tool}) --in_model=$(location {src}) --out_model=$@ --results= --page= --certificate= " +
               "{arguments} {flags} > /dev/null").format(
            tool = _tool("optimize_model"),
            src = src,
            arguments = " ".join(arguments),
            flags = " ".join(["'%s'" % flag for flag in flags]),
        ),
        tags = kwargs.pop("tags", []) + ["local", "no-remote"],
        **kwargs
    )

def optimized_model(
        name,
        src,
        transforms = [],
        inputs = [],
        outputs = [],
        flags = [],
        out = None,
        budget = {},
        calibration = [],
        **kwargs):
    """Runs transform_graph, or with a budget optimize_model, as a build step.

    Args:
      name: of the target, whose only output is the model.
      src: label of the model.
      transforms: the passes in their order, each as transform_graph takes it.
      inputs: names of inputs; found in the model when empty.
      outputs: names of outputs; found in the model when empty.
      flags: more flags of the tool.
      out: name of the file; <name>.pb when not given.
      budget: instead of transforms, limits of optimize_model by name: {"max_size": "6MB", "minimize": "size"}. With
        "minimize": "size" and "precisions": "f32" the result does not depend on the time that runs take.
      calibration: labels of NPY files with real inputs, for a budget.
      **kwargs: as of any rule (visibility, tags).
    """
    if budget:
        if transforms:
            fail("optimized_model(name = '%s'): found transforms and budget, expected one of them" % name)
        _searched_model(name, src, budget, inputs, outputs, calibration, flags, out, kwargs)
        return
    if not transforms:
        fail("optimized_model(name = '%s'): transforms is empty, and there is no budget" % name)
    arguments = ["--transforms='%s'" % " ".join(transforms)]
    if inputs:
        arguments.append("--inputs='%s'" % _joined(inputs))
    if outputs:
        arguments.append("--outputs='%s'" % _joined(outputs))
    native.genrule(
        name = name,
        srcs = [src] + _source("transform_graph"),
        tools = _host_tool("transform_graph"),
        outs = [out or name + ".pb"],
        cmd = "$(location {tool}) --in_graph=$(location {src}) --out_graph=$@ {arguments} {flags} > /dev/null".format(
            tool = _tool("transform_graph"),
            src = src,
            arguments = " ".join(arguments),
            flags = " ".join(["'%s'" % flag for flag in flags]),
        ),
        **kwargs
    )

def model_test(name, model, reference, tolerance = None, inputs = [], outputs = [], flags = [], data = [], **kwargs):
    """A test that runs validate_model: the answers of `model` against those of `reference`.

    Args:
      name: of the test.
      model: label of the model that is to be shipped.
      reference: label of the model that says what is right.
      tolerance: as text, the largest difference allowed, relative to max(1, largest value); validate_model's own when not
        given.
      inputs: labels of NPY files that are fed, of which each may hold many rows; random numbers when empty.
      outputs: names of the outputs that are compared; found in the model when empty.
      flags: more flags of validate_model; $(location ...) of `data` is put in.
      data: more files that the test reads.
      **kwargs: as of any test (size, tags).
    """
    arguments = [
        "$(location %s)" % _tool("validate_model"),
        "--reference=$(location %s)" % reference,
        "--candidate=$(location %s)" % model,
    ]
    if tolerance != None:
        arguments.append("--tolerance=%s" % tolerance)
    if inputs:
        arguments.append("--inputs=" + _joined(["$(location %s)" % label for label in inputs]))
    if outputs:
        arguments.append("--outputs=" + _joined(outputs))
    native.sh_test(
        name = name,
        srcs = [str(_TOOLS.relative("//tools/build_defs:run_validation.sh"))],
        args = arguments + flags,
        data = data + inputs + [model, reference, _tool("validate_model")],
        **kwargs
    )
