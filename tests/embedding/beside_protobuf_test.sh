#!/usr/bin/env bash
# See beside_protobuf_test.py.
set -euo pipefail
exec /usr/bin/python3 tests/embedding/beside_protobuf_test.py "$@"
