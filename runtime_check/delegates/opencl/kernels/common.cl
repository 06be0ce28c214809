// Macros that all kernels share. A kernel computes one or a few elements for each work item.
//
// All sizes are in a table of 32-bit words in the buffer of constants, at `at`. The first words of that buffer are 0, so
// that a pointer to them stands for padding.

#define HEADER __global const float *constants, const int at, const int items
#define IN(name) __global const float *name##_base, const int name##_at
#define OUT(name) __global float *name##_base, const int name##_at
#define BYTES_IN(name) __global const uchar *name##_base, const int name##_at

#ifndef FLOAT4
#define FLOAT4(a, b, c, d) ((float4)((a), (b), (c), (d)))
#endif

// Defines `item` and the table `s`. Work items past the end do nothing.
#define BEGIN                               \
  const int item = (int)get_global_id(0);   \
  if (item >= items) return;                \
  __global const int *s = (__global const int *)(constants + at)

#define LOAD(name) __global const float *name = name##_base + name##_at
#define LOAD_BYTES(name) __global const uchar *name = name##_base + name##_at
#define STORE(name) __global float *name = name##_base + name##_at

// Sums are computed in blocks of this many elements, so that rounding errors of long sums stay small.
#define SUM_BLOCK 64
