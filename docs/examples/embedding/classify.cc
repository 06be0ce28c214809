// Embeds a model in a C++ program: classifies images of 8 x 8 pixels as digits and prints a profile.
//
//   classify_cc digits.pb image.raw
//
// image.raw holds images of 64 floats each. Prints the most probable digit of each image and its probability.
#include <algorithm>
#include <array>
#include <cstdio>

#include "permafrost_runtime.hpp"

namespace {

int Fail(const char* what, const pf::Status& status) {
  std::fprintf(stderr, "classify: %s: %s\n", what, status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: classify MODEL IMAGES\n");
    return 2;
  }
  pf::Result<pf::Model> model = pf::Model::OpenFile(argv[1]);
  if (!model.ok()) return Fail("cannot open the model", model.status());
  pf::Result<pf::Session> session = pf::Session::Create(*model);
  if (!session.ok()) return Fail("cannot use the model", session.status());
  std::FILE* const images = std::fopen(argv[2], "rb");
  if (images == nullptr) {
    std::perror(argv[2]);
    return 1;
  }
  if (pf::Status status = session->RecordProfile(true); !status.ok()) return Fail("cannot record", status);
  alignas(64) std::array<float, 64> pixels;
  while (std::fread(pixels.data(), sizeof(pixels), 1, images) == 1) {
    // Run allocates the outputs; RunInto writes to memory of the caller.
    pf::Result<pf::Outputs> outputs = session->Run({pf::TensorOver({1, 8, 8, 1}, pixels.data(), pixels.size())});
    if (!outputs.ok()) return Fail("cannot run", outputs.status());
    const pf_tensor probabilities = (*outputs)[0];
    const float* const begin = pf::DataOf<float>(probabilities);
    const float* const best = std::max_element(begin, begin + pf::NumElements(probabilities));
    std::printf("%d %.4f\n", static_cast<int>(best - begin), *best);
  }
  std::fclose(images);
  pf::Result<pf::Profile> profile = session->GetProfile();
  if (!profile.ok()) return Fail("no profile", profile.status());
  for (const pf::ProfileEntry& entry : profile->entries) {
    std::fprintf(stderr, "%10.1f us  %s (%s)\n", entry.total_us, entry.name.c_str(), entry.op.c_str());
  }
  return 0;
}
