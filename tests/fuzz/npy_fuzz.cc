// Fuzz target: bytes as an NPY file. An array that is read must survive writing and reading.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "io/formats/npy.h"
#include "tests/fuzz/finding.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace permafrost;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Tensor> tensor = ParseNpy(bytes, nullptr);
  CheckError(tensor.status(), bytes);
  if (!tensor.ok()) return 0;
  StringSink written;
  if (!WriteNpy(*tensor, &written).ok()) return 0;  // Strings are not written.
  const absl::StatusOr<Tensor> again = ParseNpy(written.text(), nullptr);
  if (!again.ok()) Fail(again.status().message(), bytes);
  if (again->dtype() != tensor->dtype() || again->shape() != tensor->shape() || again->bytes() != tensor->bytes()) {
    Fail("the array is another one", bytes);
  }
  return 0;
}
