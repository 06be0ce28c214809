"""C++ classes from .proto files, with the distribution's protoc."""

def proto_cc_library(name, srcs, visibility = None):
    """Declares a cc_library of the classes that protoc generates for srcs.

    Include the headers by their path from the top folder: "io/formats/proto/graphdef.pb.h".

    Args:
      name: the library's name.
      srcs: .proto files of this package; they may import each other by their path from the top folder.
      visibility: as everywhere.
    """
    stems = [src[:-len(".proto")] for src in srcs]
    headers = [stem + ".pb.h" for stem in stems]
    sources = [stem + ".pb.cc" for stem in stems]
    native.genrule(
        name = name + "_protoc",
        srcs = srcs,
        outs = headers + sources,
        cmd = "protoc --proto_path=. --cpp_out=$(GENDIR) $(SRCS)",
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
