#!/usr/bin/env bash
# Runs layering_test.py over the sources that it lies beside.
set -euo pipefail
exec python3 "$(dirname "$0")/layering_test.py"
