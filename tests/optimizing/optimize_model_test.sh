#!/usr/bin/env bash
# Runs optimize_model_test.py from the folder that has the tools and the models.
set -euo pipefail
PYTHONDONTWRITEBYTECODE=1 exec python3 tests/optimizing/optimize_model_test.py
