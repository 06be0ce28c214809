// Fuzz target: bytes as a file of --cache_dir: packed weights, or a precision plan in binary form.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "io/formats/packed_weights.h"
#include "runtime_check/packing/precision_plan_bytes.h"
#include "tests/fuzz/finding.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace permafrost;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<std::shared_ptr<const PackedWeightsFile>> file = OpenPackedWeights({bytes, nullptr});
  CheckError(file.status(), bytes);
  if (file.ok()) {
    for (const PackedEntry& entry : (*file)->entries()) {
      CheckError((*file)->Check(entry), bytes);
      const absl::string_view content = (*file)->Bytes(entry).bytes;
      if (content.data() < bytes.data() || content.data() + content.size() > bytes.data() + bytes.size()) {
        Fail("an entry lies outside of the file", bytes);
      }
    }
  }
  const absl::StatusOr<PrecisionPlanRecord> plan = ParsePrecisionPlanBytes(bytes);
  CheckError(plan.status(), bytes);
  if (plan.ok() && PrecisionPlanBytes(*plan) != bytes) Fail("the plan has another form", bytes);
  return 0;
}
