"""Merges a cc_library and its dependencies into one static library, for builds without Bazel."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _objects_of(library):
    for objects in [library.pic_objects, library.objects]:
        if objects:
            return objects
    return [archive for archive in [library.pic_static_library, library.static_library] if archive][:1]

def _merged_archive_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    linking = ctx.attr.library[CcInfo].linking_context
    objects = []
    flags = []
    for linker_input in linking.linker_inputs.to_list():
        for library in linker_input.libraries:
            objects += _objects_of(library)
        flags += linker_input.user_link_flags
    list_of_objects = ctx.actions.declare_file(ctx.label.name + ".objects")
    ctx.actions.write(list_of_objects, "\n".join([file.path for file in objects]) + "\n")
    linkopts = ctx.actions.declare_file(ctx.label.name + ".linkopts")
    ctx.actions.write(linkopts, "\n".join(flags) + "\n")

    # Visible beside the interface: the functions that oneDNN and XNNPACK are to call, see
    # runtime_check/delegates/onednn/openmp.h and runtime_check/delegates/xnnpack/pools.h.
    #
    # Section groups are dissolved. Otherwise another copy of an inline function in the program could replace one whose
    # name is no longer visible.
    archive = ctx.actions.declare_file("lib%s.a" % ctx.label.name)
    whole = ctx.actions.declare_file(ctx.label.name + ".o")
    ctx.actions.run_shell(
        inputs = depset(objects + [list_of_objects], transitive = [toolchain.all_files]),
        outputs = [archive, whole],
        arguments = [
            toolchain.ld_executable,
            toolchain.objcopy_executable,
            toolchain.ar_executable,
            list_of_objects.path,
            whole.path,
            archive.path,
        ],
        command = """set -eu
# Gold, which gcc may use as the linker, cannot dissolve groups.
ld=$1; case $ld in *.gold) ld=${ld%.gold} ;; esac
"$ld" -r --force-group-allocation -o "$5" "@$4"
"$2" --wildcard --keep-global-symbol='pf_*' --keep-global-symbol='GOMP_*' \
  --keep-global-symbol=omp_get_max_threads --keep-global-symbol=omp_get_num_threads \
  --keep-global-symbol=omp_get_thread_num --keep-global-symbol=omp_in_parallel \
  --keep-global-symbol=pthreadpool_get_threads_count --keep-global-symbol='pthreadpool_parallelize_*' "$5"
"$3" rcsD "$6" "$5"
""",
        mnemonic = "MergeArchive",
        progress_message = "Merging " + archive.short_path,
        use_default_shell_env = True,
    )
    outputs = [archive, linkopts]
    return [DefaultInfo(files = depset(outputs), runfiles = ctx.runfiles(files = outputs))]

merged_archive = rule(
    implementation = _merged_archive_impl,
    doc = "lib<name>.a, in which only pf_* and what the delegates' libraries call is visible, and <name>.linkopts with the further flags of the linker, one per line.",
    attrs = {
        "library": attr.label(mandatory = True, providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = Label("@bazel_tools//tools/cpp:current_cc_toolchain")),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
