#!/usr/bin/env bash
# Runs module_test.py in the folder of the test's files.
set -euo pipefail
exec python3 tests/install/module_test.py
