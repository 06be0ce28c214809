#!/usr/bin/env bash
# Runs sandbox_test.py from the folder that has the tools and the models.
set -euo pipefail
PYTHONDONTWRITEBYTECODE=1 exec python3 tests/cli/sandbox_test.py
