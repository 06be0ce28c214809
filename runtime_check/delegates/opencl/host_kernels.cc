// Includes the kernel files, with the few words of OpenCL C that they use defined in C++.
#include "runtime_check/delegates/opencl/host_kernels.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <string>

#include "runtime_check/delegates/onednn/loops.h"

namespace permafrost {
namespace opencl {
namespace {

// Used only for names: words of OpenCL C are no reserved names of C++.
namespace kernels {

using std::exp;
using std::fabs;
using std::max;
using std::min;
using std::sqrt;
using uchar = unsigned char;

struct float4 {
  float x = 0, y = 0, z = 0, w = 0;
  float4(float all) : x(all), y(all), z(all), w(all) {}  // NOLINT: implicit, as in OpenCL C.
  float4(float a, float b, float c, float d) : x(a), y(b), z(c), w(d) {}
  float4& operator+=(const float4& other) {
    x += other.x;
    y += other.y;
    z += other.z;
    w += other.w;
    return *this;
  }
  friend float4 operator*(const float4& a, const float4& b) { return {a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w}; }
};

float4 vload4(int64_t index, const float* from) {
  from += index * 4;
  return {from[0], from[1], from[2], from[3]};
}

void vstore4(const float4& value, int64_t index, float* to) {
  to += index * 4;
  to[0] = value.x;
  to[1] = value.y;
  to[2] = value.z;
  to[3] = value.w;
}

int as_int(float value) {
  int word;
  std::memcpy(&word, &value, sizeof(word));
  return word;
}

float as_float(int word) {
  float value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

// The work item, and the launch with the buffers of its arguments. A check runs on one thread.
struct Work {
  int64_t item = 0;
  const Launch* launch = nullptr;
  const std::vector<uint32_t>* constants = nullptr;
  absl::Span<char* const> buffers;
  std::vector<float> results;  // Of steps.
};
thread_local Work work;

int64_t get_global_id(int) { return work.item; }

const float* Element(const LaunchStep::Operand& operand, int64_t row, int64_t channel) {
  const Launch& launch = *work.launch;
  int64_t index = 0;
  switch (operand.meeting) {
    case onednn::Meeting::kSame:
      index = row * launch.channels + channel;
      break;
    case onednn::Meeting::kPerChannel:
      index = channel;
      break;
    case onednn::Meeting::kScalar:
      break;
    case onednn::Meeting::kPerImage:
      index = row / launch.rows_per_image * launch.channels + channel;
      break;
    case onednn::Meeting::kPerRow:
      index = row;
      break;
  }
  if (operand.from == LaunchStep::Operand::From::kConstants) {
    return reinterpret_cast<const float*>(work.constants->data()) + operand.position + index;
  }
  const char* const buffer = work.buffers[launch.first_operand + static_cast<size_t>(operand.number)];
  return reinterpret_cast<const float*>(buffer) + index;
}

// Computes the steps of the launch. Returns the last result.
float RunSteps(float value, int64_t row, int64_t channel) {
  const auto operand = [&](const LaunchStep::Operand& of) {
    if (of.from == LaunchStep::Operand::From::kNone) return 0.0f;
    if (of.from != LaunchStep::Operand::From::kResult) return *Element(of, row, channel);
    return of.number < 0 ? value : work.results[static_cast<size_t>(of.number)];
  };
  work.results.clear();
  float result = value;
  for (const LaunchStep& step : work.launch->steps) {
    const float x = operand(step.x), z = operand(step.z);
    onednn::RunLoop(step.op, 1, &x, &z, step.alpha, step.beta, &result);
    work.results.push_back(result);
  }
  return result;
}

float BroadcastOp(float x, float z, float, float) {
  float result = 0;
  onednn::RunLoop(work.launch->steps[0].op, 1, &x, &z, 0, 0, &result);
  return result;
}

#define __kernel
#define __global
#define FLOAT4(a, b, c, d) float4(a, b, c, d)
#define FINISH_PARAMS
#define FINISH(value, row, channel) RunSteps(value, row, channel)
#define BROADCAST_OP BroadcastOp
// common.cl comes first.
// clang-format off
#include "runtime_check/delegates/opencl/kernels/common.cl"
#include "runtime_check/delegates/opencl/kernels/broadcast.cl"
#include "runtime_check/delegates/opencl/kernels/convolution.cl"
#include "runtime_check/delegates/opencl/kernels/copies.cl"
#include "runtime_check/delegates/opencl/kernels/depthwise.cl"
#include "runtime_check/delegates/opencl/kernels/matrix.cl"
#include "runtime_check/delegates/opencl/kernels/pool.cl"
#include "runtime_check/delegates/opencl/kernels/product.cl"
#include "runtime_check/delegates/opencl/kernels/rows.cl"
#include "runtime_check/delegates/opencl/kernels/transposed_convolution.cl"
// clang-format on

}  // namespace kernels

// The shapes of parameter lists, behind constants, table and items.
using Unary = void (*)(const float*, int, int, const float*, int, float*, int);
using Binary = void (*)(const float*, int, int, const float*, int, const float*, int, float*, int);

struct Row {
  absl::string_view kernel;
  Unary unary;
  Binary binary;
};

constexpr Row kRows[] = {
    {"average_pool", &kernels::average_pool, nullptr},
    {"broadcast", nullptr, &kernels::broadcast},
    {"convolution", &kernels::convolution, nullptr},
    {"copy_runs", &kernels::copy_runs, nullptr},
    {"depthwise", &kernels::depthwise, nullptr},
    {"matrix", &kernels::matrix, nullptr},
    {"max_pool", &kernels::max_pool, nullptr},
    {"normalize_rows", &kernels::normalize_rows, nullptr},
    {"pad", &kernels::pad, nullptr},
    {"product", nullptr, &kernels::product},
    {"reduce", &kernels::reduce, nullptr},
    {"resize_bilinear", &kernels::resize_bilinear, nullptr},
    {"resize_nearest", &kernels::resize_nearest, nullptr},
    {"softmax", &kernels::softmax, nullptr},
    {"transposed_convolution", &kernels::transposed_convolution, nullptr},
    {"view", &kernels::view, nullptr},
};

// The elements of an argument, and its position in them.
template <typename T>
const T* Input(const std::vector<uint32_t>& constants, const Argument& argument, const char* buffer) {
  const char* const from = argument.storage == kConstants ? reinterpret_cast<const char*>(constants.data()) : buffer;
  return reinterpret_cast<const T*>(from);
}

void RunElementwise(const Launch& launch, absl::Span<char* const> buffers) {
  const int64_t item = kernels::work.item;
  kernels::RunSteps(0, item / launch.channels, item % launch.channels);
  const size_t first_output = launch.arguments.size() - launch.results.size();
  for (size_t i = 0; i < launch.results.size(); ++i) {
    reinterpret_cast<float*>(buffers[first_output + i])[item] =
        kernels::work.results[static_cast<size_t>(launch.results[i])];
  }
}

}  // namespace

bool RunOnHost(const Launch& launch, const std::vector<uint32_t>& constants, absl::Span<char* const> buffers,
               absl::Span<const int64_t> items) {
  kernels::work.launch = &launch;
  kernels::work.constants = &constants;
  kernels::work.buffers = buffers;
  const auto* const words = reinterpret_cast<const float*>(constants.data());
  const auto table = static_cast<int>(launch.table), end = static_cast<int>(launch.items);
  const std::vector<Argument>& arguments = launch.arguments;
  const auto at = [&](size_t i) { return static_cast<int>(arguments[i].number); };
  const auto floats = [&](size_t i) { return Input<float>(constants, arguments[i], buffers[i]); };
  const auto output = [&](size_t i) { return reinterpret_cast<float*>(buffers[i]); };
  const auto* const row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& known) { return known.kernel == launch.kernel; });
  for (const int64_t item : items) {
    kernels::work.item = item;
    if (row != std::end(kRows)) {
      if (row->unary != nullptr) {
        row->unary(words, table, end, floats(0), at(0), output(1), at(1));
      } else {
        row->binary(words, table, end, floats(0), at(0), floats(1), at(1), output(2), at(2));
      }
    } else if (launch.kernel == "elementwise") {
      RunElementwise(launch, buffers);
    } else if (launch.kernel == "choose") {
      kernels::choose(words, table, end, Input<kernels::uchar>(constants, arguments[0], buffers[0]), at(0), floats(1),
                      at(1), floats(2), at(2), output(3), at(3));
    } else if (launch.kernel == "masked_softmax") {
      kernels::masked_softmax(words, table, end, floats(0), at(0), output(1), at(1), floats(2), at(2),
                              Input<kernels::uchar>(constants, arguments[3], buffers[3]), at(3));
    } else if (launch.kernel == "gather_int") {
      kernels::gather_int(words, table, end, floats(0), at(0), Input<int>(constants, arguments[1], buffers[1]), at(1),
                          output(2), at(2));
    } else if (launch.kernel == "gather_long") {
      kernels::gather_long(words, table, end, floats(0), at(0), Input<long>(constants, arguments[1], buffers[1]), at(1),
                           output(2), at(2));
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace opencl
}  // namespace permafrost
