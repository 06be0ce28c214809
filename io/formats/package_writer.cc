// Implements writing of the regions and the directory of a package.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "graph/wire_format/node_def.h"
#include "io/formats/graphdef.h"
#include "io/formats/memmapped_package.h"
#include "io/formats/package_directory.h"
#include "io/little_endian.h"

namespace permafrost {
namespace {

bool IsNameCharacter(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

// Appends a field unless it is zero, which proto3 omits.
void AppendUnlessZero(uint32_t number, uint64_t value, std::string* out) {
  if (value != 0) AppendVarintField(number, value, out);
}

std::string EncodeEntry(absl::string_view name, uint64_t offset, uint64_t length) {
  std::string element, entry;
  AppendUnlessZero(package_directory::kOffset, offset, &element);
  AppendBytesField(package_directory::kName, name, &element);
  AppendUnlessZero(package_directory::kLength, length, &element);
  AppendBytesField(package_directory::kElement, element, &entry);
  return entry;
}

}  // namespace

absl::Status PackageWriter::Write(absl::string_view bytes) {
  offset_ += bytes.size();
  return bytes.empty() ? absl::OkStatus() : sink_->Append(bytes);
}

absl::Status PackageWriter::EndRegion() {
  if (name_.empty()) return absl::OkStatus();
  if (offset_ == begin_) {
    return absl::InvalidArgumentError(absl::StrCat("the region ", Quoted(name_), " has no bytes"));
  }
  directory_.append(EncodeEntry(name_, begin_, offset_ - begin_));
  name_.clear();
  return absl::OkStatus();
}

absl::Status PackageWriter::Begin(absl::string_view name) {
  const absl::string_view rest = absl::StripPrefix(name, kPackagePrefix);
  if (rest.size() == name.size() || !std::all_of(rest.begin(), rest.end(), IsNameCharacter)) {
    return absl::InvalidArgumentError(absl::StrCat("a region has the name ", Quoted(name), ", expected '",
                                                   kPackagePrefix, "' and letters, digits, '_' and '.'"));
  }
  if (!names_.insert(std::string(name)).second) {
    return absl::InvalidArgumentError(absl::StrCat("two regions have the name ", Quoted(name)));
  }
  name_ = std::string(name);
  begin_ = offset_;
  return absl::OkStatus();
}

absl::Status PackageWriter::BeginTensor(absl::string_view name) { return BeginAligned(name, alignment_); }

absl::Status PackageWriter::BeginAligned(absl::string_view name, uint64_t alignment) {
  PF_RETURN_IF_ERROR(EndRegion());
  static constexpr char kZeros[kPageAlignment] = {};
  for (uint64_t padding = AlignUp(offset_, alignment) - offset_; padding > 0;) {
    const uint64_t count = std::min<uint64_t>(padding, sizeof(kZeros));
    PF_RETURN_IF_ERROR(Write(absl::string_view(kZeros, count)));
    padding -= count;
  }
  return Begin(name);
}

absl::Status PackageWriter::BeginMessage(absl::string_view name) {
  PF_RETURN_IF_ERROR(EndRegion());
  return Begin(name);
}

absl::Status PackageWriter::Append(absl::string_view bytes) { return Write(bytes); }

absl::Status PackageWriter::AddTensor(absl::string_view name, absl::string_view elements) {
  PF_RETURN_IF_ERROR(BeginTensor(name));
  return Append(elements);
}

absl::Status PackageWriter::AddGraph(const Graph& graph) {
  PF_RETURN_IF_ERROR(BeginMessage(kPackageGraphName));
  RegionSink region(this);
  return WriteGraphDef(graph, &region);
}

absl::Status PackageWriter::Finish() {
  PF_RETURN_IF_ERROR(EndRegion());
  std::string end = std::move(directory_);
  AppendLittleEndian64(offset_, &end);
  return Write(end);
}

uint64_t PackageEntrySize(absl::string_view name, uint64_t offset, uint64_t length) {
  return EncodeEntry(name, offset, length).size();
}

std::string RegionNames::NameFor(absl::string_view node_name) {
  std::string name = absl::StrCat(kPackagePrefix, node_name);
  for (size_t i = kPackagePrefix.size(); i < name.size(); ++i) {
    if (!IsNameCharacter(name[i])) name[i] = '_';
  }
  // Many names may differ only in replaced characters, so no suffix is tried twice and the number of "_" is limited.
  constexpr size_t kMostUnderscores = 64;
  size_t& suffix = suffixes_[name];
  std::string unique;
  do {
    unique =
        suffix <= kMostUnderscores ? absl::StrCat(name, std::string(suffix, '_')) : absl::StrCat(name, "_", suffix);
    ++suffix;
  } while (!taken_.insert(unique).second);
  return unique;
}

}  // namespace permafrost
