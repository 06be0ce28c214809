"""A runtime that holds what given models need, and nothing else.

    load("@permafrost//tools/build_defs:selective.bzl", "selective_runtime")

    selective_runtime(
        name = "runtime",
        models = ["model.pb"],
    )

    cc_binary(
        name = "app",
        srcs = ["app.cc"],
        deps = [":runtime"],
    )

The sources of the runtime are compiled again for each such target, so that two of them, and the full runtime, stand side by
side in one build. A configuration transition would share the sources' targets instead, but reach every dependency: the
tools, which the header is made with, and the app's own libraries would be built once more for each set of models.

Two selective runtimes, or one and the full one, do not fit into one program: they define the same names.
"""

load("@rules_cc//cc:defs.bzl", "cc_library")
load(":models.bzl", "ops_to_register")

_HERE = Label("//tools/build_defs:BUILD.bazel")

def _label(name):
    return str(_HERE.relative(name))

def _selected_kernels_impl(ctx):
    outputs = [ctx.actions.declare_file("%s/%s" % (ctx.label.name, kernel.basename)) for kernel in ctx.files.kernels]
    ctx.actions.run(
        executable = ctx.file._script,
        arguments = [ctx.file.header.path, outputs[0].dirname] + [kernel.path for kernel in ctx.files.kernels],
        inputs = [ctx.file.header] + ctx.files.kernels,
        outputs = outputs,
        mnemonic = "SelectKernels",
        progress_message = "Choosing the kernels of %s" % ctx.label,
    )
    return [DefaultInfo(files = depset(outputs))]

_selected_kernels = rule(
    implementation = _selected_kernels_impl,
    attrs = {
        "header": attr.label(allow_single_file = [".h"], mandatory = True),
        "kernels": attr.label(allow_files = [".cc"], mandatory = True),
        "_script": attr.label(
            default = Label("//tools/build_defs:selected_kernels.sh"),
            allow_single_file = True,
            cfg = "host",
        ),
    },
)

# Smaller code; and speed where it comes for nothing, since nobody reads errno or the floating-point exceptions.
_COPTS = [
    "-DNDEBUG",
    "-ffunction-sections",
    "-fdata-sections",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
    "-fno-stack-protector",
    "-fomit-frame-pointer",
    "-U_FORTIFY_SOURCE",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-w",
]

# By instruction set: the tables of inner loops that are left out without it.
_INSTRUCTION_SETS = ["avx2", "avx512"]

def selective_runtime(name, models = [], header = None, instruction_sets = ["avx2"], threads = True, copts = ["-Os"], **kwargs):
    """A cc_library with the session, the reader of frozen graphs and the kernels that the models need.

    What is not listed is not compiled: kernels by op and by element type, op schemas, control flow, functions. A model that
    needs more fails when it is loaded, with an error that names the op, the type, the node and the command that makes the
    header again.

    Args:
      name: of the library.
      models: labels of model files of any format that can be read; a session runs frozen graphs (GraphDef).
      header: label of an ops_to_register.h instead, for models that are not in the build.
      instruction_sets: of x86-64, beyond SSE2, for which inner loops are compiled: "avx2" (15 KB), "avx512" (34 KB). The
        program chooses by what the machine has.
      threads: whether a session may use more than the thread that calls it (10 KB).
      copts: how to optimise.
      **kwargs: as of any rule (visibility, tags).
    """
    if bool(models) == (header != None):
        fail("selective_runtime(name = '%s'): expected either models or a header" % name)
    for instruction_set in instruction_sets:
        if instruction_set not in _INSTRUCTION_SETS:
            fail("selective_runtime(name = '%s'): found instruction set '%s', expected %s" %
                 (name, instruction_set, " or ".join(_INSTRUCTION_SETS)))
    if models:
        ops_to_register(
            name = name + "_ops",
            models = models,
        )
        header = ":%s_ops" % name
    native.genrule(
        name = name + "_header_file",
        srcs = [header],
        outs = [name + "_header/ops_to_register.h"],
        cmd = "cp $< $@",
    )
    cc_library(
        name = name + "_header",
        hdrs = [":%s_header_file" % name],
        strip_include_prefix = name + "_header",
    )
    _selected_kernels(
        name = name + "_kernels",
        header = ":%s_header_file" % name,
        kernels = _label("//runtime_check:kernel_sources"),
    )
    cc_library(
        name = name,
        srcs = [
            ":%s_kernels" % name,
            _label("//graph:runtime_sources"),
            _label("//io/formats:runtime_sources"),
            _label("//runtime_check:runtime_sources"),
            _label("//selective:sources"),
        ],
        copts = copts + _COPTS,
        defines = ["SELECTIVE_REGISTRATION"] + [
            "PERMAFROST_WITHOUT_" + instruction_set.upper()
            for instruction_set in _INSTRUCTION_SETS
            if instruction_set not in instruction_sets
        ] + ([] if threads else ["PERMAFROST_WITHOUT_THREADS"]),
        linkopts = [
            "-Wl,--gc-sections",
            "-pthread",
        ],
        deps = [
            ":%s_header" % name,
            _label("//graph:headers"),
            _label("//io/formats:headers"),
            _label("//runtime_check:headers"),
            _label("//selective:headers"),
        ],
        **kwargs
    )
