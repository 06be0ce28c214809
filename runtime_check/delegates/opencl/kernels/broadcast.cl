// BROADCAST_OP of two operands that are broadcast to the result in any way. A work item computes one element.

// Table: number of dimensions, then the size of each and its strides in a and b.
__kernel void broadcast(HEADER, IN(a), IN(b), OUT(y)) {
  BEGIN;
  LOAD(a);
  LOAD(b);
  STORE(y);
  int rest = item, i = 0, j = 0;
  for (int d = s[0] - 1; d >= 0; --d) {
    __global const int *dimension = s + 1 + 3 * d;
    const int index = rest % dimension[0];
    rest /= dimension[0];
    i += index * dimension[1];
    j += index * dimension[2];
  }
  y[item] = BROADCAST_OP(a[i], b[j], 0.0f, 0.0f);
}
