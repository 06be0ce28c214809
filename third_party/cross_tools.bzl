"""Whether the machine has what builds and runs programs for another processor.

`load("@cross_tools//:found.bzl", "HAS_AARCH64")`: the distribution's cross compiler and the emulator, both of which
script/install_deps installs. Targets that need them are "manual" where they are missing, so that all others build. What
was found counts until Bazel's server starts anew.
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
