"""Programs for another processor among the targets of an ordinary build."""

def _for_aarch64_impl(_settings, _attr):
    # The settings of --config=aarch64, without options for the compiler of the host such as sanitizers.
    return {
        "//command_line_option:compiler": "gcc",
        "//command_line_option:copt": [],
        "//command_line_option:cpu": "aarch64",
        "//command_line_option:crosstool_top": "//third_party/toolchains/aarch64",
        "//command_line_option:host_crosstool_top": "@bazel_tools//tools/cpp:toolchain",
        "//command_line_option:linkopt": [],
        "//command_line_option:per_file_copt": [],
    }

_for_aarch64 = transition(
    implementation = _for_aarch64_impl,
    inputs = [],
    outputs = [
        "//command_line_option:compiler",
        "//command_line_option:copt",
        "//command_line_option:cpu",
        "//command_line_option:crosstool_top",
        "//command_line_option:host_crosstool_top",
        "//command_line_option:linkopt",
        "//command_line_option:per_file_copt",
    ],
)

def _aarch64_program_impl(ctx):
    program = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.symlink(output = program, target_file = ctx.files.program[0], is_executable = True)
    return [DefaultInfo(files = depset([program]), executable = program)]

aarch64_program = rule(
    implementation = _aarch64_program_impl,
    doc = """The cc_binary `program`, built for 64-bit ARM whatever the rest is built for.

What the program depends on is built for that processor too, tools that make its sources included: keep rules that run
tools (ops_to_register, optimized_model) out of its dependencies.""",
    executable = True,
    attrs = {
        "program": attr.label(cfg = _for_aarch64, mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
