#!/usr/bin/env bash
# Runs layering_test.py on the sources of its checkout.
set -euo pipefail
exec python3 "$(dirname "$0")/layering_test.py"
