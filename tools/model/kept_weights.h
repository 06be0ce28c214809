// Packed weights of a run, which are kept for the next one.
#ifndef PERMAFROST_TOOLS_MODEL_KEPT_WEIGHTS_H_
#define PERMAFROST_TOOLS_MODEL_KEPT_WEIGHTS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/file_system.h"
#include "runtime_check/packing/weight_cache.h"
#include "tools/command_line/console.h"
#include "tools/command_line/json.h"

namespace permafrost {

// The weights that a delegate packed for a model, and the precision that was resolved for it. Saved when the runs are
// done.
class KeptWeights {
 public:
  KeptWeights() = default;
  // `cache` may be null. An empty path: what is packed is not written.
  KeptWeights(std::string precision, std::shared_ptr<WeightCache> cache, std::string path)
      : precision_(std::move(precision)), cache_(std::move(cache)), path_(std::move(path)) {}

  const std::string& precision() const { return precision_; }

  // Writes what was packed to --cache_dir. Prints, as notes on the console, what was wrong with the files there, and
  // errors of writing: runs do not depend on them.
  void Save(FileSystem& files, Console& console) const;
  // For --explain: prints in one line how many bytes were packed before and now; nothing without a cache.
  void Print(const Console& console) const;
  // The same as an object, or null.
  void Write(JsonWriter* json) const;

 private:
  std::string precision_;
  std::shared_ptr<WeightCache> cache_;
  std::string path_;
};

// Prints each note in a line on the console's error stream.
void PrintNotes(const std::vector<std::string>& notes, Console& console);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_KEPT_WEIGHTS_H_
