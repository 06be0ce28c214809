#!/usr/bin/env bash
# The first image of the evaluation set is a seven.
set -euo pipefail
app=$(find -L "$TEST_SRCDIR" -name app -type f | head -1)
images=$(find -L "$TEST_SRCDIR" -name eval_images.npy | head -1)
# An NPY file of this kind begins with a header of 128 bytes.
answer=$(dd if="$images" bs=128 skip=1 count=2 2>/dev/null | "$app")
[ "${answer%% *}" = 7 ] || { echo "found '$answer', expected 7" >&2; exit 1; }
