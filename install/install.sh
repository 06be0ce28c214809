#!/usr/bin/env bash
# Installs the tools, the runtime and its CMake package.
#
#   bazel run //:install -- --prefix=/usr/local
#
#   --prefix=DIR   the folder for bin, include, lib and share. Required.
#   --libdir=DIR   the folder for libraries, relative to the prefix (default: lib).
#   --dry_run      list the files without installing them.
#
# DESTDIR, if set, is prepended to the prefix, for building packages. Each file is replaced atomically.
set -euo pipefail

fail() {
  echo "install: $*" >&2
  exit 1
}

prefix=
libdir=lib
dry_run=false
for argument in "$@"; do
  case $argument in
    --prefix=?*) prefix=${argument#--prefix=} ;;
    --libdir=?*) libdir=${argument#--libdir=} ;;
    --dry_run) dry_run=true ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) fail "unknown argument '$argument', expected --prefix=DIR" ;;
  esac
done
[ -n "$prefix" ] || fail "no --prefix=DIR: where is it to be installed?"
# Relative paths refer to the folder in which `bazel run` was called.
case $prefix in
  '~') prefix=$HOME ;;
  '~/'*) prefix=$HOME/${prefix#'~/'} ;;
  /*) ;;
  *) prefix=${BUILD_WORKING_DIRECTORY:-$PWD}/$prefix ;;
esac
root=${DESTDIR:-}$prefix
# `bazel run` starts the script in the runfiles folder. Otherwise the files are next to the script.
if [ ! -x tools/permafrost ]; then
  cd "$0.runfiles/permafrost" 2>/dev/null ||
    fail "found no files to install; start it with: bazel run //:install -- --prefix=DIR"
fi

temporary=
trap '[ -z "$temporary" ] || rm -f "$temporary"' EXIT

# put MODE FROM TO: installs a file under a temporary name and renames it when it is complete. FROM may be "-" for the
# standard input.
count=0
put() {
  local mode=$1 from=$2 to=$root/$3
  count=$((count + 1))
  if $dry_run; then
    [ "$from" != - ] || cat >/dev/null
    echo "$to"
    return
  fi
  mkdir -p "$(dirname "$to")" || fail "cannot create the folder of '$to'"
  temporary=$(mktemp "$to.XXXXXX") || fail "cannot write into the folder of '$to'"
  if [ "$from" = - ]; then cat >"$temporary"; else cat "$from" >"$temporary"; fi || fail "cannot write '$to'"
  chmod "$mode" "$temporary"
  mv -f "$temporary" "$to" || fail "cannot write '$to'"
  temporary=
}

link() {
  if $dry_run; then
    echo "$root/$2 -> $1"
    return
  fi
  ln -sfn "$1" "$root/$2" || fail "cannot make the link '$root/$2'"
}

put 755 tools/permafrost bin/permafrost
# Installs each tool under its own name: a script that calls the common binary with the tool's name.
# A line of the help is a tool's name, or its short name with the name: "transform   (or transform_graph)".
subcommands=$(tools/permafrost --help |
  sed -n -e 's/^  \([a-z_]\{1,\}\)$/\1/p' -e 's/^  [a-z]\{1,\} *(or \([a-z_]\{1,\}\))$/\1/p')
[ -n "$subcommands" ] || fail "found no tools in the help of permafrost"
for tool in $subcommands; do
  put 755 - "bin/$tool" <<SCRIPT
#!/bin/sh
exec "\$(dirname "\$(readlink -f "\$0")")/permafrost" $tool "\$@"
SCRIPT
done

for header in embedding/permafrost_runtime.h embedding/permafrost_runtime.hpp \
    runtime_check/delegates/external/permafrost_delegate.h runtime_check/delegates/external/permafrost_custom_op.h; do
  put 644 "$header" "include/$(basename "$header")"
done

package=$libdir/cmake/Permafrost
version=$(tools/permafrost --version)
version=${version##* }
for library in permafrost_runtime permafrost_runtime_small; do
  put 755 "embedding/lib$library.so.1" "$libdir/lib$library.so.1"
  link "lib$library.so.1" "$libdir/lib$library.so"
  put 644 "embedding/lib$library.a" "$libdir/lib$library.a"
  put 644 "embedding/$library.linkopts" "$package/$library.linkopts"
  put 644 - "$libdir/pkgconfig/$library.pc" <<PC
prefix=$prefix
libdir=\${prefix}/$libdir
includedir=\${prefix}/include

Name: $library
Description: Runtime for frozen TensorFlow models
Version: $version
Libs: -L\${libdir} -l$library
Cflags: -I\${includedir}
PC
done
# Found there by the runtime if the folder is one that the dynamic linker searches.
bundle=libpermafrost_delegates.so.1
put 755 runtime_check/delegates/bundle/$bundle "$libdir/$bundle"

IFS=. read -r major minor _ <<<"$version"
put 644 install/PermafrostConfig.cmake "$package/PermafrostConfig.cmake"
put 644 install/PermafrostModels.cmake "$package/PermafrostModels.cmake"
sed -e "s/@VERSION@/$version/;s/@MAJOR@/$major/;s/@MINOR@/$minor/" install/PermafrostConfigVersion.cmake.in |
  put 644 - "$package/PermafrostConfigVersion.cmake"
put 644 LICENSE share/doc/permafrost/LICENSE

if $dry_run; then did='would be installed'; else did=installed; fi
echo "install: $count files $did under '$root'"
