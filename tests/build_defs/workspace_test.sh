#!/usr/bin/env bash
# Runs workspace_test.py of the tested checkout.
set -euo pipefail
exec python3 "$(dirname "$0")/workspace_test.py"
