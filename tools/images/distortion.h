// What happens to pictures between a test set and a user's phone.
#ifndef PERMAFROST_TOOLS_IMAGES_DISTORTION_H_
#define PERMAFROST_TOOLS_IMAGES_DISTORTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/images/image.h"

namespace permafrost {

struct DistortionKind {
  std::string name;
  std::string meaning;            // What the strength is: completes "blur=S: ...".
  double least, most;             // The strengths that make sense.
  std::vector<double> strengths;  // Those that are tried when the user names none, from mild to harsh.
  Picture (*apply)(const Picture& picture, double strength, uint64_t seed);
};

// All of them:
//   blur        a Gaussian whose standard deviation is so much of the shorter side: a lens out of focus
//   dark        so many stops less light: the light falls by 2^S, the value of a pixel by 2^(S / 2.2)
//   off_center  moved by so much of the sides, up or down and left or right as the seed says
//   fisheye     what was at radius r (1 in the corners) r (1 + S r^2) away from the middle comes to r
//   noise       Gaussian, with a standard deviation of so much of full brightness
//   jpeg        written as JPEG of this quality, and read
// What comes in from outside of the picture repeats its border. The results are whole numbers of 0..255, as a camera
// gives them.
const std::vector<DistortionKind>& DistortionKinds();

struct Distortion {
  const DistortionKind* kind = nullptr;
  double strength = 0;

  // "blur=0.02".
  std::string ToString() const;
};

// Reads "blur,dark=1:2,jpeg=30": names, each with strengths or with those of its kind. InvalidArgument: an unknown name
// (with the nearest), strengths that are no numbers or out of range, a distortion named twice.
absl::StatusOr<std::vector<Distortion>> ParseDistortions(absl::string_view text);

// The same result for the same seed on every machine, as far as the C library's functions agree.
Picture Distort(const Picture& picture, const Distortion& distortion, uint64_t seed);

}  // namespace permafrost

#endif  // PERMAFROST_TOOLS_IMAGES_DISTORTION_H_
