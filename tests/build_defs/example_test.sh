#!/usr/bin/env bash
# Runs example_test.py of the tested checkout with the tools that it is given.
set -euo pipefail
exec python3 "$(dirname "$0")/example_test.py" "$@"
