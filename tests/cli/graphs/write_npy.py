"""Writes an NPY file to standard output: write_npy.py ROWS,COLUMNS NUMBER..."""
import struct
import sys

shape = tuple(int(size) for size in sys.argv[1].split(','))
numbers = [float(number) for number in sys.argv[2:]]
header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b'\n'
sys.stdout.buffer.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header)
sys.stdout.buffer.write(struct.pack(f'<{len(numbers)}f', *numbers))
