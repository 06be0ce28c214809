"""Generates C++ classes from .proto files with the distribution's protoc."""

def proto_cc_library(name, srcs, visibility = None):
    """Declares a cc_library of the classes that protoc generates for srcs.

    Headers are included by their path from the workspace root: "io/formats/proto/graphdef.pb.h".

    Args:
      name: name of the library.
      srcs: .proto files of this package; they import each other by their path from the workspace root.
      visibility: the usual attribute.
    """
    stems = [src[:-len(".proto")] for src in srcs]
    headers = [stem + ".pb.h" for stem in stems]
    sources = [stem + ".pb.cc" for stem in stems]

    # In a workspace that depends on this one, the files of this workspace are in a subfolder.
    repository = native.repository_name().lstrip("@")
    top = "external/" + repository if repository else "."
    native.genrule(
        name = name + "_protoc",
        srcs = srcs,
        outs = headers + sources,
        cmd = "protoc --proto_path={top} --cpp_out=$(GENDIR)/{top} $(SRCS)".format(top = top),
        message = "Generating C++ for",
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = sources,
        hdrs = headers,
        visibility = visibility,
        deps = ["@protobuf"],
    )
