// Compares matrix products with sums in double precision, on odd sizes, for each instruction set of this machine.
#include "runtime_check/kernels/gemm.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "runtime_check/kernels/inner_loops.h"
#include "runtime_check/threads/thread_pool.h"

namespace permafrost {
namespace {

std::vector<float> Random(int64_t count, std::mt19937* generator) {
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(*generator);
  return values;
}

class GemmTest : public testing::TestWithParam<const InnerLoops*> {};

TEST_P(GemmTest, EqualsSumsInDoublePrecision) {
  const InnerLoops& loops = *GetParam();
  std::mt19937 generator(1);
  struct Size {
    int64_t rows, depth, columns;
  };
  // Depths around a block of 192; columns around one and two registers of each width.
  for (const Size& size : {Size{1, 1, 1}, Size{3, 5, 4}, Size{13, 191, 5}, Size{14, 192, 32}, Size{15, 193, 33},
                           Size{29, 7, 16}, Size{31, 400, 17}, Size{100, 30, 47}, Size{7, 1, 8}, Size{2, 577, 96},
                           Size{5, 0, 9}, Size{0, 3, 3}, Size{3, 3, 0}}) {
    const int64_t a_stride = size.depth + 3, c_stride = size.columns + 2;
    const std::vector<float> a = Random(size.rows * a_stride, &generator);
    const std::vector<float> b = Random(size.depth * size.columns, &generator);
    for (const bool transposed : {false, true}) {
      for (const int num_threads : {1, 3}) {
        const PackedShape shape{size.depth, size.columns};
        const absl::StatusOr<int64_t> packed_size = shape.Size(loops);
        ASSERT_TRUE(packed_size.ok()) << packed_size.status();
        std::vector<float> packed(*packed_size, NAN);
        Pack(loops, shape, b.data(), transposed ? 1 : size.columns, transposed ? size.depth : 1, packed.data());
        constexpr float kGuard = -77;
        std::vector<float> c(size.rows * c_stride, kGuard);
        ThreadPool threads(num_threads);
        ParallelMultiply(loops, threads, size.rows, shape, a.data(), a_stride, packed.data(), c.data(), c_stride);
        for (int64_t i = 0; i < size.rows; ++i) {
          for (int64_t j = 0; j < c_stride; ++j) {
            double sum = 0;
            for (int64_t k = 0; k < size.depth && j < size.columns; ++k) {
              sum +=
                  static_cast<double>(a[i * a_stride + k]) * b[transposed ? j * size.depth + k : k * size.columns + j];
            }
            const double expected = j < size.columns ? sum : kGuard;  // Elements beyond the columns are not written.
            ASSERT_NEAR(c[i * c_stride + j], expected, 1e-6 * (size.depth + 1))
                << loops.name << " " << size.rows << "x" << size.depth << "x" << size.columns << " at " << i << "," << j
                << ", " << num_threads << " threads";
          }
        }
      }
    }
  }
}

TEST_P(GemmTest, GivesTheSameBitsForAnyNumberOfThreads) {
  const InnerLoops& loops = *GetParam();
  std::mt19937 generator(2);
  const PackedShape shape{300, 70};
  const std::vector<float> a = Random(53 * 300, &generator), b = Random(300 * 70, &generator);
  std::vector<float> packed(*shape.Size(loops));
  Pack(loops, shape, b.data(), 70, 1, packed.data());
  std::vector<std::vector<float>> results;
  for (const int num_threads : {1, 2, 5}) {
    ThreadPool threads(num_threads);
    results.emplace_back(53 * 70);
    ParallelMultiply(loops, threads, 53, shape, a.data(), 300, packed.data(), results.back().data(), 70);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// Returns the distance from the exact function in units in the last place of the result.
template <typename F>
void ExpectWithinUlps(void (*loop)(int64_t, const float*, float*), F exact, double ulps) {
  for (int i = -4000; i <= 4000; ++i) {
    float x = i * 0.0215f, y = 0;
    loop(1, &x, &y);
    const double expected = exact(static_cast<double>(x));
    const double ulp = std::abs(std::nextafter(static_cast<float>(expected), INFINITY) - static_cast<float>(expected));
    ASSERT_LE(std::abs(y - expected), ulps * ulp) << x;
  }
}

TEST_P(GemmTest, TranscendentalFunctionsAreAccurate) {
  const InnerLoops& loops = *GetParam();
  ExpectWithinUlps(
      loops.exp, [](double x) { return std::exp(x); }, 2);
  ExpectWithinUlps(
      loops.sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 4);
  ExpectWithinUlps(
      loops.tanh, [](double x) { return std::tanh(x); }, 4);
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, GemmTest,
                         testing::ValuesIn(SupportedInnerLoops().begin(), SupportedInnerLoops().end()),
                         [](const auto& info) { return info.param->name; });

TEST(FloatBufferTest, RefusesWhatNoMemoryHolds) {
  EXPECT_FALSE(FloatBuffer::Allocate(int64_t{1} << 60).ok());
  EXPECT_FALSE(FloatBuffer::Allocate(int64_t{1} << 62).ok());
  EXPECT_FALSE((PackedShape{int64_t{1} << 40, int64_t{1} << 40}.Size(BestInnerLoops())).ok());
}

}  // namespace
}  // namespace permafrost
