#!/usr/bin/env python3
"""Prints the size of programs in memory: code and data as laid out by the linker, without zero-initialised data.

    bazel build //tests/bench/size/...
    tests/bench/size/size_table.py bazel-bin/tests/bench/size/{digits,mobilenet_v2,inception_v3,full}

Reads the segments that are loaded from the ELF file itself, so that neither symbols nor section headers count.
"""

import argparse
import json
import pathlib
import struct
import sys

LOAD = 1
EXECUTABLE = 1


def segments(path):
    """Yields (is executable, bytes in the file, bytes in memory) of each loaded segment. ValueError (path) for no ELF64."""
    content = pathlib.Path(path).read_bytes()
    if content[:5] != b'\x7fELF\x02' or len(content) < 64:
        raise ValueError(f"'{path}' is no 64-bit ELF file")
    start, = struct.unpack_from('<Q', content, 32)
    size, count = struct.unpack_from('<HH', content, 54)
    if start + size * count > len(content):
        raise ValueError(f"'{path}' is cut short")
    for i in range(count):
        kind, flags, _, _, _, in_file, in_memory, _ = struct.unpack_from('<IIQQQQQQ', content, start + i * size)
        if kind == LOAD:
            yield bool(flags & EXECUTABLE), in_file, in_memory


def measure(path):
    parts = list(segments(path))
    return {
        'program': pathlib.Path(path).name,
        'code_and_data': sum(in_file for _, in_file, _ in parts),
        'zeroed': sum(in_memory - in_file for _, in_file, in_memory in parts),
        'file': pathlib.Path(path).stat().st_size,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('programs', nargs='+')
    parser.add_argument('--json', action='store_true')
    arguments = parser.parse_args()
    try:
        rows = [measure(path) for path in arguments.programs]
    except (OSError, ValueError) as error:
        print(f'size_table: {error}', file=sys.stderr)
        return 255
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    print(f'{"program":24}{"code and data":>16}{"zeroed":>12}{"file":>12}')
    for row in rows:
        print(f'{row["program"]:24}{row["code_and_data"]:>16,}{row["zeroed"]:>12,}{row["file"]:>12,}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
