// Packed weights of a run, kept for the next run.
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

// The weights that a delegate packed for a model, and the resolved precision. Save() writes them after the runs.
class KeptWeights {
 public:
  KeptWeights() = default;
  // `cache` may be null. If the path is empty, packed weights are not written.
  KeptWeights(std::string precision, std::shared_ptr<WeightCache> cache, std::string path)
      : precision_(std::move(precision)), cache_(std::move(cache)), path_(std::move(path)) {}

  const std::string& precision() const { return precision_; }

  // Writes new packed weights to --cache_dir. Prints problems of the cache files and write errors as notes on the
  // console, since runs do not depend on the cache.
  void Save(FileSystem& files, Console& console) const;
  // Prints one line for --explain: the bytes packed before and now. Prints nothing without a cache.
  void Print(const Console& console) const;
  // Writes the same facts as an object, or null.
  void Write(JsonWriter* json) const;

 private:
  std::string precision_;
  std::shared_ptr<WeightCache> cache_;
  std::string path_;
};

// Prints each note on a line of the console's error stream.
void PrintNotes(const std::vector<std::string>& notes, Console& console);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_MODEL_KEPT_WEIGHTS_H_
