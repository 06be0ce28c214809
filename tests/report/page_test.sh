#!/usr/bin/env bash
# Runs page_test.py from the folder that has the tools and the model.
set -euo pipefail
PYTHONPATH="$PWD/tests/report" PYTHONDONTWRITEBYTECODE=1 exec python3 tests/report/page_test.py
