// Tests that every encoding of a tensor decodes to the elements listed in its case file.
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "graph/dtype.h"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/graphdef.h"
#include "io/formats/graphdef_text.h"
#include "tests/shared_models.h"

namespace permafrost {
namespace {

template <typename T>
std::string ElementText(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return absl::StrCat(ToFloat(value));
  } else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    return absl::StrCat("(", value.real(), ",", value.imag(), ")");
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? "1" : "0";
  } else if constexpr (std::is_floating_point_v<T>) {
    return absl::StrCat(value);
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else {
    return std::to_string(value.value);
  }
}

std::string Elements(const absl::StatusOr<Tensor>& tensor) {
  if (!tensor.ok()) return absl::IsInvalidArgument(tensor.status()) ? "not readable" : tensor.status().ToString();
  std::string text;
  const auto add = [&](const std::string& element) { absl::StrAppend(&text, text.empty() ? "" : " ", element); };
  if (tensor->dtype() == DType::kString) {
    for (const std::string& element : tensor->strings()) add(absl::StrCat("'", absl::CEscape(element), "'"));
  }
  DispatchOn<float, double, int32_t, uint8_t, int16_t, int8_t, std::complex<float>, int64_t, bool, QInt8, QUint8,
             QInt32, BFloat16, QInt16, QUint16, uint16_t, std::complex<double>, Half, uint32_t, uint64_t>(
      tensor->dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        const UnalignedSpan<T> elements = tensor->elements<T>();
        for (size_t i = 0; i < elements.size(); ++i) add(ElementText<T>(elements[i]));
      });
  return text;
}

void ExpectElements(const Graph& graph) {
  for (const Node* node = graph.first(); node != nullptr; node = node->next()) {
    const absl::StatusOr<Tensor> tensor = node->FindAttr("value")->AsTensor();
    EXPECT_EQ(Elements(tensor), *node->FindAttr("expected")->AsString()) << node->Describe();
    if (!tensor.ok()) continue;
    EXPECT_EQ(tensor->dtype(), *node->FindAttr("dtype")->AsType()) << node->Describe();
  }
}

TEST(Encodings, DecodeToTheExpectedElements) {
  const std::string text = *RealFileSystem().ReadFile(DataFile("tests/formats/cases/encodings.pbtxt"));
  const absl::StatusOr<std::unique_ptr<Graph>> graph = ReadGraphDefText(text);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ((*graph)->num_nodes(), 30u);
  ExpectElements(**graph);

  // Tensors created by passes are written as tensor_content and read again.
  for (Node* node = (*graph)->first(); node != nullptr; node = node->next()) {
    const absl::StatusOr<Tensor> tensor = node->FindAttr("value")->AsTensor();
    if (tensor.ok()) node->SetAttr("value", AttrValue::OfTensor(*tensor));
  }
  StringSink sink;
  ASSERT_TRUE(WriteGraphDef(**graph, &sink).ok());
  const absl::StatusOr<std::unique_ptr<Graph>> again = ReadGraphDef(sink.text(), nullptr);
  ASSERT_TRUE(again.ok()) << again.status();
  ExpectElements(**again);
}

}  // namespace
}  // namespace permafrost
