#!/usr/bin/env bash
# Runs interrupt_test.py from the folder that has the tools and the models.
set -euo pipefail
PYTHONDONTWRITEBYTECODE=1 exec python3 tests/cli/interrupt_test.py
