// Implements the delegate interface with the C functions of a shared library.
#include "runtime_check/delegates/external/external_delegate.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/node_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime_check/delegates/external/compiled_code.h"
#include "runtime_check/delegates/external/partition_view.h"
#include "runtime_check/delegates/external/permafrost_delegate.h"
#include "runtime_check/delegates/external/shared_library.h"

namespace permafrost {
namespace {

// The delegate struct that the entry has filled in. It is destroyed with the last object that uses the library.
struct LoadedDelegate {
  ~LoadedDelegate() {
    if (is_made && delegate.value.destroy != nullptr) delegate.value.destroy(delegate.value.self);
  }

  std::shared_ptr<const SharedLibrary> library;
  Fillable<permafrost_delegate> delegate;
  std::string name;
  bool is_made = false;
};

// The receiver of a library's profile reports. Names need to be valid only during the call, so they are copied.
struct PieceReport {
  const PieceCallback& on_piece;
  absl::node_hash_set<std::string>& names;
};

void ReportPiece(void* context, const char* name, int64_t nanoseconds) {
  const auto& report = *static_cast<const PieceReport*>(context);
  report.on_piece(*report.names.emplace(name == nullptr ? "" : name).first, absl::Nanoseconds(nanoseconds));
}

class ExternalPartition final : public CompiledPartition {
 public:
  explicit ExternalPartition(std::unique_ptr<CompiledCode> code) : code_(std::move(code)) {}

  int64_t scratch_bytes() const override { return code_->scratch_bytes(); }
  int64_t constant_bytes() const override { return code_->constant_bytes(); }
  std::vector<std::string> Describe() const override { return code_->Describe(); }
  absl::Status Run(absl::Span<const char* const> inputs, absl::Span<char* const> outputs, char* scratch,
                   const PieceCallback& on_piece) override {
    inputs_.assign(inputs.begin(), inputs.end());
    outputs_.assign(outputs.begin(), outputs.end());
    permafrost_run run = {};
    run.inputs = inputs_.data();
    run.outputs = outputs_.data();
    run.scratch = scratch;
    PieceReport report{on_piece, names_};
    if (on_piece != nullptr) {
      run.on_piece = &ReportPiece;
      run.piece_context = &report;
    }
    return code_->Run(run);
  }

 private:
  std::unique_ptr<CompiledCode> code_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  absl::node_hash_set<std::string> names_;  // Names of pieces.
};

class ExternalDelegate final : public Delegate {
 public:
  explicit ExternalDelegate(std::shared_ptr<const LoadedDelegate> loaded)
      : loaded_(std::move(loaded)), delegate_(loaded_->delegate.value) {}

  absl::string_view name() const override { return loaded_->name; }

  absl::Status Supports(const Partition& single) const override {
    const PartitionView view(single);
    ErrorBuffer error;
    return error.ToStatus(delegate_.supports(delegate_.self, view.get(), error.data(), error.size()));
  }

  bool IsWorthwhile(const Partition& partition) const override {
    if (delegate_.is_worthwhile == nullptr) return true;
    const PartitionView view(partition);
    return delegate_.is_worthwhile(delegate_.self, view.get()) != 0;
  }

  absl::StatusOr<std::unique_ptr<CompiledPartition>> Compile(const Partition& partition,
                                                             int num_threads) const override {
    PartitionView view(partition);
    Fillable<permafrost_compiled> compiled;
    ErrorBuffer error;
    PF_RETURN_IF_ERROR(error.ToStatus(
        delegate_.compile(delegate_.self, view.get(), num_threads, &compiled.value, error.data(), error.size())));
    PF_ASSIGN_OR_RETURN(std::unique_ptr<CompiledCode> code,
                        CompiledCode::Take(compiled.value, view.TakeConstants(), loaded_));
    return std::make_unique<ExternalPartition>(std::move(code));
  }

  // Numbers that are no speeds are ignored.
  DelegateSpeed Speed(int num_threads) const override {
    DelegateSpeed speed;
    if (delegate_.speed == nullptr) return speed;
    permafrost_speed given = {sizeof(given), speed.flops_per_ns, speed.bytes_per_ns,
                              speed.node_ns, speed.entry_ns,     speed.transfer_bytes_per_ns};
    delegate_.speed(delegate_.self, num_threads, &given);
    const auto take = [](double from, bool may_be_zero, double* to) {
      if (std::isfinite(from) && (from > 0 || (may_be_zero && from == 0))) *to = from;
    };
    take(given.flops_per_ns, false, &speed.flops_per_ns);
    take(given.bytes_per_ns, false, &speed.bytes_per_ns);
    take(given.node_ns, true, &speed.node_ns);
    take(given.entry_ns, true, &speed.entry_ns);
    take(given.transfer_bytes_per_ns, true, &speed.transfer_bytes_per_ns);
    return speed;
  }

  double EstimateNanoseconds(const Partition& single) const override {
    if (delegate_.estimate_ns == nullptr) return -1;
    const PartitionView view(single);
    const double estimate = delegate_.estimate_ns(delegate_.self, view.get());
    return std::isfinite(estimate) ? estimate : -1;
  }

 private:
  std::shared_ptr<const LoadedDelegate> loaded_;
  const permafrost_delegate& delegate_;
};

absl::Status CallEntry(void* symbol, LoadedDelegate* loaded) {
  const auto entry = reinterpret_cast<permafrost_delegate_entry_function>(symbol);
  permafrost_delegate& delegate = loaded->delegate.value;
  ErrorBuffer error;
  const int32_t result = entry(&ExternalHost(), &delegate, error.data(), error.size());
  // Checks the version first, since a library with an incompatible version may have failed for that reason.
  if (delegate.major != 0) PF_RETURN_IF_ERROR(CheckAbiVersion(delegate.major, delegate.minor));
  if (const absl::Status status = error.ToStatus(result); !status.ok()) {
    return absl::InternalError(absl::StrCat("permafrost_delegate_entry failed: ", status.message()));
  }
  PF_RETURN_IF_ERROR(CheckAbiVersion(delegate.major, delegate.minor));
  loaded->is_made = true;
  const auto missing = [](absl::string_view member) {
    return absl::InternalError(absl::StrCat("permafrost_delegate_entry does not set '", member, "'"));
  };
  if (delegate.name == nullptr || *delegate.name == '\0') return missing("name");
  if (delegate.supports == nullptr) return missing("supports");
  if (delegate.compile == nullptr) return missing("compile");
  loaded->name = delegate.name;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Delegate>> LoadExternalDelegate(const std::string& path) {
  const auto loaded = std::make_shared<LoadedDelegate>();
  PF_ASSIGN_OR_RETURN(loaded->library, SharedLibrary::Load(path));
  PF_ASSIGN_OR_RETURN(void* entry, loaded->library->Find("permafrost_delegate_entry"));
  PF_RETURN_IF_ERROR(Annotate(CallEntry(entry, loaded.get()), absl::StrCat("'", path, "'")));
  return std::make_shared<const ExternalDelegate>(loaded);
}

}  // namespace permafrost
