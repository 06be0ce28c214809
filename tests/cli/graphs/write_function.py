"""Writes a GraphDef to standard output with a function whose node has its attributes in another order than text has."""
import sys


def field(number, payload):
    return bytes([number << 3 | 2, len(payload)]) + payload


def attr(key):
    return field(5, field(1, key) + field(2, b'\x18\x01'))


body = field(3, field(1, b'n') + field(2, b'NoOp') + attr(b'_b') + attr(b'_a'))
function = field(1, field(1, field(1, b'f')) + body)
sys.stdout.buffer.write(field(1, field(1, b'x') + field(2, b'NoOp')) + field(2, function))
