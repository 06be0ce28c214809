// Elementwise operations, named as in NameOf(LoopOp): functions of x and z, and of the numbers a and b of the operation.

#define STEP(name, expression) \
  static inline float op_##name(float x, float z, float a, float b) { return expression; }

static inline float sigmoid_of(float x) {
  const float e = exp(-fabs(x));
  return (x < 0 ? e : 1.0f) / (1.0f + e);
}

static inline float hard_gate(float x) {
  const float shifted = x + 3.0f;
  return shifted < 0 ? 0.0f : (shifted > 6.0f ? 6.0f : shifted);
}

STEP(copy, x)
STEP(relu, x < 0 ? 0.0f : x)
STEP(clip, x < a ? a : (x > b ? b : x))
STEP(leaky_relu, x < 0 ? a * x : x)
STEP(elu, x < 0 ? a * expm1(x) : x)
STEP(sigmoid, sigmoid_of(x))
STEP(tanh, tanh(x))
STEP(exp, exp(x))
STEP(abs, fabs(x))
STEP(neg, -x)
STEP(square, x * x)
STEP(cube, x * x * x)
STEP(sqrt, sqrt(x))
STEP(rsqrt, 1.0f / sqrt(x))
STEP(reciprocal, 1.0f / x)
STEP(hard_swish, x * hard_gate(x) * (1.0f / 6.0f))
STEP(swish, x * sigmoid_of(x))
STEP(erf, erf(x))
STEP(erfc, erfc(x))
STEP(gelu, 0.5f * x * erfc(-0.70710678118654752f * x))
STEP(gelu_tanh, 0.5f * x * (1.0f + tanh(0.79788456080286536f * (x + 0.044715f * x * x * x))))
STEP(affine, a * x + b)
STEP(add, x + z)
STEP(sub, x - z)
STEP(mul, x * z)
STEP(div, x / z)
STEP(max, (x > z || x != x) ? x : z)
STEP(min, (x < z || x != x) ? x : z)
STEP(squared_difference, (x - z) * (x - z))
STEP(prelu, x < 0 ? z * x : x)
