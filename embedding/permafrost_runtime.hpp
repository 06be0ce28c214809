// The C++ interface of the runtime: permafrost_runtime.h with owning types, views and results. C++17, header only,
// without exceptions.
//
//   pf::Result<pf::Model> model = pf::Model::OpenFile("model.pb");
//   if (!model.ok()) return Fail(model.status().message());
//   pf::Result<pf::Session> session = pf::Session::Create(*model);
//   if (!session.ok()) return Fail(session.status().message());
//   const pf_tensor image = pf::TensorOver({1, 8, 8, 1}, pixels.data(), pixels.size());
//   pf::Result<pf::Outputs> outputs = session->Run({image});
//
// The rules of permafrost_runtime.h for threads, memory and errors apply.
#ifndef PERMAFROST_RUNTIME_HPP_
#define PERMAFROST_RUNTIME_HPP_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "permafrost_runtime.h"

namespace pf {

// OK, or an error code with a message.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(pf_status code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == PF_OK; }
  pf_status code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  pf_status code_ = PF_OK;
  std::string message_;
};

// A value, or the error that prevented it.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}                                  // NOLINT: implicit by intent.
  Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }  // NOLINT: implicit by intent.

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  // REQUIRES: ok().
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

namespace internal {

// Calls call(error, size), which returns a pf_status.
template <typename Call>
Status Try(Call&& call) {
  char error[1024] = "";
  const pf_status code = call(error, sizeof(error));
  return code == PF_OK ? Status() : Status(code, error);
}

template <auto kFree>
struct Freer {
  template <typename T>
  void operator()(T* handle) const {
    kFree(handle);
  }
};
template <typename T, auto kFree>
using Handle = std::unique_ptr<T, Freer<kFree>>;

template <typename T>
constexpr int32_t NumberOf() {
  if constexpr (std::is_same_v<T, float>) return PF_FLOAT;
  if constexpr (std::is_same_v<T, double>) return PF_DOUBLE;
  if constexpr (std::is_same_v<T, int8_t>) return PF_INT8;
  if constexpr (std::is_same_v<T, int16_t>) return PF_INT16;
  if constexpr (std::is_same_v<T, int32_t>) return PF_INT32;
  if constexpr (std::is_same_v<T, int64_t>) return PF_INT64;
  if constexpr (std::is_same_v<T, uint8_t>) return PF_UINT8;
  if constexpr (std::is_same_v<T, uint16_t>) return PF_UINT16;
  if constexpr (std::is_same_v<T, uint32_t>) return PF_UINT32;
  if constexpr (std::is_same_v<T, uint64_t>) return PF_UINT64;
  if constexpr (std::is_same_v<T, bool>) return PF_BOOL;
  if constexpr (std::is_same_v<T, pf_string>) return PF_STRING;
  return PF_UNKNOWN;
}

}  // namespace internal

// Returns the number of the element type that corresponds to T.
template <typename T>
inline constexpr int32_t kDType = internal::NumberOf<T>();

// Returns a view of `count` elements in memory of the caller. Inputs are not modified, so they may be const. A tensor
// with more than PF_MAX_RANK dimensions is rejected by every call.
template <typename T>
pf_tensor TensorOver(const std::vector<int64_t>& dims, T* data, size_t count) {
  using Element = std::remove_const_t<T>;
  static_assert(kDType<Element> != PF_UNKNOWN, "not the C++ type of an element: fill in a pf_tensor yourself");
  pf_tensor tensor = {};
  tensor.dtype = kDType<Element>;
  tensor.rank = dims.size() > PF_MAX_RANK ? -1 : static_cast<int32_t>(dims.size());
  for (size_t i = 0; i < dims.size() && i < PF_MAX_RANK; ++i) tensor.dims[i] = dims[i];
  tensor.data = const_cast<Element*>(data);
  tensor.num_bytes = count * sizeof(T);
  return tensor;
}

// Returns the number of elements, or 0 if a dimension is unknown.
inline int64_t NumElements(const pf_tensor& tensor) {
  int64_t count = tensor.rank < 0 ? 0 : 1;
  for (int32_t i = 0; i < tensor.rank; ++i) count = tensor.dims[i] < 0 ? 0 : count * tensor.dims[i];
  return count;
}

// Returns the elements of a tensor, or null if they are not of type T.
template <typename T>
const T* DataOf(const pf_tensor& tensor) {
  return tensor.dtype == kDType<T> ? static_cast<const T*>(tensor.data) : nullptr;
}

// Provides the secrets of a kind (PF_IDENTITY, PF_PASSPHRASE) by calling `give` for each.
using SecretsFunction = std::function<pf_status(int32_t kind, const std::function<void(std::string_view)>& give)>;

struct OpenOptions {
  std::string_view identity, passphrase;  // Empty: none.
  SecretsFunction secrets;                // Kept until opening returns.
  bool require_locked_memory = false;
  uint64_t max_model_bytes = 0;  // 0: the default.
  std::function<void(std::string_view)> note;
};

// An open model.
class Model {
 public:
  static Result<Model> OpenFile(const std::string& path, const OpenOptions& options = {}) {
    return Open(options, [&](const pf_open_options* c, pf_model** model, char* error, size_t size) {
      return pf_open_file(path.c_str(), c, model, error, size);
    });
  }
  static Result<Model> OpenDescriptor(int descriptor, uint64_t offset = 0, uint64_t length = 0,
                                      const OpenOptions& options = {}) {
    return Open(options, [&](const pf_open_options* c, pf_model** model, char* error, size_t size) {
      return pf_open_descriptor(descriptor, offset, length, c, model, error, size);
    });
  }
  // Opens a model in memory. The bytes are not copied, and must outlive the model and its sessions.
  static Result<Model> OpenMemory(const void* bytes, size_t num_bytes, const OpenOptions& options = {}) {
    return Open(options, [&](const pf_open_options* c, pf_model** model, char* error, size_t size) {
      return pf_open_memory(bytes, num_bytes, nullptr, nullptr, c, model, error, size);
    });
  }

  const pf_model* get() const { return model_.get(); }

 private:
  explicit Model(pf_model* model) : model_(model) {}

  static pf_status GiveSecrets(void* context, int32_t kind, void (*give)(void* to, const void* bytes, size_t size),
                               void* to) {
    const auto& secrets = static_cast<const OpenOptions*>(context)->secrets;
    return secrets(kind, [&](std::string_view secret) { give(to, secret.data(), secret.size()); });
  }
  static void Note(void* context, const char* text) { static_cast<const OpenOptions*>(context)->note(text); }

  template <typename Call>
  static Result<Model> Open(const OpenOptions& options, Call&& call) {
    pf_open_options c = PF_OPEN_OPTIONS_INIT;
    if (!options.identity.empty()) c.identity = options.identity.data();
    c.identity_size = options.identity.size();
    if (!options.passphrase.empty()) c.passphrase = options.passphrase.data();
    c.passphrase_size = options.passphrase.size();
    if (options.secrets) c.secrets = &GiveSecrets;
    c.secrets_context = const_cast<OpenOptions*>(&options);
    c.require_locked_memory = options.require_locked_memory ? 1 : 0;
    c.max_model_bytes = options.max_model_bytes;
    if (options.note) c.note = &Note;
    c.note_context = const_cast<OpenOptions*>(&options);
    pf_model* model = nullptr;
    Status status = internal::Try([&](char* error, size_t size) { return call(&c, &model, error, size); });
    if (!status.ok()) return status;
    return Model(model);
  }

  internal::Handle<pf_model, &pf_free_model> model_;
};

struct SessionOptions {
  std::optional<std::vector<std::string>> inputs, outputs;  // Default: those of the model.
  int num_threads = 1;
  int inter_op_threads = 1;  // Maximum number of nodes that run concurrently.
  std::string delegate = "reference";
  std::string precision = "f32";
  int64_t memory_limit = 0;          // 0: the default.
  int64_t most_loop_iterations = 0;  // 0: the default.
  std::vector<int32_t> processors;   // Processors that the threads run on; empty: all.
  bool no_winograd = false;          // The onednn delegate computes all convolutions directly.
};

// The outputs of a run, in memory of their own.
class Outputs {
 public:
  explicit Outputs(pf_result* result) : result_(result) {}

  // Returns output `index`, whose data lives as long as this object. Has neither data nor type if there is no such
  // output.
  pf_tensor operator[](size_t index) const {
    pf_tensor output = {};
    if (pf_result_output(result_.get(), index, &output, nullptr, 0) != PF_OK) output.rank = -1;
    return output;
  }

 private:
  internal::Handle<pf_result, &pf_free_result> result_;
};

struct ProfileEntry {
  std::string name, op;
  int64_t num_calls = 0;
  double total_us = 0;
  double least_us = 0;
  int64_t output_bytes = 0;
};

struct Profile {
  int64_t num_runs = 0;
  double total_us = 0;
  std::vector<ProfileEntry> entries;
};

class Session {
 public:
  static Result<Session> Create(const Model& model, const SessionOptions& options = {}) {
    const auto pointers = [](const std::optional<std::vector<std::string>>& names) {
      std::vector<const char*> result;
      if (names.has_value()) {
        for (const std::string& name : *names) result.push_back(name.c_str());
      }
      result.push_back(nullptr);  // The array has an address even without names.
      return result;
    };
    const std::vector<const char*> inputs = pointers(options.inputs), outputs = pointers(options.outputs);
    pf_session_options c = PF_SESSION_OPTIONS_INIT;
    if (options.inputs.has_value()) c.inputs = inputs.data();
    c.num_inputs = inputs.size() - 1;
    if (options.outputs.has_value()) c.outputs = outputs.data();
    c.num_outputs = outputs.size() - 1;
    c.num_threads = options.num_threads;
    c.inter_op_threads = options.inter_op_threads;
    c.delegate = options.delegate.c_str();
    c.precision = options.precision.c_str();
    c.memory_limit = options.memory_limit;
    c.most_loop_iterations = options.most_loop_iterations;
    c.processors = options.processors.data();
    c.num_processors = options.processors.size();
    c.no_winograd = options.no_winograd ? 1 : 0;
    pf_session* session = nullptr;
    Status status = internal::Try(
        [&](char* error, size_t size) { return pf_create_session(model.get(), &c, &session, error, size); });
    if (!status.ok()) return status;
    return Session(session);
  }

  size_t num_inputs() const { return pf_num_inputs(session_.get()); }
  size_t num_outputs() const { return pf_num_outputs(session_.get()); }
  // REQUIRES: index < num_inputs(), num_outputs().
  std::string_view input_name(size_t index) const { return pf_input_name(session_.get(), index); }
  std::string_view output_name(size_t index) const { return pf_output_name(session_.get(), index); }
  Result<pf_tensor> DescribeInput(size_t index) const {
    return Described([&](pf_tensor* tensor, char* error, size_t size) {
      return pf_describe_input(session_.get(), index, tensor, error, size);
    });
  }
  Result<pf_tensor> DescribeOutput(size_t index) const {
    return Described([&](pf_tensor* tensor, char* error, size_t size) {
      return pf_describe_output(session_.get(), index, tensor, error, size);
    });
  }

  // Returns the outputs for inputs of these types and shapes.
  Result<std::vector<pf_tensor>> Plan(const std::vector<pf_tensor>& inputs) {
    std::vector<pf_tensor> outputs(num_outputs());
    Status status = internal::Try([&](char* error, size_t size) {
      return pf_plan(session_.get(), inputs.data(), inputs.size(), outputs.data(), outputs.size(), error, size);
    });
    if (!status.ok()) return status;
    return outputs;
  }

  // Runs the model and returns the outputs in new memory.
  Result<Outputs> Run(const std::vector<pf_tensor>& inputs) {
    pf_result* result = nullptr;
    Status status = internal::Try([&](char* error, size_t size) {
      return pf_run_new(session_.get(), inputs.data(), inputs.size(), &result, error, size);
    });
    if (!status.ok()) return status;
    return Outputs(result);
  }
  // Runs the model and writes the outputs to the memory of `outputs`, which then describe them.
  Status RunInto(const std::vector<pf_tensor>& inputs, std::vector<pf_tensor>* outputs) {
    return internal::Try([&](char* error, size_t size) {
      return pf_run(session_.get(), inputs.data(), inputs.size(), outputs->data(), outputs->size(), error, size);
    });
  }

  Result<pf_report> Report() const {
    pf_report report = {};
    report.struct_size = sizeof(report);
    Status status =
        internal::Try([&](char* error, size_t size) { return pf_get_report(session_.get(), &report, error, size); });
    if (!status.ok()) return status;
    return report;
  }

  // Starts or stops recording of runs. Starting discards earlier records.
  Status RecordProfile(bool record) {
    return internal::Try(
        [&](char* error, size_t size) { return pf_record_profile(session_.get(), record ? 1 : 0, error, size); });
  }
  Result<Profile> GetProfile() const {
    pf_profile* raw = nullptr;
    Status status =
        internal::Try([&](char* error, size_t size) { return pf_get_profile(session_.get(), &raw, error, size); });
    if (!status.ok()) return status;
    const internal::Handle<pf_profile, &pf_free_profile> owner(raw);
    Profile profile{pf_profile_num_runs(raw), pf_profile_total_us(raw), {}};
    for (size_t i = 0; i < pf_profile_num_entries(raw); ++i) {
      pf_profile_entry entry = {};
      entry.struct_size = sizeof(entry);
      status =
          internal::Try([&](char* error, size_t size) { return pf_get_profile_entry(raw, i, &entry, error, size); });
      if (!status.ok()) return status;
      profile.entries.push_back(
          {entry.name, entry.op, entry.num_calls, entry.total_us, entry.least_us, entry.output_bytes});
    }
    return profile;
  }

  pf_session* get() const { return session_.get(); }

 private:
  explicit Session(pf_session* session) : session_(session) {}

  template <typename Call>
  static Result<pf_tensor> Described(Call&& call) {
    pf_tensor tensor = {};
    Status status = internal::Try([&](char* error, size_t size) { return call(&tensor, error, size); });
    if (!status.ok()) return status;
    return tensor;
  }

  internal::Handle<pf_session, &pf_free_session> session_;
};

}  // namespace pf

#endif  // PERMAFROST_RUNTIME_HPP_
