#!/bin/sh
# Writes, for each source file of kernels, what a selective build compiles instead: the file itself, narrowed to the types
# of its own ops, or nothing where the header lists none of them. A file that defines no kernel serves others, and stays.
#   selected_kernels.sh ops_to_register.h OUTPUT_FOLDER FILE...
set -eu
header=$1 folder=$2
shift 2
# The names in kOps, one per line, however the header is laid out.
selected=$(sed -n '/ kOps\[\]/,/};/p' "$header" | grep -o '"[^"]*"' || true)
for file; do
  ops=$(sed -n 's/^DEFINE_KERNEL(\([A-Za-z0-9_]*\)).*/\1/p' "$file")
  listed='' wanted=no
  for op in $ops; do
    listed="$listed${listed:+, }\"$op\""
    if printf '%s\n' "$selected" | grep -qFx "\"$op\""; then wanted=yes; fi
  done
  include=${file#*/runtime_check/}
  case $file in
  runtime_check/*) include=${file#runtime_check/} ;;
  esac
  {
    echo "// A part of a selective build: see tools/build_defs/selected_kernels.sh."
    if [ -z "$ops" ]; then
      echo "#include \"runtime_check/$include\""
    elif [ $wanted = yes ]; then
      echo "#define PERMAFROST_OPS_OF_THIS_FILE $listed"
      echo "#include \"runtime_check/$include\""
    fi
  } >"$folder/$(basename "$file")"
done
