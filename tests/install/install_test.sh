#!/usr/bin/env bash
# Runs install_test.py in the folder of the test's files.
set -euo pipefail
exec python3 tests/install/install_test.py
