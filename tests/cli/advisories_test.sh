#!/usr/bin/env bash
# Runs advisories_test.py from the folder that has the tools.
set -euo pipefail
PYTHONDONTWRITEBYTECODE=1 exec python3 tests/cli/advisories_test.py
