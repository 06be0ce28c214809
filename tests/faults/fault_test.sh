#!/usr/bin/env bash
# Runs fault_test.py from the folder that has the tools and the models.
set -euo pipefail
PYTHONDONTWRITEBYTECODE=1 exec python3 tests/faults/fault_test.py
