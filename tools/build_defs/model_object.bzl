"""Models as parts of programs.

    load("@permafrost//tools/build_defs:model_object.bzl", "model_object")

    model_object(
        name = "digits",
        model = "digits.pb",
    )

    cc_binary(
        name = "app",
        srcs = ["app.c"],
        deps = [":digits", "@permafrost//embedding:small"],
    )

app.c then has

    #include "digits.h"

    pf_open_memory(digits, digits_size, NULL, NULL, NULL, &model, error, sizeof(error))

and the weights are used where they lie in the program: pages that no run touches are never read from the disk, and processes
of the same program share them.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@rules_cc//cc:defs.bzl", "cc_library")

_HERE = Label("//tools/build_defs:BUILD.bazel")

_CONVERTER = str(_HERE.relative("//tools:convert_graphdef_memmapped_format"))

# See //:host_tools.
_HOST_TOOLS = str(_HERE.relative("//:host_tools"))

# Valid for the assemblers of GCC and Clang and for other processors. A linker script can place the separate section.
_ASSEMBLY = """    .section .rodata.permafrost_model.{symbol},"a"
    .balign {alignment}
    .globl {symbol}
    .hidden {symbol}
    .type {symbol}, STT_OBJECT
{symbol}:
    .incbin "{path}"
.L{symbol}_end:
    .size {symbol}, .L{symbol}_end - {symbol}
    .balign 8
    .globl {symbol}_size
    .hidden {symbol}_size
    .type {symbol}_size, STT_OBJECT
    .size {symbol}_size, 8
{symbol}_size:
    .quad .L{symbol}_end - {symbol}
    .section .note.GNU-stack,""
"""

_HEADER = """/* The model {label}, as a part of the program. */
#ifndef PERMAFROST_MODEL_{guard}_H_
#define PERMAFROST_MODEL_{guard}_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* {size} bytes, at a multiple of {alignment}. */
extern const unsigned char {symbol}[];
extern const size_t {symbol}_size;

#ifdef __cplusplus
}}
#endif

#endif
"""

def _embedded_file_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    symbol = ctx.attr.symbol
    source = ctx.actions.declare_file(symbol + ".model.s")
    model = ctx.file.model
    ctx.actions.write(source, _ASSEMBLY.format(symbol = symbol, alignment = ctx.attr.alignment, path = model.path))
    compiled = ctx.actions.declare_file(symbol + ".model.o")
    ctx.actions.run(
        executable = toolchain.compiler_executable,
        arguments = ["-c", source.path, "-o", compiled.path],
        inputs = depset([source, model], transitive = [toolchain.all_files]),
        outputs = [compiled],
        mnemonic = "EmbedModel",
        progress_message = "Embedding " + model.short_path,
    )
    header = ctx.actions.declare_file("%s_include/%s.h" % (symbol, symbol))
    ctx.actions.write(header, _HEADER.format(
        label = str(ctx.attr.model.label),
        guard = symbol.upper(),
        size = symbol + "_size",
        alignment = ctx.attr.alignment,
        symbol = symbol,
    ))
    return [
        DefaultInfo(files = depset([compiled])),
        OutputGroupInfo(header = depset([header])),
    ]

_embedded_file = rule(
    implementation = _embedded_file_impl,
    attrs = {
        "alignment": attr.int(),
        "model": attr.label(allow_single_file = True, mandatory = True),
        "symbol": attr.string(mandatory = True),
        "_cc_toolchain": attr.label(default = Label("@bazel_tools//tools/cpp:current_cc_toolchain")),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def _is_identifier(name):
    first, rest = name[:1], name[1:]
    return (first.isalpha() or first == "_") and (not rest or rest.replace("_", "a").isalnum())

def model_object(name, model, in_place = True, flags = [], page_aligned = False, **kwargs):
    """A cc_library with the model as an object file, and a header <name>.h that declares <name> and <name>_size.

    Args:
      name: of the target and of the symbol: a name as C has them.
      model: label of a model of any format that can be read.
      in_place: turn the model into a memory-mapped package, whose tensors lie where kernels can use them as they are. With
        False the file goes in byte for byte: for one that is compressed or encrypted, which a runtime with all formats
        opens, or that is to be small.
      flags: more flags of convert_graphdef_memmapped_format.
      page_aligned: begin the model, and with in_place each tensor, on a page of its own, so that the system can drop and
        load tensors one by one.
      **kwargs: as of any rule (visibility, tags, testonly).
    """
    if not _is_identifier(name):
        fail("model_object(name = '%s'): the name is that of a symbol in C: letters, digits and '_'" % name)
    if flags and not in_place:
        fail("model_object(name = '%s'): flags are for the conversion, which in_place = False leaves out" % name)
    shared = {key: kwargs[key] for key in ["tags", "testonly", "compatible_with"] if key in kwargs}
    if in_place:
        native.genrule(
            name = name + "_package",
            srcs = [model] + select({_HOST_TOOLS: [], "//conditions:default": [_CONVERTER]}),
            tools = select({_HOST_TOOLS: [_CONVERTER], "//conditions:default": []}),
            outs = [name + ".pbmm"],
            cmd = "$(location {tool}) --in_graph=$(location {model}) --out_graph=$@ {flags} > /dev/null".format(
                tool = _CONVERTER,
                model = model,
                flags = " ".join(["'%s'" % flag for flag in flags + (["--page_aligned"] if page_aligned else [])]),
            ),
            visibility = ["//visibility:private"],
            **shared
        )
        model = name + ".pbmm"
    _embedded_file(
        name = name + "_object",
        model = model,
        symbol = name,
        alignment = 4096 if page_aligned else 64,
        visibility = ["//visibility:private"],
        **shared
    )
    native.filegroup(
        name = name + "_header",
        srcs = [":%s_object" % name],
        output_group = "header",
        visibility = ["//visibility:private"],
        **shared
    )
    cc_library(
        name = name,
        srcs = [":%s_object" % name],
        hdrs = [":%s_header" % name],
        strip_include_prefix = name + "_include",
        **kwargs
    )
