#!/usr/bin/env bash
# Runs hostile_limits_test.py from the folder that has the tools and the models.
set -euo pipefail
PYTHONDONTWRITEBYTECODE=1 exec python3 tests/cli/hostile_limits_test.py
