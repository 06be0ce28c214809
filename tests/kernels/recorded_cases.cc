// Reads the recorded cases from tests/kernels/vectors.
#include "tests/kernels/recorded_cases.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "graph/ops/op_schema.h"
#include "io/formats/graphdef_text.h"

namespace permafrost {
namespace {

constexpr char kFolder[] = "tests/kernels/vectors";

// Tolerance given by the number of fraction bits, relative to max(1, |expected|).
double ToleranceOf(DType dtype) {
  if (dtype == DType::kHalf) return 1e-3;
  if (dtype == DType::kBFloat16) return 1.6e-2;  // TensorFlow rounds each step of a formula.
  if (dtype == DType::kDouble || dtype == DType::kComplex128) return 1e-12;
  return 1e-5;
}

// Returns the elements as pairs of real and imaginary part. Returns false for types that are not numbers.
bool Numbers(const Tensor& tensor, std::vector<double>* numbers) {
  const auto read = [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      const T value = tensor.elements<T>()[i];
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
        numbers->push_back(ToFloat(value));
      } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
        numbers->push_back(value.real());
        numbers->push_back(value.imag());
      } else {
        numbers->push_back(value);
      }
    }
  };
  return DispatchOn<float, double, Half, BFloat16, std::complex<float>, std::complex<double>>(tensor.dtype(), read);
}

}  // namespace

absl::Status CompareWithRecorded(const Tensor& actual, const Tensor& expected, double slack) {
  if (actual.dtype() != expected.dtype()) {
    return absl::InternalError(
        absl::StrCat("type ", DTypeName(actual.dtype()), ", expected ", DTypeName(expected.dtype())));
  }
  if (actual.shape() != expected.shape()) {
    return absl::InternalError(
        absl::StrCat("shape ", actual.shape().ToString(), ", expected ", expected.shape().ToString()));
  }
  if (actual.dtype() == DType::kString) {
    return actual.strings() == expected.strings() ? absl::OkStatus() : absl::InternalError("other strings");
  }
  std::vector<double> a, e;
  if (!Numbers(actual, &a)) {
    const size_t size = SizeOf(actual.dtype());
    for (size_t i = 0; i < actual.bytes().size(); i += size) {
      if (actual.bytes().substr(i, size) != expected.bytes().substr(i, size)) {
        return absl::InternalError(
            absl::StrCat("element ", i / size, " differs (", static_cast<int>(static_cast<int8_t>(actual.bytes()[i])),
                         " and ", static_cast<int>(static_cast<int8_t>(expected.bytes()[i])), " in its first byte)"));
      }
    }
    return absl::OkStatus();
  }
  Numbers(expected, &e);
  const double tolerance = slack * ToleranceOf(expected.dtype());
  for (size_t i = 0; i < e.size(); ++i) {
    const bool agree = std::isnan(e[i])   ? std::isnan(a[i])
                       : std::isinf(e[i]) ? a[i] == e[i]
                                          : std::abs(a[i] - e[i]) <= tolerance * std::max(1.0, std::abs(e[i]));
    if (!agree) return absl::InternalError(absl::StrCat("element ", i, " is ", a[i], ", expected ", e[i]));
  }
  return absl::OkStatus();
}

std::vector<std::string> RecordedFamilies() {
  std::vector<std::string> families;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".pbtxt") families.push_back(entry.path().stem());
  }
  std::sort(families.begin(), families.end());
  return families;
}

absl::StatusOr<std::unique_ptr<Graph>> ReadRecordedFamily(const std::string& family) {
  const std::string path = absl::StrCat(kFolder, "/", family, ".pbtxt");
  std::ifstream file(path);
  if (!file.is_open()) return absl::NotFoundError(absl::StrCat("no file '", path, "'"));
  std::stringstream text;
  text << file.rdbuf();
  return ReadGraphDefText(text.str());
}

std::vector<const Node*> RecordedNodes(const Graph& family) {
  std::vector<const Node*> nodes;
  for (const Node* node : family.Nodes()) {
    if (node->op() != ops::kConst) nodes.push_back(node);
  }
  return nodes;
}

absl::StatusOr<RecordedCase> ReadRecordedCase(const Graph& family, const Node& node) {
  RecordedCase result;
  result.node = &node;
  for (int i = 0; i < node.num_data_inputs(); ++i) {
    PF_ASSIGN_OR_RETURN(const Tensor value, ConstValue(*node.input(i).node));
    PF_ASSIGN_OR_RETURN(result.inputs.emplace_back(), value.Aligned());
  }
  PF_ASSIGN_OR_RETURN(const std::vector<DType> types, OutputTypes(node));
  const std::string prefix(absl::StripSuffix(node.name(), "op"));
  for (size_t i = 0; i < types.size(); ++i) {
    std::optional<Tensor>& expected = result.expected.emplace_back();
    const Node* recorded = family.Find(absl::StrCat(prefix, "expected_", i));
    if (recorded == nullptr) continue;
    PF_ASSIGN_OR_RETURN(expected, ConstValue(*recorded));
  }
  return result;
}

}  // namespace permafrost
