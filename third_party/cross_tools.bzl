"""Detects the tools that build and run programs for another processor.

`load("@cross_tools//:found.bzl", "HAS_AARCH64")` is True if the distribution's cross compiler and the emulator are
installed (script/install_deps installs both). Where they are missing, the targets that need them are tagged "manual", so
that all others can be built. The result is cached until Bazel's server restarts.
"""

_AARCH64_TOOLS = ["aarch64-linux-gnu-g++", "qemu-aarch64"]

def _cross_tools_impl(repository_ctx):
    found = all([repository_ctx.which(tool) != None for tool in _AARCH64_TOOLS])
    repository_ctx.file("BUILD.bazel")
    repository_ctx.file("found.bzl", "HAS_AARCH64 = %s\n" % found)

cross_tools = repository_rule(
    implementation = _cross_tools_impl,
    configure = True,
    environ = ["PATH"],
    local = True,
)
