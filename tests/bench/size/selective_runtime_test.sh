#!/bin/sh
# See selective_runtime_test.py.
exec python3 "$(dirname "$0")/selective_runtime_test.py" "$@"
