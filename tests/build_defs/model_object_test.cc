// Runs the bundled model in place, from the read-only data of this program.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "digits_as_it_is.h"
#include "digits_in_place.h"
#include "digits_on_pages.h"
#include "embedding/permafrost_runtime.hpp"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/npy.h"
#include "io/model_file.h"
#include "tests/shared_models.h"

namespace permafrost {
namespace {

struct Embedded {
  const char* name;
  const unsigned char* bytes;
  size_t size;
  uintptr_t alignment;
  bool is_package;
};

const Embedded kModels[] = {
    {"in place", digits_in_place, digits_in_place_size, 64, true},
    {"on pages", digits_on_pages, digits_on_pages_size, 4096, true},
    {"as it is", digits_as_it_is, digits_as_it_is_size, 64, false},
};

TEST(ModelObjectTest, IsTheModelAtAnAlignedAddress) {
  for (const Embedded& model : kModels) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(model.bytes) % model.alignment, 0u) << model.name;
    EXPECT_GT(model.size, 1'000'000u) << model.name;
  }
  const auto file = RealFileSystem().ReadFile(DataFile("tests/models/digits/digits.pb"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(absl::string_view(reinterpret_cast<const char*>(digits_as_it_is), digits_as_it_is_size), *file);
}

TEST(ModelObjectTest, CannotBeWritten) {
  for (const Embedded& model : kModels) {
    std::ifstream maps("/proc/self/maps");
    std::string line;
    bool is_found = false;
    while (std::getline(maps, line)) {
      uintptr_t begin = 0, end = 0;
      char permissions[5] = "";
      ASSERT_EQ(std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end, permissions), 3) << line;
      const auto address = reinterpret_cast<uintptr_t>(model.bytes);
      if (address < begin || address >= end) continue;
      is_found = true;
      EXPECT_EQ(std::string(permissions)[1], '-') << line;
    }
    EXPECT_TRUE(is_found) << model.name;
  }
}

TEST(ModelObjectTest, WeightsAreNotCopied) {
  for (const Embedded& model : kModels) {
    const absl::string_view bytes(reinterpret_cast<const char*>(model.bytes), model.size);
    const auto graph = ReadModel({bytes, nullptr});
    ASSERT_TRUE(graph.ok()) << graph.status();
    int num_large = 0, num_aligned = 0;
    for (const Node* node = (*graph)->first(); node != nullptr; node = node->next()) {
      const AttrValue* const attr = node->op() == ops::kConst ? node->FindAttr("value") : nullptr;
      if (attr == nullptr) continue;
      const auto tensor = attr->AsTensor();
      ASSERT_TRUE(tensor.ok()) << tensor.status();
      if (tensor->bytes().size() < 10'000) continue;  // Smaller tensors stay in the graph of a package.
      ++num_large;
      num_aligned += tensor->IsAligned();
      EXPECT_GE(tensor->bytes().data(), bytes.data()) << node->name();
      EXPECT_LE(tensor->bytes().data() + tensor->bytes().size(), bytes.data() + bytes.size()) << node->name();
    }
    EXPECT_GT(num_large, 3) << model.name;
    if (!model.is_package) continue;
    EXPECT_EQ(num_aligned, num_large) << model.name;
  }
}

TEST(ModelObjectTest, RunsInPlace) {
  const auto images = RealFileSystem().ReadFile(DataFile("tests/models/digits/eval_images.npy"));
  const auto expected = RealFileSystem().ReadFile(DataFile("tests/models/digits/expected_probabilities.npy"));
  ASSERT_TRUE(images.ok() && expected.ok());
  const auto pixels = ParseNpy(*images, nullptr), probabilities = ParseNpy(*expected, nullptr);
  ASSERT_TRUE(pixels.ok() && probabilities.ok());
  int64_t copied[3] = {};
  for (int i = 0; i < 3; ++i) {
    const Embedded& embedded = kModels[i];
    const pf::Result<pf::Model> model = pf::Model::OpenMemory(embedded.bytes, embedded.size);
    ASSERT_TRUE(model.ok()) << model.status().message();
    pf::SessionOptions options;
    options.inputs = {"image"};
    options.outputs = {"probabilities"};
    pf::Result<pf::Session> session = pf::Session::Create(*model, options);
    ASSERT_TRUE(session.ok()) << session.status().message();
    for (int image = 0; image < 10; ++image) {
      std::vector<float> values(64);
      for (int j = 0; j < 64; ++j) values[j] = pixels->elements<float>()[image * 64 + j];
      const pf::Result<pf::Outputs> outputs =
          session->Run({pf::TensorOver({1, 8, 8, 1}, values.data(), values.size())});
      ASSERT_TRUE(outputs.ok()) << outputs.status().message();
      for (int j = 0; j < 10; ++j) {
        EXPECT_NEAR(pf::DataOf<float>((*outputs)[0])[j], probabilities->elements<float>()[image * 10 + j], 1e-4);
      }
    }
    copied[i] = session->Report()->constant_bytes;
  }
  // Small constants stay in the graph of a package, at any address; others are computed.
  EXPECT_LT(copied[0], 20'000);
  EXPECT_EQ(copied[1], copied[0]);
}

}  // namespace
}  // namespace permafrost
