#!/usr/bin/env bash
# Runs guide_test.py in the folder of the test's files.
set -euo pipefail
exec python3 tests/embedding/guide_test.py
