#!/usr/bin/env bash
# Runs model_check_test.py from the folder that has the script, the tools and the model.
set -euo pipefail
PYTHONDONTWRITEBYTECODE=1 exec python3 tests/ci/model_check_test.py
