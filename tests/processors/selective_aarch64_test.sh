#!/bin/sh
# See selective_aarch64_test.py.
exec python3 "$(dirname "$0")/selective_aarch64_test.py" "$@"
