// Image distortions that simulate conditions of real use, such as blur, darkness and JPEG artefacts.
#ifndef PERMAFROST_TOOLS_IMAGES_DISTORTION_H_
#define PERMAFROST_TOOLS_IMAGES_DISTORTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/images/image.h"

namespace permafrost {

// One kind of distortion and its range of strengths.
struct DistortionKind {
  std::string name;
  std::string meaning;            // The meaning of the strength; completes "blur=S: ...".
  double least, most;             // The valid range of strengths.
  std::vector<double> strengths;  // Default strengths, from mild to harsh.
  Picture (*apply)(const Picture& picture, double strength, uint64_t seed);
};

// Returns all kinds of distortion, with strength S:
//   blur        a Gaussian blur with a standard deviation of S times the shorter side: a lens out of focus
//   dark        exposure reduced by S stops: light falls by 2^S, a pixel's value by 2^(S / 2.2)
//   off_center  a shift by S times the sides; the seed selects up or down, and left or right
//   fisheye     a point at radius r (1 in the corners) comes from radius r (1 + S r^2)
//   noise       Gaussian noise with a standard deviation of S times full brightness
//   jpeg        encoding as JPEG of quality S, and decoding
// Pixels outside the picture repeat its border. The results are whole numbers of 0..255, as a camera gives them.
const std::vector<DistortionKind>& DistortionKinds();

// A kind of distortion with a strength.
struct Distortion {
  const DistortionKind* kind = nullptr;
  double strength = 0;

  // Returns, for example, "blur=0.02".
  std::string ToString() const;
};

// Parses "blur,dark=1:2,jpeg=30": names, each with strengths or with the default strengths of its kind.
// InvalidArgument: an unknown name (with the nearest), strengths that are not numbers or out of range, a distortion
// named twice.
absl::StatusOr<std::vector<Distortion>> ParseDistortions(absl::string_view text);

// Distorts a picture. The result is the same for the same seed on every machine, as far as the C library's functions
// agree.
Picture Distort(const Picture& picture, const Distortion& distortion, uint64_t seed);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_IMAGES_DISTORTION_H_
