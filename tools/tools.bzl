"""Declares the tools: their libraries, their programs, and the list of all of them.

The dictionary in BUILD.bazel is the only list of the tools. What offers all of them follows from it: the permafrost
program, manual pages and completions, the Python package with its console scripts, what //:install puts into bin, and the
programs that the tests run.
"""

load("@rules_cc//cc:defs.bzl", "cc_binary", "cc_library")

# Code that calls the tools as functions.
_USERS = [
    "//python:__subpackages__",
    "//script:__subpackages__",
    "//tests:__subpackages__",
    "//tools:__subpackages__",
]

_ALL_TOOLS = """// The list of the tools, generated from tools/BUILD.bazel.
#include "tools/all_tools.h"

namespace permafrost {{

{declarations}

std::vector<Tool> AllTools() {{
  return {{{calls}}};
}}

}}  // namespace permafrost
"""

def _generated_source_impl(ctx):
    ctx.actions.write(ctx.outputs.out, ctx.attr.content)

_generated_source = rule(
    implementation = _generated_source_impl,
    attrs = {
        "content": attr.string(mandatory = True),
        "out": attr.output(mandatory = True),
    },
)

def _function(tool):
    """The C++ function that returns the definition of a tool: ConvertModelTool for convert_model."""
    return "".join([word.capitalize() for word in tool.split("_")]) + "Tool"

def declare_tools(tools):
    """Declares a library, <tool>_lib, and a program, <tool>, for each tool, and what holds all of them.

    <tool>.cc defines `Tool <Tool>Tool()`. <tool>.h is for a tool that other code calls as a function.

    The target :all_tools is the list for C++ (all_tools.h), :programs are the files of all programs.

    Args:
      tools: a dictionary of names, sorted, with what each tool depends on besides the graph, the command line and Abseil.
    """
    for name, deps in tools.items():
        cc_library(
            name = name + "_lib",
            srcs = [name + ".cc"],
            hdrs = native.glob([name + ".h"]),
            visibility = _USERS,
            deps = deps + [
                "//graph",
                "//tools/command_line",
                "@absl",
            ],
        )
        cc_binary(
            name = name,
            srcs = ["tool_main.cc"],
            local_defines = ["PERMAFROST_TOOL=" + _function(name)],
            visibility = ["//visibility:public"],
            deps = [
                ":%s_lib" % name,
                "//tools/command_line",
                "//tools/command_line:main_guard",
            ],
        )
    _generated_source(
        name = "all_tools_source",
        out = "all_tools.cc",
        content = _ALL_TOOLS.format(
            declarations = "\n".join(["Tool %s();" % _function(name) for name in tools]),
            calls = ", ".join([_function(name) + "()" for name in tools]),
        ),
        visibility = ["//visibility:private"],
    )
    cc_library(
        name = "all_tools",
        srcs = ["all_tools.cc"],
        hdrs = ["all_tools.h"],
        visibility = _USERS,
        deps = [":%s_lib" % name for name in tools] + ["//tools/command_line"],
    )
    native.filegroup(
        name = "programs",
        srcs = [":" + name for name in tools] + [":permafrost"],
        visibility = _USERS,
    )
