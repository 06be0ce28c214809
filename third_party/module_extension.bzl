"""The repositories of repositories.bzl for MODULE.bazel. Not loaded by a workspace without modules."""

load("@bazel_tools//tools/build_defs/repo:local.bzl", "new_local_repository")
load(":repositories.bzl", "LIBRARIES", "NO_FILES", "permafrost_tools")

def _libraries_impl(module_ctx):
    checkout = str(module_ctx.path(Label("//:MODULE.bazel")).dirname)
    for name, folder in LIBRARIES.items():
        new_local_repository(
            name = name,
            build_file = Label("//third_party:%s.BUILD" % name),
            path = folder or checkout + "/" + NO_FILES,
        )
    permafrost_tools()

libraries = module_extension(implementation = _libraries_impl)
