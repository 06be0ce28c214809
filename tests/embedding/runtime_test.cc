// Tests of the embedding interface through its C++ wrapper: opening of models, memory, profiles and threads.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "embedding/permafrost_runtime.hpp"
#include "graph/graph.h"
#include "gtest/gtest.h"
#include "io/file_system.h"
#include "io/formats/age/age.h"
#include "io/formats/npy.h"
#include "io/formats/zstd.h"
#include "io/model_file.h"
#include "runtime_check/session_settings.h"
#include "tests/formats/age/file_builder.h"
#include "tests/io/test_in_folder.h"
#include "tests/runtime_check/small_graph.h"
#include "tests/shared_models.h"
#include "tools/command_line/console.h"
#include "tools/convert_graphdef_memmapped_format.h"

namespace permafrost {
namespace {

constexpr int kNumDigits = 10;
constexpr int kNumPixels = 64;

// Memory aligned to 64 bytes, or deliberately misaligned.
class AlignedFloats {
 public:
  explicit AlignedFloats(size_t size, size_t shift = 0) : memory_(size + 32 + shift) {
    size_t space = memory_.size() * sizeof(float);
    void* start = memory_.data();
    std::align(64, size * sizeof(float), start, space);
    data_ = static_cast<float*>(start) + shift;
  }
  float* data() { return data_; }

 private:
  std::vector<float> memory_;
  float* data_;
};

std::string Text(const pf::Status& status) {
  return absl::StrCat(pf_status_name(status.code()), ": ", status.message());
}

class RuntimeTest : public TestInFolder {
 protected:
  void SetUp() override {
    TestInFolder::SetUp();
    images_ = Array("tests/models/digits/eval_images.npy");
    expected_ = Array("tests/models/digits/expected_probabilities.npy");
  }

  static std::vector<float> Array(const std::string& path) {
    const std::string bytes = Get(DataFile(path));
    const absl::StatusOr<Tensor> npy = ParseNpy(bytes, nullptr);
    EXPECT_TRUE(npy.ok()) << npy.status();
    return ToVector(*npy);
  }
  static std::string ModelPath() { return DataFile("tests/models/digits/digits.pb"); }
  static std::string ModelBytes() { return Get(ModelPath()); }

  // Returns the bundled model, saved with other options.
  std::string Saved(const std::string& name, const SaveOptions& options) const {
    const auto graph = OpenModel(RealFileSystem(), ModelPath());
    EXPECT_TRUE(graph.ok()) << graph.status();
    EXPECT_TRUE((*graph)->DeclareInterface({"image"}, {"probabilities"}).ok());
    const absl::Status saved = SaveModel(RealFileSystem(), **graph, Path(name), options);
    EXPECT_TRUE(saved.ok()) << saved;
    return Path(name);
  }
  // Returns the bundled model as a package with weights packed for these delegates.
  std::string Packed(const std::vector<std::string>& for_delegates) const {
    ConvertGraphdefMemmappedFormatOptions options;
    options.in_graph = ModelPath();
    options.out_graph = Path("packed.pbmm");
    options.pack_for = for_delegates;
    options.inputs = {DataFile("tests/models/digits/eval_images.npy")};
    options.outputs = "probabilities";
    std::ostringstream out, err;
    Console console{out, err};
    const absl::Status converted = ConvertGraphdefMemmappedFormat(options, RealFileSystem(), console);
    EXPECT_TRUE(converted.ok()) << converted;
    return options.out_graph;
  }
  static SaveOptions ForIdentity() {
    SaveOptions options;
    options.filters = {[](ByteSink* out, uint64_t) {
      AgeRecipients recipients;
      recipients.recipients = {age::TestIdentity().recipient};
      return EncryptInto(recipients, out);
    }};
    return options;
  }

  // Runs a few images and compares with TensorFlow's results.
  void CheckAnswers(pf::Session* session, float tolerance = 1e-4f) const {
    AlignedFloats pixels(kNumPixels), digits(kNumDigits);
    for (int image = 0; image < 20; ++image) {
      std::copy_n(&images_[image * kNumPixels], kNumPixels, pixels.data());
      std::vector<pf_tensor> outputs = {pf::TensorOver({}, digits.data(), kNumDigits)};
      const pf::Status status = session->RunInto({Image(pixels.data())}, &outputs);
      ASSERT_TRUE(status.ok()) << Text(status);
      for (int i = 0; i < kNumDigits; ++i) {
        ASSERT_NEAR(digits.data()[i], expected_[image * kNumDigits + i], tolerance) << image;
      }
    }
  }
  void CheckModel(const pf::Result<pf::Model>& model) const {
    ASSERT_TRUE(model.ok()) << Text(model.status());
    pf::Result<pf::Session> session = pf::Session::Create(*model);
    ASSERT_TRUE(session.ok()) << Text(session.status());
    CheckAnswers(&*session);
  }
  static pf_tensor Image(const float* pixels) { return pf::TensorOver({1, 8, 8, 1}, pixels, kNumPixels); }

  std::vector<float> images_, expected_;
};

TEST_F(RuntimeTest, OpensFromPathDescriptorAndMemory) {
  CheckModel(pf::Model::OpenFile(ModelPath()));
  const std::string bytes = ModelBytes();
  CheckModel(pf::Model::OpenMemory(bytes.data(), bytes.size()));
  const int file = open(ModelPath().c_str(), O_RDONLY);
  ASSERT_GE(file, 0);
  pf::Result<pf::Model> model = pf::Model::OpenDescriptor(file);
  close(file);
  CheckModel(model);
}

TEST_F(RuntimeTest, OpensAPartOfAFile) {
  const std::string bytes = ModelBytes();
  const std::string path = Put("assets", absl::StrCat(std::string(5001, 'x'), bytes, std::string(100, 'y')));
  const int file = open(path.c_str(), O_RDONLY);
  ASSERT_GE(file, 0);
  CheckModel(pf::Model::OpenDescriptor(file, 5001, bytes.size()));
  EXPECT_EQ(pf::Model::OpenDescriptor(file, 5001, bytes.size() + 101).status().code(), PF_INVALID_ARGUMENT);
  EXPECT_EQ(pf::Model::OpenDescriptor(file, UINT64_MAX, 2).status().code(), PF_INVALID_ARGUMENT);
  EXPECT_FALSE(pf::Model::OpenDescriptor(file, 5001 + bytes.size() + 100, 0).ok());
  close(file);
}

TEST_F(RuntimeTest, ReadsAPipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string bytes = ModelBytes();
  std::thread writer([&] {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t count = write(ends[1], bytes.data() + done, bytes.size() - done);
      if (count <= 0) break;
      done += static_cast<size_t>(count);
    }
    close(ends[1]);
  });
  CheckModel(pf::Model::OpenDescriptor(ends[0]));
  writer.join();
  close(ends[0]);
  EXPECT_FALSE(pf::Model::OpenDescriptor(ends[0]).ok());
}

TEST_F(RuntimeTest, OpensPackagesAndCompressedModels) {
  CheckModel(pf::Model::OpenFile(Saved("model.pbmm", {"package", {}})));
  CheckModel(pf::Model::OpenFile(Saved("model.pb.zst", {"pb", {ZstdFilter(3)}})));
  pf::OpenOptions options;
  options.max_model_bytes = 1000;
  EXPECT_EQ(pf::Model::OpenFile(Path("model.pb.zst"), options).status().code(), PF_RESOURCE_EXHAUSTED);
}

TEST_F(RuntimeTest, OpensEncryptedModelsWithAnIdentityOrAFunction) {
  const std::string path = Saved("model.age", ForIdentity());
  EXPECT_FALSE(pf::Model::OpenFile(path).ok());
  pf::OpenOptions options;
  options.identity = age::kTestIdentity;
  CheckModel(pf::Model::OpenFile(path, options));

  int asked = 0;
  pf::OpenOptions by_function;
  by_function.secrets = [&](int32_t kind, const std::function<void(std::string_view)>& give) -> pf_status {
    ++asked;
    if (kind == PF_IDENTITY) give(age::kTestIdentity);
    return PF_OK;
  };
  CheckModel(pf::Model::OpenFile(path, by_function));
  EXPECT_GT(asked, 0);
  const std::string bytes = Get(path);
  CheckModel(pf::Model::OpenMemory(bytes.data(), bytes.size(), by_function));
  asked = 0;
  CheckModel(pf::Model::OpenFile(ModelPath(), by_function));
  EXPECT_EQ(asked, 0) << "keys are not requested for a model that is not encrypted";

  by_function.secrets = [](int32_t, const std::function<void(std::string_view)>&) -> pf_status {
    return PF_PERMISSION_DENIED;
  };
  EXPECT_EQ(pf::Model::OpenFile(path, by_function).status().code(), PF_PERMISSION_DENIED);
  by_function.secrets = [](int32_t, const std::function<void(std::string_view)>& give) -> pf_status {
    give("");
    return PF_OK;
  };
  EXPECT_EQ(pf::Model::OpenFile(path, by_function).status().code(), PF_INVALID_ARGUMENT);
}

TEST_F(RuntimeTest, ReleasesMemoryOnceWhenNothingUsesItAnyMore) {
  int released = 0;
  const auto release = [](void* count) { ++*static_cast<int*>(count); };
  const std::string bytes = ModelBytes();
  pf_model* model = nullptr;
  ASSERT_EQ(pf_open_memory(bytes.data(), bytes.size(), release, &released, nullptr, &model, nullptr, 0), PF_OK);
  pf_session* session = nullptr;
  ASSERT_EQ(pf_create_session(model, nullptr, &session, nullptr, 0), PF_OK);
  pf_free_model(model);
  EXPECT_EQ(released, 0) << "the session still uses it";
  pf_free_session(session);
  EXPECT_EQ(released, 1);
  EXPECT_NE(pf_open_memory("\xff\xff", 2, release, &released, nullptr, &model, nullptr, 0), PF_OK);
  EXPECT_EQ(released, 2);
  EXPECT_NE(pf_open_memory(nullptr, 0, release, &released, nullptr, &model, nullptr, 0), PF_OK);
  EXPECT_EQ(released, 3);
}

TEST_F(RuntimeTest, TakesBuffersAtAnyAddress) {
  pf::Result<pf::Model> model = pf::Model::OpenFile(ModelPath());
  ASSERT_TRUE(model.ok());
  pf::Result<pf::Session> session = pf::Session::Create(*model);
  ASSERT_TRUE(session.ok());
  for (const size_t shift : {0, 1, 3}) {
    AlignedFloats pixels(kNumPixels, shift), digits(kNumDigits + 5, shift);
    std::copy_n(images_.data(), kNumPixels, pixels.data());
    std::fill_n(digits.data(), kNumDigits + 5, -7.0f);
    // A larger buffer than needed is accepted, and the rest is not written.
    std::vector<pf_tensor> outputs = {pf::TensorOver({}, digits.data(), kNumDigits + 5)};
    ASSERT_TRUE(session->RunInto({Image(pixels.data())}, &outputs).ok());
    EXPECT_EQ(outputs[0].num_bytes, kNumDigits * sizeof(float));
    EXPECT_EQ(outputs[0].data, digits.data());
    for (int i = 0; i < kNumDigits; ++i) EXPECT_NEAR(digits.data()[i], expected_[i], 1e-4);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(digits.data()[kNumDigits + i], -7.0f);
  }
}

// Returns a processor that this process may use.
int32_t FirstProcessor() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  int32_t first = 0;
  while (!CPU_ISSET(first, &set)) ++first;
  return first;
}

TEST_F(RuntimeTest, RefusesCountsOutOfRange) {
  pf::Result<pf::Model> model = pf::Model::OpenFile(ModelPath());
  ASSERT_TRUE(model.ok());
  const auto refuse = [&](const char* name, int32_t pf_session_options::*field, int32_t most) {
    for (const int32_t value : {-1, most + 1}) {
      pf_session_options options = PF_SESSION_OPTIONS_INIT;
      options.*field = value;
      pf_session* session = nullptr;
      char error[256];
      EXPECT_EQ(pf_create_session(model->get(), &options, &session, error, sizeof(error)), PF_INVALID_ARGUMENT);
      EXPECT_EQ(std::string(error), absl::StrCat(name, ": found ", value, ", expected 0 to ", most));
    }
  };
#define PERMAFROST_REFUSE(field, flag, preset, most, at_zero, help) refuse(#field, &pf_session_options::field, most);
  PERMAFROST_SESSION_COUNTS(PERMAFROST_REFUSE)
#undef PERMAFROST_REFUSE
#define PERMAFROST_REFUSE(field, flag, help) refuse(#field, &pf_session_options::field, 1);
  PERMAFROST_SESSION_SWITCHES(PERMAFROST_REFUSE)
#undef PERMAFROST_REFUSE
}

TEST_F(RuntimeTest, RunsWithDelegatesAndReportsThem) {
  pf::Result<pf::Model> model = pf::Model::OpenFile(ModelPath());
  ASSERT_TRUE(model.ok());
  for (const std::string delegate : {"reference", "onednn", "xnnpack"}) {
    pf::SessionOptions options;
    options.delegate = delegate;
    options.num_threads = 2;
    options.inter_op_threads = 2;
    options.processors = {FirstProcessor()};  // Both threads share one processor: slower, but the same results.
    pf::Result<pf::Session> session = pf::Session::Create(*model, options);
    ASSERT_TRUE(session.ok()) << Text(session.status());
    CheckAnswers(&*session);
    pf::Result<pf_report> report = session->Report();
    ASSERT_TRUE(report.ok());
#if !defined(__x86_64__)
    // The distribution's oneDNN has no fast kernels for other processors and is not used.
    if (delegate == "onednn") continue;
#endif
    EXPECT_EQ(report->num_delegated > 0, delegate != "reference") << delegate;
    EXPECT_STREQ(report->delegate_failure, "");
    EXPECT_GT(report->arena_bytes, 0);
    EXPECT_GT(report->num_steps, 0);
  }
  pf::SessionOptions options;
  options.precision = "f8";
  EXPECT_EQ(pf::Session::Create(*model, options).status().code(), PF_INVALID_ARGUMENT);
}

TEST_F(RuntimeTest, UsesPackedWeightsOfThePackage) {
  pf::OpenOptions keys;
  keys.identity = age::kTestIdentity;
  const auto use = [&](const std::string& path, const std::string& delegate, const std::string& precision) {
    pf::Result<pf::Model> model = pf::Model::OpenFile(path, keys);
    EXPECT_TRUE(model.ok()) << Text(model.status());
    pf::SessionOptions options;
    options.delegate = delegate;
    options.precision = precision;
    pf::Result<pf::Session> session = pf::Session::Create(*model, options);
    EXPECT_TRUE(session.ok()) << Text(session.status());
    CheckAnswers(&*session, precision == "f32" ? 1e-4f : 0.03f);
    return *session->Report();
  };
  const std::string path = Packed({"reference", "onednn:f32", "onednn:auto"});
  for (const auto& [delegate, precision] : {std::pair("reference", "f32"), {"onednn", "f32"}, {"onednn", "auto"}}) {
#if !defined(__x86_64__)
    if (delegate == std::string("onednn")) continue;
#endif
    const pf_report report = use(path, delegate, precision);
    EXPECT_GT(report.packed_bytes, 0) << delegate << " " << precision;
    EXPECT_STREQ(report.packed_failure, "");
    EXPECT_STREQ(report.delegate_failure, "");
  }
  EXPECT_EQ(use(path, "xnnpack", "f32").packed_bytes, 0) << "it packs nothing";
  EXPECT_EQ(use(ModelPath(), "reference", "f32").packed_bytes, 0);
  // From an encrypted package, the weights are read into memory.
  const auto encrypt = [&](ByteSink* sink) { return sink->Append(Get(path)); };
  ASSERT_TRUE(SaveThrough(RealFileSystem(), Path("packed.age"), ForIdentity().filters, Get(path).size(), encrypt).ok());
  EXPECT_GT(use(Path("packed.age"), "reference", "f32").packed_bytes, 0);
  // Simulates a package from another machine: the model runs and reports why its packed weights are not used.
  std::string bytes = Get(path);
  const size_t identity = bytes.find("reference kernels, panels of");
  ASSERT_NE(identity, std::string::npos);
  bytes[identity] = 'R';
  const pf_report report = use(Put("other.pbmm", bytes), "reference", "f32");
  EXPECT_EQ(report.packed_bytes, 0);
  EXPECT_STRNE(report.packed_failure, "");
  // Without a precision plan the precision cannot be provided.
  pf::Result<pf::Model> model = pf::Model::OpenFile(ModelPath());
  pf::SessionOptions options;
  options.delegate = "onednn";
  options.precision = "auto";
  EXPECT_EQ(pf::Session::Create(*model, options).status().code(), PF_INVALID_ARGUMENT);
}

TEST_F(RuntimeTest, ProfilesRuns) {
  pf::Result<pf::Model> model = pf::Model::OpenFile(ModelPath());
  ASSERT_TRUE(model.ok());
  pf::Result<pf::Session> session = pf::Session::Create(*model);
  ASSERT_TRUE(session.ok());
  CheckAnswers(&*session);
  EXPECT_EQ(session->GetProfile()->entries.size(), 0u);
  ASSERT_TRUE(session->RecordProfile(true).ok());
  CheckAnswers(&*session);
  ASSERT_TRUE(session->RecordProfile(false).ok());
  CheckAnswers(&*session);
  const pf::Result<pf::Profile> profile = session->GetProfile();
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile->num_runs, 20);
  EXPECT_GT(profile->entries.size(), 10u);
  int convolutions = 0;
  for (const pf::ProfileEntry& entry : profile->entries) {
    EXPECT_EQ(entry.num_calls, 20) << entry.name;
    EXPECT_LE(entry.least_us, entry.total_us) << entry.name;
    convolutions += entry.op == "Conv2D";
  }
  EXPECT_GT(convolutions, 0);
  ASSERT_TRUE(session->RecordProfile(true).ok());
  EXPECT_EQ(session->GetProfile()->num_runs, 0) << "starting forgets";
  pf_profile_entry entry = {};
  pf_profile* raw = nullptr;
  ASSERT_EQ(pf_get_profile(session->get(), &raw, nullptr, 0), PF_OK);
  EXPECT_EQ(pf_get_profile_entry(raw, 0, &entry, nullptr, 0), PF_INVALID_ARGUMENT);
  pf_free_profile(raw);
}

TEST_F(RuntimeTest, SharesASessionAmongThreads) {
  pf::Result<pf::Model> model = pf::Model::OpenFile(ModelPath());
  ASSERT_TRUE(model.ok());
  pf::Result<pf::Session> session = pf::Session::Create(*model);
  ASSERT_TRUE(session.ok());
  std::atomic<bool> done = false;
  std::thread observer([&] {
    for (int i = 0; !done; ++i) {
      EXPECT_TRUE(session->Report().ok());
      EXPECT_TRUE(session->GetProfile().ok());
      EXPECT_TRUE(session->RecordProfile(i % 2 == 0).ok());
      EXPECT_EQ(session->input_name(0), "image");
    }
  });
  std::vector<std::thread> runners;
  for (int i = 0; i < 4; ++i) {
    runners.emplace_back([&, i] {
      if (i == 0) {
        for (int run = 0; run < 20; ++run) {
          const pf::Result<pf::Outputs> outputs = session->Run({Image(&images_[run * kNumPixels])});
          ASSERT_TRUE(outputs.ok()) << Text(outputs.status());
          for (int j = 0; j < kNumDigits; ++j) {
            ASSERT_NEAR(pf::DataOf<float>((*outputs)[0])[j], expected_[run * kNumDigits + j], 1e-4);
          }
        }
        return;
      }
      CheckAnswers(&*session);
    });
  }
  for (std::thread& runner : runners) runner.join();
  done = true;
  observer.join();
}

TEST_F(RuntimeTest, SharesAModelAmongSessionsOnThreads) {
  pf::Result<pf::Model> model = pf::Model::OpenFile(Saved("model.pbmm", {"package", {}}));
  ASSERT_TRUE(model.ok());
  std::vector<std::thread> runners;
  for (int i = 0; i < 4; ++i) {
    runners.emplace_back([&] {
      pf::Result<pf::Session> session = pf::Session::Create(*model);
      ASSERT_TRUE(session.ok()) << Text(session.status());
      CheckAnswers(&*session);
    });
  }
  for (std::thread& runner : runners) runner.join();
}

// A model with an unknown batch size, and a second output whose shape is known only after the run.
std::string FreeShapes() {
  SmallGraph graph;
  graph.Placeholder("x", DType::kFloat, Shape({kUnknownDim, 2}));
  graph.Float("twice", "Add", {"x", "x"});
  graph.Const("zero", Tensor::Scalar<float>(0));
  graph.Add("positive", "Greater", {"x", "zero"}, {{"T", AttrValue::Type(DType::kFloat)}});
  graph.Add("where", "Where", {"positive"}, {{"T", AttrValue::Type(DType::kBool)}});
  std::string bytes;
  class StringSink : public ByteSink {
   public:
    explicit StringSink(std::string* text) : text_(text) {}
    absl::Status Append(absl::string_view more) override {
      text_->append(more.data(), more.size());
      return absl::OkStatus();
    }

   private:
    std::string* text_;
  } sink(&bytes);
  for (const ModelFormat* format : ModelFormats()) {
    if (format->name != "pb") continue;
    EXPECT_TRUE(format->write(graph.graph(), &sink).ok());
  }
  return bytes;
}

TEST_F(RuntimeTest, HandlesShapesKnownOnlyAfterTheRun) {
  const std::string bytes = FreeShapes();
  pf::Result<pf::Model> model = pf::Model::OpenMemory(bytes.data(), bytes.size());
  ASSERT_TRUE(model.ok()) << Text(model.status());
  pf::SessionOptions options;
  options.outputs = {"twice", "where"};
  pf::Result<pf::Session> session = pf::Session::Create(*model, options);
  ASSERT_TRUE(session.ok()) << Text(session.status());
  EXPECT_EQ(session->DescribeInput(0)->dims[0], -1);
  EXPECT_EQ(session->DescribeOutput(0)->rank, 2);
  EXPECT_EQ(session->DescribeOutput(0)->dims[0], -1);
  EXPECT_EQ(session->DescribeOutput(1)->dtype, PF_INT64);

  const std::vector<float> x = {1, -1, 2, 3, -5, -6};
  const pf_tensor input = pf::TensorOver({3, 2}, x.data(), x.size());
  const pf::Result<std::vector<pf_tensor>> planned = session->Plan({input});
  ASSERT_TRUE(planned.ok()) << Text(planned.status());
  EXPECT_EQ((*planned)[0].dims[0], 3);
  EXPECT_EQ((*planned)[0].num_bytes, 24u);
  EXPECT_EQ((*planned)[1].rank, -1);

  const pf::Result<pf::Outputs> outputs = session->Run({input});
  ASSERT_TRUE(outputs.ok()) << Text(outputs.status());
  EXPECT_EQ((*outputs)[1].dims[0], 3);
  EXPECT_EQ((*outputs)[1].dims[1], 2);
  EXPECT_EQ((*outputs)[2].data, nullptr) << "there are two";
  const int64_t* const where = pf::DataOf<int64_t>((*outputs)[1]);
  ASSERT_NE(where, nullptr);
  EXPECT_EQ(pf::DataOf<float>((*outputs)[1]), nullptr) << "not floats";
  EXPECT_EQ(std::vector<int64_t>(where, where + 6), (std::vector<int64_t>{0, 0, 1, 0, 1, 1}));

  std::vector<float> twice(6);
  std::vector<int64_t> places(12, -1);
  std::vector<pf_tensor> memory = {pf::TensorOver({}, twice.data(), twice.size()),
                                   pf::TensorOver({}, places.data(), places.size())};
  const pf::Status status = session->RunInto({input}, &memory);
  ASSERT_TRUE(status.ok()) << Text(status);
  EXPECT_EQ(twice, (std::vector<float>{2, -2, 4, 6, -10, -12}));
  EXPECT_EQ(memory[1].dims[0], 3);
  EXPECT_EQ(memory[1].num_bytes, 48u);
  EXPECT_EQ(places[5], 1);
  EXPECT_EQ(places[6], -1);
  memory[1].num_bytes = 40;
  EXPECT_TRUE(absl::StrContains(session->RunInto({input}, &memory).message(), "expected 48"));
}

TEST_F(RuntimeTest, ResultsOutliveEverythingElse) {
  const std::string bytes = FreeShapes();
  pf::Result<pf::Model> model = pf::Model::OpenMemory(bytes.data(), bytes.size());
  ASSERT_TRUE(model.ok());
  pf::SessionOptions options;
  options.outputs = {"x", "zero"};  // Outputs that are an input and a constant.
  auto session = std::make_unique<pf::Session>(*pf::Session::Create(*model, options));
  auto x = std::make_unique<std::vector<float>>(std::vector<float>{1, 2});
  pf::Result<pf::Outputs> outputs = session->Run({pf::TensorOver({1, 2}, x->data(), 2)});
  ASSERT_TRUE(outputs.ok()) << Text(outputs.status());
  session = nullptr;
  model = pf::Status(PF_NOT_FOUND, "gone");
  x = nullptr;
  EXPECT_EQ(pf::DataOf<float>((*outputs)[0])[1], 2);
  EXPECT_EQ(pf::DataOf<float>((*outputs)[1])[0], 0);
}

TEST_F(RuntimeTest, PassesStrings) {
  SmallGraph graph;
  graph.Placeholder("texts", DType::kString, Shape({2}));
  graph.Add("same", "Identity", {"texts"}, {{"T", AttrValue::Type(DType::kString)}});
  ASSERT_TRUE(SaveModel(RealFileSystem(), graph.graph(), Path("strings.pb")).ok());
  pf::Result<pf::Model> model = pf::Model::OpenFile(Path("strings.pb"));
  ASSERT_TRUE(model.ok());
  pf::Result<pf::Session> session = pf::Session::Create(*model);
  ASSERT_TRUE(session.ok()) << Text(session.status());
  const pf_string texts[] = {{"one", 3}, {"t\0o", 3}};
  const pf_tensor input = pf::TensorOver({2}, texts, 2);
  const pf::Result<pf::Outputs> outputs = session->Run({input});
  ASSERT_TRUE(outputs.ok()) << Text(outputs.status());
  const pf_tensor same = (*outputs)[0];
  ASSERT_EQ(same.dtype, PF_STRING);
  ASSERT_EQ(same.num_bytes, 2 * sizeof(pf_string));
  const auto* const strings = pf::DataOf<pf_string>(same);
  EXPECT_EQ(std::string(strings[1].data, strings[1].size), std::string("t\0o", 3));
  pf_string room[2] = {};
  std::vector<pf_tensor> memory = {pf::TensorOver({}, room, 2)};
  EXPECT_TRUE(absl::StrContains(session->RunInto({input}, &memory).message(), "holds strings"));
}

TEST_F(RuntimeTest, ReportsAmbiguousInterfaces) {
  SmallGraph graph;
  graph.Placeholder("x", DType::kFloat, Shape({2}));
  graph.Placeholder("y", DType::kFloat, Shape({2}));
  graph.Float("a", "Relu", {"x"});
  graph.Float("b", "Relu", {"y"});
  ASSERT_TRUE(SaveModel(RealFileSystem(), graph.graph(), Path("two.pb")).ok());
  pf::Result<pf::Model> model = pf::Model::OpenFile(Path("two.pb"));
  ASSERT_TRUE(model.ok()) << Text(model.status());
  const pf::Status status = pf::Session::Create(*model).status();
  EXPECT_EQ(status.code(), PF_INVALID_ARGUMENT);
  EXPECT_TRUE(absl::StrContains(status.message(), "specify them in the options; candidates: 'a', 'b'")) << Text(status);
  pf::SessionOptions options;
  options.outputs = {"b"};
  pf::Result<pf::Session> session = pf::Session::Create(*model, options);
  ASSERT_TRUE(session.ok()) << Text(session.status());
  EXPECT_EQ(session->num_inputs(), 1u);
  EXPECT_EQ(session->input_name(0), "y");
}

}  // namespace
}  // namespace permafrost
