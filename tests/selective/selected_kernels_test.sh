#!/bin/sh
# See selected_kernels_test.py.
exec python3 "$(dirname "$0")/selected_kernels_test.py" "$@"
