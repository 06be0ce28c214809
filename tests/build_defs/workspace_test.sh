#!/usr/bin/env bash
# Runs workspace_test.py, which lies in the checkout that it is about.
set -euo pipefail
exec python3 "$(dirname "$0")/workspace_test.py"
