#!/bin/sh
# What the rules run gives the same bytes wherever and whenever it runs: twice, in folders of unequal names and depth,
# with unequal environments and processors.
#   reproducible_test.sh TRANSFORM_GRAPH PRINT_HEADER CONVERTER MODEL
set -eu
here=$PWD
transform=$here/$1 header=$here/$2 converter=$here/$3 model=$here/$4

build() {
  mkdir -p "$1"
  cp "$model" "$1/model.pb"
  cd "$1"
  "$transform" --in_graph=model.pb --out_graph=small.pb --inputs=image --outputs=probabilities \
    --transforms='strip_unused_nodes fold_constants(ignore_errors=true) fold_batch_norms quantize_weights' >/dev/null
  for style in permafrost tensorflow; do
    "$header" --style=$style --graphs=small.pb >$style.h
  done
  "$converter" --in_graph=small.pb --out_graph=small.package >/dev/null
  cd "$here"
}

first=$TEST_TMPDIR/a second=$TEST_TMPDIR/another/place/of/the/same
build "$first"
sleep 1 # Detects outputs that contain the time.
export LC_ALL=C.UTF-8 TZ=Asia/Tokyo HOME=/nowhere USER=somebody TMPDIR="$first"
taskset -p -c "$(taskset -p -c $$ | sed 's/.*: \([0-9]*\).*/\1/')" $$ >/dev/null || true
build "$second"
for file in small.pb permafrost.h tensorflow.h small.package; do
  [ -s "$first/$file" ] || {
    echo "$file was not made"
    exit 1
  }
  cmp "$first/$file" "$second/$file"
done
