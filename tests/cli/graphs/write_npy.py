"""Writes an NPY file to standard output: write_npy.py ROWS,COLUMNS NUMBER... or write_npy.py --text ROWS,COLUMNS WORD..."""
import struct
import sys

is_text = sys.argv[1] == '--text'
shape, values = sys.argv[1 + is_text], sys.argv[2 + is_text:]
if is_text:
    width = max(len(word) for word in values)
    descr, data = f'<U{width}', b''.join(word.ljust(width, '\0').encode('utf-32-le') for word in values)
else:
    descr, data = '<f4', struct.pack(f'<{len(values)}f', *map(float, values))
shape = tuple(int(size) for size in shape.split(','))
header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b'\n'
sys.stdout.buffer.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header + data)
