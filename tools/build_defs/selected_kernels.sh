#!/bin/sh
# Writes one file for each source file of kernels that a selective build needs. The file includes the source, and names
# its ops so that only their types are compiled.
#   selected_kernels.sh ops_to_register.h OUTPUT_FOLDER FILE...
# FILE: the sources of the runtime, those of kernels among them, and their headers.
#
# A source that defines kernels is needed if the header lists one of their ops. A source without kernels is needed if a
# needed file includes the header of the same name, or if there is no such header. Sources other than those of kernels
# are always needed.
set -eu
header=$1 folder=$2
shift 2
mkdir -p "$folder"
awk -v folder="$folder" '
  # The path of a file as #include writes it.
  function include_path(file) {
    sub(/^(.*\/)?runtime_check\//, "runtime_check/", file)
    return file
  }

  function need(path) {
    if (path in path_exists && !(path in needed)) {
      needed[path] = 1
      queue[++queue_end] = path
    }
  }

  FNR == 1 {
    path = include_path(FILENAME)
    is_list = FILENAME == ARGV[1]
    if (!is_list) {
      paths[++num_paths] = path
      path_exists[path] = 1
    }
  }

  # The strings in kOps, however the header is laid out.
  is_list && / kOps\[\]/ { in_ops = 1 }
  is_list && in_ops {
    for (line = $0; match(line, /"[^"]*"/); line = substr(line, RSTART + RLENGTH)) {
      listed[substr(line, RSTART, RLENGTH)] = 1
    }
    if (/};/) in_ops = 0
  }
  is_list { next }

  /^#include "/ { includes[path] = includes[path] " " substr($2, 2, length($2) - 2) }
  /^DEFINE_KERNEL\(/ {
    op = $0
    sub(/^DEFINE_KERNEL\(/, "\"", op)
    sub(/\).*/, "\"", op)
    if (path in ops) ops[path] = ops[path] ", " op
    else ops[path] = op
    if (op in listed) defines_listed[path] = 1
  }

  END {
    for (i = 1; i <= num_paths; i++) {
      path = paths[i]
      if (path !~ /\.cc$/) continue
      own_header = substr(path, 1, length(path) - 3) ".h"
      if (path !~ /^runtime_check\/kernels\// || path in defines_listed ||
          !(path in ops) && !(own_header in path_exists)) {
        need(path)
      }
    }
    for (at = 1; at <= queue_end; at++) {
      path = queue[at]
      if (path ~ /\.h$/) need(substr(path, 1, length(path) - 2) ".cc")
      count = split(includes[path], included, " ")
      for (i = 1; i <= count; i++) need(included[i])
      if (path !~ /^runtime_check\/kernels\/.*\.cc$/) continue
      name = path
      sub(/.*\//, "", name)
      output = folder "/" name
      print "// Part of a selective build; see tools/build_defs/selected_kernels.sh." >output
      if (path in ops) print "#define PERMAFROST_OPS_OF_THIS_FILE " ops[path] >output
      print "#include \"" path "\"" >output
      close(output)
    }
  }
' "$header" "$@"
