"""Writes bad/bad-package-*.pbmm, invalid packages. The expected error of each is in the .error file next to it.

    python3 tests/formats/make_bad_packages.py
"""

import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from protobuf_wire import field  # noqa: E402

PREFIX = b'memmapped_package://'


def entry(name, offset, length):
    return field(1, (field(1, offset) if offset else b'') + field(2, name) + (field(3, length) if length else b''))


def graph(dtype=1, dims=(3,), region=PREFIX + b'w', op=b'ImmutableConst'):
    shape = b''.join(field(2, field(1, dim)) for dim in dims)
    attrs = {
        b'dtype': field(6, dtype),
        b'memory_region_name': field(2, region),
        b'shape': field(7, shape),
    }
    node = field(1, b'w') + field(2, op)
    for key, value in attrs.items():
        node += field(5, field(1, key) + field(2, value))
    return field(1, node)


WEIGHTS = struct.pack('<3f', 1, 2, 3)


def package(content, entries, directory_at=None):
    directory = b''.join(entries)
    at = len(content) if directory_at is None else directory_at
    return content + directory + struct.pack('<Q', at)


def usual(graph_bytes=None, weights=WEIGHTS, before=b''):
    graph_bytes = graph() if graph_bytes is None else graph_bytes
    content = before + weights + graph_bytes
    return content, [
        entry(PREFIX + b'w', len(before), len(weights)),
        entry(PREFIX + b'.', len(before) + len(weights), len(graph_bytes)),
    ]


def files():
    content, entries = usual()
    size = len(content)
    graph_at = len(WEIGHTS)
    good = package(content, entries)
    yield 'length-beyond', package(content, [entries[0], entry(PREFIX + b'.', graph_at, size)])
    yield 'length-overflow', package(content, [entries[0], entry(PREFIX + b'.', graph_at, 2**64 - 1)])
    yield 'offset-beyond', package(content, [entries[0], entry(PREFIX + b'.', size, 1)])
    yield 'overlap', package(content, [entry(PREFIX + b'w', 0, graph_at + 1), entries[1]])
    yield 'order', package(content, [entries[1], entries[0]])
    yield 'same-offset', package(content, [entries[0], entry(PREFIX + b'.', 0, 4)])
    yield 'same-name', package(content, [entries[0], entry(PREFIX + b'w', graph_at, size - graph_at)])
    yield 'no-name', package(content, entries[:1] + [entry(b'', graph_at, 1)])
    yield 'no-graph', package(WEIGHTS, entries[:1])
    yield 'field-beyond', package(content, [entries[0], entries[1][:-3]])
    yield 'cut-in-directory', good[:-20]
    yield 'misaligned', package(*usual(before=b'\0' * 4))
    yield 'too-short', package(*usual(graph(dims=(4,))))
    yield 'huge-shape', package(*usual(graph(dims=(2**40, 2**40))))
    yield 'unknown-shape', package(*usual(graph(dims=(2**64 - 1,))))
    yield 'text-tensor', package(*usual(graph(dtype=7)))
    yield 'missing-region', package(*usual(graph(region=PREFIX + b'v')))
    yield 'bad-graph', package(*usual(graph()[:-1]))


folder = pathlib.Path(__file__).parent / 'bad'
for name, content in files():
    (folder / f'bad-package-{name}.pbmm').write_bytes(content)
