// Looks up packed weights, resolves the precision, and creates the delegate.
#include "tools/model/delegate_resolution.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/content_hash.h"
#include "graph/base/status.h"
#include "io/byte_source.h"
#include "io/model_file.h"
#include "runtime_check/delegates/delegate_list.h"
#include "runtime_check/delegates/delegate_registry.h"
#include "runtime_check/packing/packed_region.h"
#include "runtime_check/packing/precision_plan_bytes.h"
#include "tools/model/best_delegate.h"
#include "tools/model/precision_plan_file.h"
#include "tools/model/run_options.h"
#include "tools/model/weight_files.h"

namespace permafrost {
namespace {

// Returns whether the model is, or may be, encrypted: its weights must not be written to a folder.
bool IsSecret(FileSystem& files, const std::string& path) {
  const absl::StatusOr<std::shared_ptr<const ByteSource>> source = OpenModelBytes(files, path);
  // A folder (a SavedModel) is never encrypted.
  if (!source.ok()) return !files.Stat(path).ok() || !files.Stat(path)->is_directory;
  return (*source)->is_secret();
}

class DelegateResolver {
 public:
  DelegateResolver(const RunFlags& run, const ModelToRun& model, absl::Span<const std::vector<Tensor>> samples,
                   FileSystem& files, SessionOptions* chosen, Console& console)
      : run_(run), model_(model), samples_(samples), files_(files), chosen_(*chosen), console_(console) {}

  absl::StatusOr<KeptWeights> Run() {
    if (run_.delegate == kBestDelegate) {
      PF_ASSIGN_OR_RETURN(chosen_.delegate, ChooseBestDelegate(run_, model_, samples_, chosen_, console_));
      return KeptWeights(DelegateOptions().precision, nullptr, "");
    }
    const bool may_keep = model_.keeps_weights && !IsLibrary(run_);
    const std::string identity = may_keep ? PackingIdentity(run_.delegate) : "";
    std::shared_ptr<const PackedWeightsFile> region;
    if (!identity.empty()) {
      std::vector<std::string> notes;
      region = FindPackedRegion(files_, model_.path, run_.delegate, Asked(), identity, &notes);
      PrintNotes(notes, console_);
    }
    // A plan given by the user takes precedence.
    if (region != nullptr && run_.precision_plan.empty()) return FromPackage(std::move(region));
    FindCacheDir(identity);
    if (NeedsSamples(run_)) {
      const bool has_file = !run_.precision_plan.empty() || !cache_dir_.empty();
      PF_ASSIGN_OR_RETURN(precision_, ResolvePrecision(run_, model_, samples_, has_file ? Fingerprint() : "",
                                                       cache_dir_, chosen_, files_, console_));
    } else {
      precision_.precision = Asked();
    }
    return FromFolder(identity);
  }

 private:
  std::string Asked() const { return run_.precision.empty() ? DelegateOptions().precision : run_.precision; }

  absl::StatusOr<KeptWeights> FromPackage(std::shared_ptr<const PackedWeightsFile> region) {
    std::shared_ptr<WeightCache> cache = CacheOf(std::move(region));
    PF_ASSIGN_OR_RETURN(const DelegateOptions packed, AsPacked(cache));
    precision_ = {packed.precision, packed.plan};
    if (packed.plan != nullptr) console_.err << "precision " << precision_.precision << ": as the model is packed\n";
    PF_RETURN_IF_ERROR(Make(cache));
    return KeptWeights(precision_.precision, std::move(cache), "");
  }

  // Computed once, since it reads all weights.
  const std::string& Fingerprint() {
    if (fingerprint_.empty()) fingerprint_ = ModelFingerprint(model_.graph);
    return fingerprint_;
  }

  // Sets cache_dir_ if the weights may be kept there.
  void FindCacheDir(const std::string& identity) {
    if (run_.cache_dir.empty() || identity.empty()) return;
    if (IsSecret(files_, model_.path)) {
      PrintNotes({"--cache_dir is not used: the model is encrypted, and its weights would lie there for all to read"},
                 console_);
      return;
    }
    cache_dir_ = run_.cache_dir;
  }

  absl::StatusOr<KeptWeights> FromFolder(const std::string& identity) {
    if (cache_dir_.empty()) {
      if (NeedsSamples(run_)) PF_RETURN_IF_ERROR(Make(nullptr));
      return KeptWeights(precision_.precision, nullptr, "");
    }
    PackedMaker maker{Fingerprint(), run_.delegate, identity, precision_.precision, ""};
    if (precision_.plan != nullptr) {
      // The hash distinguishes plans.
      maker.plan = absl::StrFormat("%016x", HashContent(PrecisionPlanBytes({"", "", "", precision_.plan})));
    }
    std::string path = CachePath(cache_dir_, maker);
    std::vector<std::string> notes;
    std::shared_ptr<WeightCache> cache = OpenWeightCache(files_, path, std::move(maker), &notes);
    PrintNotes(notes, console_);
    PF_RETURN_IF_ERROR(Make(cache));
    return KeptWeights(precision_.precision, std::move(cache), std::move(path));
  }

  absl::Status Make(std::shared_ptr<WeightCache> cache) {
    chosen_.packed = cache;
    DelegateOptions options{precision_.precision, precision_.plan, std::move(cache)};
    SetSwitches(run_, &options);
    options.blobs = BlobsOf(run_, files_);
    PF_ASSIGN_OR_RETURN(chosen_.delegate, MakeDelegates(run_.delegate, options));
    return absl::OkStatus();
  }

  const RunFlags& run_;
  const ModelToRun& model_;
  const absl::Span<const std::vector<Tensor>> samples_;
  FileSystem& files_;
  SessionOptions& chosen_;
  Console& console_;
  std::string cache_dir_;    // Empty: no cache folder.
  std::string fingerprint_;  // See Fingerprint.
  ResolvedPrecision precision_;
};

}  // namespace

absl::StatusOr<KeptWeights> ResolveDelegate(const RunFlags& run, const ModelToRun& model,
                                            absl::Span<const std::vector<Tensor>> samples, FileSystem& files,
                                            SessionOptions* chosen, Console& console) {
  return DelegateResolver(run, model, samples, files, chosen, console).Run();
}

}  // namespace permafrost
