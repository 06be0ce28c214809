#!/usr/bin/env bash
# Runs one file of tests with the package as Bazel has built it.
#
#   run_test.sh FILE [LIBRARY]   LIBRARY: is loaded before all others
set -euo pipefail
export PYTHONPATH="$PWD/python:$PWD/tests/python" PYTHONDONTWRITEBYTECODE=1

# An extension with a sanitizer requires the sanitizer's runtime from the start of the process.
sanitizer=$(ldd python/permafrost/_native.so | awk '/lib[at]san/ { print $3 }')
if [ -n "$sanitizer" ]; then
  case $1 in
    # Such a wheel is never installed, and the memory of the sanitizer must not be measured.
    endurance_test.py | wheel_test.py) echo "skipped: built with a sanitizer"; exit 0 ;;
  esac
  export LD_PRELOAD="$sanitizer $(ldd python/permafrost/_native.so | awk '/libstdc/ { print $3 }')"
  # The interpreter releases some memory only at exit.
  export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
  export TSAN_OPTIONS="${TSAN_OPTIONS:+$TSAN_OPTIONS:}suppressions=$PWD/tests/python/tsan_suppressions.txt"
fi
if [ -n "${2:-}" ]; then export LD_PRELOAD="${LD_PRELOAD:+$LD_PRELOAD }$PWD/$2"; fi
exec /usr/bin/python3 "tests/python/$1"
