#!/usr/bin/env bash
# Tests that C programs with a selective runtime, linked statically and as shared libraries, give results identical to
# those of the whole runtime, in each way of opening the model. A delegate gives nearly the same results, and only in a
# build that contains it.
#   embedded_test.sh FULL SELECTIVE SHARED XNNPACK ONEDNN PACKED LIBRARY PACKER
set -euo pipefail
full=$1 selective=$2 shared=$3 xnnpack=$4 onednn=$5 packed=$6 library=$7 packer=$8
model=tests/models/digits/digits.pb images=tests/models/digits/eval_images.npy
out=$TEST_TMPDIR

fail() { echo "embedded_test: $*" >&2; exit 1; }

"$full" $model $images path >"$out/expected"
[ "$(stat -c %s "$out/expected")" = $((540 * 40)) ] || fail "found $(stat -c %s "$out/expected") bytes of outputs"
for program in "$selective" "$shared" "$xnnpack" "$onednn"; do
  for from in path descriptor memory; do
    "$program" $model $images $from >"$out/found"
    cmp "$out/expected" "$out/found" || fail "$program, opened by $from, gives other results"
  done
done

# Packed weights in a package are used by builds that can read them, and do not change the results.
"$packer" --in_graph=$model --out_graph="$out/packed.pbmm" --pack_for=reference --inputs=$images --outputs=probabilities
for program in "$full" "$packed"; do
  "$program" "$out/packed.pbmm" $images path >"$out/found" 2>"$out/told"
  cmp "$out/expected" "$out/found" || fail "$program gives other results with packed weights"
  grep -q '^packed bytes: [1-9]' "$out/told" || fail "$program does not use packed weights: $(cat "$out/told")"
done
"$selective" "$out/packed.pbmm" $images path >"$out/found" 2>"$out/told"
cmp "$out/expected" "$out/found" || fail "$selective gives other results with packed weights in the package"
grep -q '^packed bytes: 0$' "$out/told" || fail "$selective says: $(cat "$out/told")"

# Missing parts of a build are reported.
for program in "$selective" "$shared"; do
  if "$program" $model $images path xnnpack 2>"$out/error" >/dev/null; then fail "$program knows xnnpack"; fi
  grep -q "no delegate 'xnnpack'" "$out/error" || fail "$(cat "$out/error")"
done
if "$xnnpack" $model $images path onednn 2>"$out/error" >/dev/null; then fail "$xnnpack knows onednn"; fi
grep -q "no delegate 'onednn'; there are reference, xnnpack" "$out/error" || fail "$(cat "$out/error")"
printf 'age-encryption.org/v1\nsecret' >"$out/encrypted"
if "$selective" "$out/encrypted" $images path 2>"$out/error" >/dev/null; then fail "an encrypted model opens"; fi
grep -q "neither compressed nor encrypted" "$out/error" || fail "$(cat "$out/error")"

"$xnnpack" $model $images memory xnnpack >"$out/xnnpack"
"$onednn" $model $images memory onednn >"$out/onednn"
python3 - "$out/expected" "$out/xnnpack" "$out/onednn" <<'END'
import struct, sys
expected, *founds = (struct.unpack('<5400f', open(path, 'rb').read()) for path in sys.argv[1:])
for path, found in zip(sys.argv[2:], founds):
    worst = max(abs(a - b) for a, b in zip(expected, found))
    assert worst <= 1e-5, f'{path} differs by {worst}'
END

# The library exports exactly the interface, and depends only on the C library.
nm -D --defined-only "$library" | awk '{print $3}' | sed 's/@.*//' | grep -v '^PERMAFROST_1$' | sort >"$out/exported"
sed -n 's/^PF_EXPORT .*[ *]\(pf_[a-z_]*\)(.*/\1/p' embedding/permafrost_runtime.h | sort >"$out/declared"
[ "$(wc -l <"$out/declared")" -ge 25 ] || fail "found $(wc -l <"$out/declared") functions in the header"
diff "$out/declared" "$out/exported" || fail "exports differ from the header"
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v -e '^libc\.' -e '^libm\.' -e '^ld-' || true)
[ -z "$needed" ] || fail "the library needs $needed"
