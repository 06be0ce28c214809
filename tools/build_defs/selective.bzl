"""A runtime with only the kernels that given models need.

    load("@permafrost//tools/build_defs:selective.bzl", "selective_runtime")

    selective_runtime(
        name = "runtime",
        models = ["model.pb"],
    )

    cc_binary(
        name = "app",
        srcs = ["app.c"],         # Includes permafrost_runtime.h.
        deps = [":runtime"],      # Or ":runtime_shared": libruntime.so.1, beside the program.
    )

With program_files, the models are planned when they are built, and the runtime only executes: about half the size. The app
opens the program files that `:runtime_programs` holds, in place of the models.

The sources of the runtime are compiled again for each such target, so a build may contain several of them and the full runtime.
A configuration transition would share the targets of the sources instead, but apply to every dependency: the tools that generate
the header and the libraries of the app would be built again for each set of models.

A program can contain only one runtime, because all of them define the same names.
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")
load(":models.bzl", "ops_to_register", "program_files_of")

_HERE = Label("//tools/build_defs:BUILD.bazel")

def _label(name):
    return str(_HERE.relative(name))

def _selected_kernels_impl(ctx):
    # Bazel compiles a directory with the options for C++ (--cxxopt) if the name of the directory has a suffix of C++.
    sources = ctx.actions.declare_directory(ctx.label.name + ".cc")
    headers = depset(transitive = [dep[CcInfo].compilation_context.headers for dep in ctx.attr.headers])
    files = ctx.files.srcs + [file for file in headers.to_list() if "runtime_check/" in file.path and file.extension == "h"]
    arguments = ctx.actions.args()
    arguments.add(ctx.file.header)
    arguments.add(sources.path)
    arguments.add_all(files)
    ctx.actions.run(
        executable = ctx.file._script,
        arguments = [arguments],
        inputs = [ctx.file.header] + files,
        outputs = [sources],
        mnemonic = "SelectKernels",
        progress_message = "Selecting the kernels of %s" % ctx.label,
    )
    return [DefaultInfo(files = depset([sources]))]

# A directory with the sources of kernels that a selective runtime compiles.
_selected_kernels = rule(
    implementation = _selected_kernels_impl,
    attrs = {
        "header": attr.label(allow_single_file = [".h"], mandatory = True),
        "headers": attr.label_list(providers = [CcInfo], mandatory = True),
        "srcs": attr.label_list(allow_files = [".c", ".cc", ".h"], mandatory = True),
        "_script": attr.label(
            default = Label("//tools/build_defs:selected_kernels.sh"),
            allow_single_file = True,
            cfg = "host",
        ),
    },
)

# Options for small code. The math options are safe because errno and floating-point exceptions are not read.
_COPTS = [
    "-DNDEBUG",
    "-ffunction-sections",
    "-fdata-sections",
    "-fvisibility=hidden",
    "-fno-rtti",
    "-fno-stack-protector",
    "-fomit-frame-pointer",
    "-U_FORTIFY_SOURCE",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-w",
]

# The runtime itself throws no exceptions.
_WITHOUT_EXCEPTIONS = [
    "-fno-exceptions",
    "-fno-asynchronous-unwind-tables",
    "-fno-unwind-tables",
]

# Options of the runtime for programs that should be small. With link-time optimisation, the options of a program also apply
# to the inline functions that it shares with the runtime: stack protectors and frame pointers cost 2.4 KB.
SMALL_PROGRAM_COPTS = _COPTS + _WITHOUT_EXCEPTIONS

# The available delegates and their options: optimised for speed, with exceptions, which their libraries throw.
_DELEGATES = {
    "onednn": [
        "-O3",
        "-fopenmp",
    ],
    "xnnpack": ["-O3"],
}

# Linker options of a program or a shared library without exceptions that depends only on the C library.
C_LIBRARY_ALONE = [
    "-nodefaultlibs",
    "-Wl,--as-needed",
    "-Wl,--start-group",
    "-l:libstdc++.a",
    "-l:libgcc.a",
    "-l:libgcc_eh.a",
    "-lc",
    "-lm",
    "-Wl,--end-group",
]

# Instruction sets for which inner loops are compiled only on request.
_INSTRUCTION_SETS = ["avx2", "avx512"]

def _check_among(name, kind, values, known):
    for value in values:
        if value not in known:
            fail("selective_runtime(name = '%s'): found %s '%s', expected %s" % (name, kind, value, " or ".join(known)))

def selective_runtime(
        name,
        models = [],
        header = None,
        delegates = [],
        instruction_sets = ["avx2"],
        threads = True,
        packed_weights = False,
        program_files = False,
        copts = ["-Os"],
        **kwargs):
    """A runtime with the kernels that the models need, the readers of frozen graphs and packages, and the C interface.

    Defines <name>, a cc_library with permafrost_runtime.h, and lib<name>.so.1, which exports only the functions of that header,
    with <name>_shared, the cc_library to depend on for it.

    Code that the models do not need is not compiled: kernels by op and by element type, op schemas, control flow, functions.
    Loading a model that needs more fails, with an error that names the op, the type, the node and the command that generates
    the header.

    Args:
      name: of the library.
      models: labels of model files of any format that can be read; a session runs frozen graphs (GraphDef).
      header: label of an ops_to_register.h instead, for models that are not in the build.
      delegates: "onednn" or "xnnpack" or both, which are linked with their libraries, for sessions that request them.
      instruction_sets: of x86-64, beyond SSE2, for which inner loops are compiled: "avx2" (15 KB), "avx512" (34 KB). The
        program selects by the processor.
      threads: whether a session may use threads other than the caller's (10 KB).
      packed_weights: whether a session uses packed weights in a package (--pack_for), instead of packing them at the start.
      program_files: whether the models become program files (convert_model --to=program), the only format that the runtime
        then reads: graphs that are planned for one set of input shapes. <name>_programs has a file <model>.program for
        each model. A header must be made from program files. Needs models of which no shape depends on values, without
        control flow, functions and variables; excludes delegates and packed_weights.
      copts: options for optimisation.
      **kwargs: as for any rule (visibility, tags). All parts have the tags.
    """
    if bool(models) == (header != None):
        fail("selective_runtime(name = '%s'): expected either models or a header" % name)
    if program_files and (delegates or packed_weights):
        fail("selective_runtime(name = '%s'): program_files excludes delegates and packed_weights" % name)
    _check_among(name, "instruction set", instruction_sets, _INSTRUCTION_SETS)
    _check_among(name, "delegate", delegates, _DELEGATES.keys())
    if program_files:
        core_sources = [
            _label("//graph:program_sources"),
            _label("//io:runtime_sources"),
            _label("//runtime_check:program_sources"),
            _label("//selective:sources"),
        ]
    else:
        core_sources = [
            _label("//graph:runtime_sources"),
            _label("//io:runtime_sources"),
            _label("//io/formats:runtime_sources"),
            _label("//runtime_check:runtime_sources"),
            _label("//selective:sources"),
        ]
    if delegates or packed_weights:
        core_sources.append(_label("//graph:base/content_hash.cc"))
    interface_sources = [_label("//embedding:program_sources" if program_files else "//embedding:runtime_sources")]
    if delegates:
        interface_sources += [
            _label("//embedding:all_delegates.cc"),
            _label("//runtime_check:delegate_headers"),
            _label("//runtime_check:delegate_sources"),
        ]
    else:
        interface_sources.append(_label("//embedding:no_delegates.cc"))
    if packed_weights:
        core_sources += [
            _label("//io/formats:packed_weights_sources"),
            _label("//runtime_check/packing:sources"),
        ]
        interface_sources.append(_label("//embedding:packed_package.cc"))
    delegate_sources = {
        delegate: _label("//runtime_check/delegates/%s:sources" % delegate)
        for delegate in delegates
    }
    delegate_headers = {
        delegate: _label("//runtime_check/delegates/%s:headers" % delegate)
        for delegate in delegates
    }

    # With tags = ["manual"], `bazel build //...` builds none of the parts.
    tags = kwargs.get("tags")
    if models and program_files:
        models = program_files_of(
            name = name + "_programs",
            models = models,
            tags = tags,
            visibility = kwargs.get("visibility"),
        )
    if models:
        ops_to_register(
            name = name + "_ops",
            models = models,
            tags = tags,
        )
        header = ":%s_ops" % name
    native.genrule(
        name = name + "_header_file",
        srcs = [header],
        outs = [name + "_header/ops_to_register.h"],
        cmd = "cp $< $@",
        tags = tags,
    )
    cc_library(
        name = name + "_header",
        hdrs = [":%s_header_file" % name],
        strip_include_prefix = name + "_header",
        tags = tags,
    )
    _selected_kernels(
        name = name + "_kernels",
        srcs = [_label("//runtime_check:kernel_sources")] + core_sources + interface_sources + delegate_sources.values(),
        header = ":%s_header_file" % name,
        headers = [_label("//runtime_check:headers")] + delegate_headers.values(),
        tags = tags,
    )
    cc_library(
        name = name + "_headers",
        defines = ["SELECTIVE_REGISTRATION"] + [
            "PERMAFROST_WITHOUT_" + instruction_set.upper()
            for instruction_set in _INSTRUCTION_SETS
            if instruction_set not in instruction_sets
        ] + (["PERMAFROST_DELEGATES=" + ",".join(delegates)] if delegates else []) +
                  ([] if threads else ["PERMAFROST_WITHOUT_THREADS"]) +
                  (["PERMAFROST_PACKED_WEIGHTS"] if packed_weights else []) +
                  (["PERMAFROST_PROGRAM_FILES"] if program_files else []),
        linkopts = [
            "-Wl,--gc-sections",
            "-pthread",
        ],
        tags = tags,
        deps = [
            ":%s_header" % name,
            _label("//embedding:internal_headers"),
            _label("//graph:headers"),
            _label("//io:headers"),
            _label("//io/formats:headers"),
            _label("//runtime_check:headers"),
            _label("//runtime_check/packing:headers"),
            _label("//selective:headers"),
        ],
    )
    cc_library(
        name = name + "_core",
        srcs = [":%s_kernels" % name] + core_sources,
        copts = copts + _COPTS + _WITHOUT_EXCEPTIONS,
        tags = tags,
        deps = [":%s_headers" % name],
    )
    for delegate in delegates:
        cc_library(
            name = name + "_" + delegate,
            srcs = [delegate_sources[delegate]],
            copts = copts + _COPTS + _DELEGATES[delegate],
            tags = tags,
            deps = [
                ":%s_core" % name,
                delegate_headers[delegate],
            ],
        )
    cc_library(
        name = name + "_c_interface",
        srcs = interface_sources,
        copts = copts + _COPTS + _WITHOUT_EXCEPTIONS,
        tags = tags,
        deps = [":%s_core" % name] + [":%s_%s" % (name, delegate) for delegate in delegates],
        # A shared library exports functions that it does not call; a program drops unused functions.
        alwayslink = True,
    )

    # Has no sources, since a library with sources would claim the name lib<name>.so.
    cc_library(
        name = name,
        deps = [":%s_c_interface" % name],
        **kwargs
    )

    # Built only on request: position-dependent code (copts) suits programs but not shared libraries.
    exports = _label("//embedding:exports.lds")
    cc_binary(
        name = "lib%s.so.1" % name,
        additional_linker_inputs = [exports],
        linkopts = [
            "-Wl,--version-script,$(location %s)" % exports,
            "-Wl,-soname,lib%s.so.1" % name,
            "-Wl,--no-undefined",
        ] + ([] if delegates else C_LIBRARY_ALONE),
        linkshared = True,
        tags = ["manual"],
        deps = [":" + name] + ([] if delegates else [_label("//selective:no_exceptions")]),
    )
    cc_library(
        name = name + "_shared",
        srcs = [":lib%s.so.1" % name],
        tags = ["manual"],
        visibility = kwargs.get("visibility"),
        deps = [_label("//embedding:headers")],
    )
