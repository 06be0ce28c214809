// Fuzz target: bytes as a sequence of calls of the C interface, on a model from the graph grammar or on damaged bytes.
// Arguments are any that a program in C could pass: wrong types, absurd sizes and counts, NULL. Calls on objects that
// were freed, and sizes beyond a buffer, are not made, because nothing can be promised for them.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "embedding/permafrost_runtime.h"
#include "io/formats/graphdef.h"
#include "tests/fuzz/choices.h"
#include "tests/fuzz/finding.h"
#include "tests/fuzz/graph_grammar.h"

namespace permafrost {
namespace {

constexpr int64_t kMemoryLimit = 4 << 20;

// One program: its objects, and the calls that it makes.
class Program {
 public:
  explicit Program(absl::string_view bytes) : bytes_(bytes), choices_(bytes) {}

  ~Program() {
    for (pf_session* session : sessions_) pf_free_session(session);
    for (pf_model* model : models_) pf_free_model(model);
    for (pf_result* result : results_) pf_free_result(result);
    for (pf_profile* profile : profiles_) pf_free_profile(profile);
    if (num_open_ != num_released_) Fail("the memory of a model was not released exactly once", bytes_);
  }

  void Run() {
    OpenModel();
    constexpr size_t kMostCalls = 12;
    for (size_t calls = 1 + choices_.Below(kMostCalls); calls > 0; --calls) Call();
  }

 private:
  template <typename T>
  T* Any(const std::vector<T*>& objects) {
    return objects.empty() || choices_.OneIn(16) ? nullptr : choices_.Of(objects);
  }

  // Checks what every call promises: a known status, and one line of text.
  void Check(const char* call, pf_status status) {
    const std::string text(error_.get(), strnlen(error_.get(), error_size_));
    if (status == PF_INTERNAL) Fail(absl::StrCat(call, ": ", text), bytes_);
    if (std::strcmp(pf_status_name(status), "") == 0) Fail(absl::StrCat(call, ": status ", status), bytes_);
    if (status != PF_OK && error_size_ > 0 && text.size() == error_size_) {
      Fail(absl::StrCat(call, ": the text is not terminated"), bytes_);
    }
    if (text.find('\n') != std::string::npos) Fail(absl::StrCat(call, ": several lines: ", text), bytes_);
    NewError();
  }

  // A buffer of exactly the size that is passed, so that a sanitizer finds a write beyond it.
  void NewError() {
    static constexpr size_t kSizes[] = {256, 256, 256, 1, 0, 7};
    error_size_ = choices_.Of(kSizes);
    error_ = std::make_unique<char[]>(error_size_);
  }

  void OpenModel() {
    NewError();
    GrammarOptions grammar;
    grammar.most_nodes = 5;
    const DrawnGraph drawn = DrawGraph(&choices_, grammar);
    feeds_ = drawn.feeds;
    StringSink sink;
    if (!WriteGraphDef(*drawn.graph, &sink).ok()) return;
    auto* text = new std::string(sink.text());
    if (choices_.OneIn(8) && !text->empty())
      (*text)[choices_.Below(text->size())] ^= static_cast<char>(1 + choices_.Below(255));
    if (choices_.OneIn(16)) text->resize(choices_.Below(text->size() + 1));
    memory_.emplace_back(text);
    pf_open_options options = PF_OPEN_OPTIONS_INIT;
    if (choices_.OneIn(8)) options.max_model_bytes = choices_.Bits();
    if (choices_.OneIn(16)) options.struct_size = choices_.Below(2 * sizeof(options));
    pf_model* model = nullptr;
    ++num_open_;
    const pf_status status = pf_open_memory(text->data(), text->size(), &Release, this,
                                            choices_.OneIn(2) ? &options : nullptr, &model, error_.get(), error_size_);
    Check("pf_open_memory", status);
    if (status == PF_OK) models_.push_back(model);
  }

  static void Release(void* program) { ++static_cast<Program*>(program)->num_released_; }

  int64_t AnyCount() {
    static constexpr int64_t kCounts[] = {
        0, 1, 2, 3, -1, 4096, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()};
    return choices_.Of(kCounts);
  }

  void CreateSession() {
    pf_session_options options = PF_SESSION_OPTIONS_INIT;
    options.memory_limit = kMemoryLimit;
    options.most_loop_iterations = 100;
    static constexpr const char* kNames[] = {"input0",  "input0:0", "input1",    "n_Relu",
                                             "nothing", "",         "input0:-1", "a:b"};
    static constexpr const char* kDelegates[] = {"reference", "onednn", "xnnpack", "nothing", ""};
    static constexpr const char* kPrecisions[] = {"f32", "bf16", "int8", "auto", "nothing", ""};
    const char* inputs[3] = {};
    const char* outputs[3] = {};
    if (choices_.OneIn(4)) {
      options.inputs = inputs;
      options.num_inputs = choices_.Below(4);
      for (const char*& name : inputs) name = choices_.OneIn(16) ? nullptr : choices_.Of(kNames);
    }
    if (choices_.OneIn(4)) {
      options.outputs = outputs;
      options.num_outputs = choices_.Below(4);
      for (const char*& name : outputs) name = choices_.OneIn(16) ? nullptr : choices_.Of(kNames);
    }
    if (choices_.OneIn(4)) options.num_threads = static_cast<int32_t>(AnyCount());
    if (choices_.OneIn(4)) options.inter_op_threads = static_cast<int32_t>(AnyCount());
    if (choices_.OneIn(4)) options.delegate = choices_.Of(kDelegates);
    if (choices_.OneIn(4)) options.precision = choices_.Of(kPrecisions);
    if (choices_.OneIn(16)) options.memory_limit = AnyCount();
    if (choices_.OneIn(8)) options.most_loop_iterations = static_cast<int64_t>(choices_.Below(3));
    const int32_t processors[] = {0, static_cast<int32_t>(AnyCount())};
    if (choices_.OneIn(8)) {
      options.processors = processors;
      options.num_processors = choices_.Below(3);
    }
    if (choices_.OneIn(16)) options.struct_size = choices_.Below(2 * sizeof(options));
    pf_session* session = nullptr;
    const pf_status status =
        pf_create_session(Any(models_), choices_.OneIn(2) ? &options : nullptr, &session, error_.get(), error_size_);
    Check("pf_create_session", status);
    if (status == PF_OK) sessions_.push_back(session);
  }

  // A tensor whose size is that of its buffer, whatever its type and dimensions claim.
  pf_tensor AnyTensor(size_t index) {
    pf_tensor tensor = {};
    if (index < feeds_.size() && !choices_.OneIn(4)) {
      const Tensor& feed = feeds_[index];
      tensor.dtype = static_cast<int32_t>(feed.dtype());
      tensor.rank = static_cast<int32_t>(feed.shape().rank());
      for (int i = 0; i < feed.shape().rank(); ++i) tensor.dims[i] = feed.shape().dim(i);
      if (feed.dtype() == DType::kString) {
        auto& texts = strings_.emplace_back();
        for (const std::string& text : feed.strings()) texts.push_back({text.data(), text.size()});
        tensor.data = texts.data();
        tensor.num_bytes = texts.size() * sizeof(pf_string);
      } else {
        memory_.emplace_back(new std::string(feed.bytes()));
        tensor.data = memory_.back()->data();
        tensor.num_bytes = memory_.back()->size();
      }
    } else {
      memory_.emplace_back(new std::string(choices_.Below(64), '\1'));
      tensor.data = memory_.back()->data();
      tensor.num_bytes = memory_.back()->size();
    }
    if (choices_.OneIn(4)) {
      static constexpr int32_t kTypes[] = {
          0, 1, 3, 9, 10, 20, 21, 24, 101, 107, -1, 1 << 30, std::numeric_limits<int32_t>::min()};
      tensor.dtype = choices_.Of(kTypes);  // Not a string: its elements are pointers.
    }
    if (choices_.OneIn(8)) tensor.rank = static_cast<int32_t>(AnyCount());
    if (choices_.OneIn(8)) {
      static constexpr int64_t kDims[] = {0,
                                          -1,
                                          int64_t{1} << 31,
                                          int64_t{1} << 62,
                                          std::numeric_limits<int64_t>::max(),
                                          std::numeric_limits<int64_t>::min()};
      tensor.dims[choices_.Below(PF_MAX_RANK)] = choices_.Of(kDims);
    }
    if (choices_.OneIn(16)) tensor.num_bytes = choices_.Below(tensor.num_bytes + 1);
    if (choices_.OneIn(16)) {
      tensor.data = nullptr;
      tensor.num_bytes = 0;
    }
    return tensor;
  }

  std::vector<pf_tensor> AnyInputs(const pf_session* session) {
    size_t count = session == nullptr ? choices_.Below(3) : pf_num_inputs(session);
    if (choices_.OneIn(8)) count = choices_.Below(4);
    std::vector<pf_tensor> inputs;
    for (size_t i = 0; i < count; ++i) inputs.push_back(AnyTensor(i));
    return inputs;
  }

  std::vector<pf_tensor> AnyOutputs(const pf_session* session) {
    size_t count = session == nullptr ? choices_.Below(3) : pf_num_outputs(session);
    if (choices_.OneIn(8)) count = choices_.Below(4);
    std::vector<pf_tensor> outputs(count);
    for (pf_tensor& output : outputs) {
      static constexpr size_t kSizes[] = {4, 16, 64, 1024, 20000, 0, 1};
      memory_.emplace_back(new std::string(choices_.Of(kSizes), '\0'));
      output.data = memory_.back()->data();
      output.num_bytes = memory_.back()->size();
    }
    return outputs;
  }

  void Call() {
    pf_session* session = Any(sessions_);
    switch (choices_.Below(14)) {
      case 0:
        if (models_.size() < 3) OpenModel();
        break;
      case 1:
      case 2:
        if (sessions_.size() < 3) CreateSession();
        break;
      case 3: {
        pf_tensor tensor;
        const auto index = static_cast<size_t>(AnyCount());
        Check("pf_describe_input", pf_describe_input(session, index, &tensor, error_.get(), error_size_));
        Check("pf_describe_output", pf_describe_output(session, index, &tensor, error_.get(), error_size_));
        if (session != nullptr) {
          (void)pf_input_name(session, index);
          (void)pf_output_name(session, index);
        }
        (void)pf_dtype_size(static_cast<int32_t>(AnyCount()));
        break;
      }
      case 4: {
        const std::vector<pf_tensor> inputs = AnyInputs(session);
        std::vector<pf_tensor> outputs = AnyOutputs(session);
        Check("pf_plan", pf_plan(session, inputs.data(), inputs.size(), outputs.data(), outputs.size(), error_.get(),
                                 error_size_));
        break;
      }
      case 5:
      case 6:
      case 7: {
        const std::vector<pf_tensor> inputs = AnyInputs(session);
        std::vector<pf_tensor> outputs = AnyOutputs(session);
        Check("pf_run",
              pf_run(session, inputs.data(), inputs.size(), outputs.data(), outputs.size(), error_.get(), error_size_));
        break;
      }
      case 8:
      case 9: {
        const std::vector<pf_tensor> inputs = AnyInputs(session);
        pf_result* result = nullptr;
        const pf_status status = pf_run_new(session, inputs.data(), inputs.size(), &result, error_.get(), error_size_);
        Check("pf_run_new", status);
        if (status == PF_OK) results_.push_back(result);
        break;
      }
      case 10: {
        pf_tensor output;
        const pf_status status = pf_result_output(Any(results_), choices_.Below(4), &output, error_.get(), error_size_);
        Check("pf_result_output", status);
        if (status == PF_OK && output.dtype != PF_STRING) Touch(output.data, output.num_bytes);
        break;
      }
      case 11: {
        pf_report report = {};
        report.struct_size = choices_.OneIn(8) ? choices_.Below(2 * sizeof(report)) : sizeof(report);
        if (report.struct_size <= sizeof(report)) {
          Check("pf_get_report", pf_get_report(session, &report, error_.get(), error_size_));
        }
        break;
      }
      case 12: {
        Check("pf_record_profile",
              pf_record_profile(session, static_cast<int32_t>(choices_.Below(2)), error_.get(), error_size_));
        pf_profile* profile = nullptr;
        const pf_status status = pf_get_profile(session, &profile, error_.get(), error_size_);
        Check("pf_get_profile", status);
        if (status != PF_OK) break;
        profiles_.push_back(profile);
        pf_profile_entry entry = {};
        entry.struct_size = sizeof(entry);
        Check("pf_get_profile_entry",
              pf_get_profile_entry(profile, choices_.Below(4), &entry, error_.get(), error_size_));
        break;
      }
      default:
        Free(&models_, &pf_free_model);
        if (choices_.OneIn(4)) Free(&sessions_, &pf_free_session);
        if (choices_.OneIn(4)) Free(&results_, &pf_free_result);
    }
  }

  void Touch(const void* data, uint64_t size) {
    volatile unsigned char sum = 0;
    for (uint64_t i = 0; i < size; ++i)
      sum = static_cast<unsigned char>(sum + static_cast<const unsigned char*>(data)[i]);
  }

  template <typename T>
  void Free(std::vector<T*>* objects, void (*free_object)(T*)) {
    if (objects->empty()) return;
    const size_t index = choices_.Below(objects->size());
    free_object((*objects)[index]);
    objects->erase(objects->begin() + static_cast<std::ptrdiff_t>(index));
  }

  absl::string_view bytes_;
  Choices choices_;
  std::vector<std::unique_ptr<std::string>> memory_;  // Of models, inputs and outputs; freed last.
  std::vector<std::vector<pf_string>> strings_;
  std::vector<Tensor> feeds_;
  std::vector<pf_model*> models_;
  std::vector<pf_session*> sessions_;
  std::vector<pf_result*> results_;
  std::vector<pf_profile*> profiles_;
  std::unique_ptr<char[]> error_;
  size_t error_size_ = 0;
  int num_open_ = 0, num_released_ = 0;
};

}  // namespace
}  // namespace permafrost

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  permafrost::Program(absl::string_view(reinterpret_cast<const char*>(data), size)).Run();
  return 0;
}
