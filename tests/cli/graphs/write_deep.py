"""Writes a GraphDef to standard output with one attribute in which messages are nested 100,000 deep."""
import sys


def varint(number):
    encoded = bytearray()
    while number >= 128:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes(encoded + bytes([number]))


def field(number, payload):
    return varint(number << 3 | 2) + varint(len(payload)) + payload


# From the inside out: a function (10) of an AttrValue holds an entry (2) of a map, whose value (2) is an AttrValue.
heads, size = [], 0
for depth in range(100_000):
    head = varint((10, 2, 2)[depth % 3] << 3 | 2) + varint(size)
    heads.append(head)
    size += len(head)
value = b''.join(reversed(heads))
attr = field(5, field(1, b'f') + field(2, value))
sys.stdout.buffer.write(field(1, field(1, b'n') + field(2, b'Q') + attr))
