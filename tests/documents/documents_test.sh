#!/usr/bin/env bash
# Runs documents_test.py over the documents of the workspace. The argument is the program with all tools.
set -euo pipefail
exec python3 "$(dirname "$0")/documents_test.py" "$1"
