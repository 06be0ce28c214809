// Saves and reports packed weights.
#include "tools/model/kept_weights.h"

#include "absl/strings/str_cat.h"
#include "tools/model/weight_files.h"

namespace permafrost {

void PrintNotes(const std::vector<std::string>& notes, Console& console) {
  for (const std::string& note : notes) console.err << "note: " << Printable(note) << "\n";
}

void KeptWeights::Save(FileSystem& files, Console& console) const {
  if (cache_ == nullptr) return;
  PrintNotes(cache_->notes(), console);
  if (path_.empty()) return;
  const absl::Status status = SaveWeightCache(*cache_, files, path_);
  if (!status.ok()) PrintNotes({absl::StrCat("--cache_dir: ", status.message())}, console);
}

void KeptWeights::Print(const Console& console) const {
  if (cache_ == nullptr) return;
  console.out << "  weights packed before, from " << (path_.empty() ? "the model" : "--cache_dir") << ": "
              << FormatBytes(static_cast<uint64_t>(cache_->found().bytes))
              << "; packed now: " << FormatBytes(static_cast<uint64_t>(cache_->packed().bytes)) << "\n";
}

void KeptWeights::Write(JsonWriter* json) const {
  if (cache_ == nullptr) {
    json->Null();
    return;
  }
  json->BeginObject();
  json->Key("from").Text(path_.empty() ? "model" : "cache_dir");
  json->Key("bytes_packed_before").Integer(cache_->found().bytes);
  json->Key("bytes_packed_now").Integer(cache_->packed().bytes);
  json->End();
}

}  // namespace permafrost
