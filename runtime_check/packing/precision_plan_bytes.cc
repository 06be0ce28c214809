// Encodes plans as a signature, a hash, and a message in protobuf's wire format.
#include "runtime_check/packing/precision_plan_bytes.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/base/casts.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/content_hash.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"

namespace permafrost {
namespace {

constexpr absl::string_view kMark = "PFPLAN01";
constexpr size_t kHashBytes = sizeof(uint64_t);

enum Field : uint32_t { kModel = 1, kDelegate = 2, kPrecision = 3, kOthers = 4, kNode = 5, kTensor = 6 };
enum NodeField : uint32_t { kNodeName = 1, kNodePrecision = 2 };
enum TensorField : uint32_t { kTensorName = 1, kLeast = 2, kMost = 3, kBound = 4, kMeans = 5 };

std::string HashBytes(absl::string_view message) {
  const uint64_t hash = HashContent(message);
  return std::string(reinterpret_cast<const char*>(&hash), kHashBytes);
}

absl::StatusOr<Precision> PrecisionOf(uint64_t value) {
  if (value > static_cast<uint64_t>(Precision::kBf16x3)) {
    return absl::DataLossError(absl::StrCat("found precision ", value, ", expected 0 to 3"));
  }
  return static_cast<Precision>(value);
}

absl::Status ReadNode(absl::string_view message, PrecisionPlan* plan) {
  std::string name;
  Precision precision = Precision::kF32;
  PF_RETURN_IF_ERROR(ForEachField(message, [&](const WireField& field) -> absl::Status {
    if (field.number == kNodeName && field.type == WireType::kLengthDelimited) name = std::string(field.bytes);
    if (field.number == kNodePrecision && field.type == WireType::kVarint) {
      PF_ASSIGN_OR_RETURN(precision, PrecisionOf(field.value));
    }
    return absl::OkStatus();
  }));
  plan->nodes[name] = precision;
  return absl::OkStatus();
}

absl::Status ReadTensor(absl::string_view message, PrecisionPlan* plan) {
  std::string name;
  TensorStatistics statistics;
  PF_RETURN_IF_ERROR(ForEachField(message, [&](const WireField& field) -> absl::Status {
    if (field.type == WireType::kFixed32) {
      const float value = absl::bit_cast<float>(static_cast<uint32_t>(field.value));
      if (field.number == kLeast) statistics.least = value;
      if (field.number == kMost) statistics.most = value;
      if (field.number == kBound) statistics.bound = value;
    }
    if (field.type == WireType::kLengthDelimited && field.number == kTensorName) name = std::string(field.bytes);
    if (field.type == WireType::kLengthDelimited && field.number == kMeans) {
      if (field.bytes.size() % sizeof(float) != 0) return absl::DataLossError("found a part of a number");
      statistics.means.resize(field.bytes.size() / sizeof(float));
      if (!field.bytes.empty()) std::memcpy(statistics.means.data(), field.bytes.data(), field.bytes.size());
    }
    return absl::OkStatus();
  }));
  if (!std::isfinite(statistics.least) || !std::isfinite(statistics.most) || !(statistics.least <= statistics.most) ||
      !std::isfinite(statistics.bound) || statistics.bound < 0) {
    return absl::DataLossError(absl::StrCat("tensor '", name, "': found a range that is none"));
  }
  plan->tensors[name] = std::move(statistics);
  return absl::OkStatus();
}

}  // namespace

std::string PrecisionPlanBytes(const PrecisionPlanRecord& record) {
  std::string message;
  AppendBytesField(kModel, record.model, &message);
  AppendBytesField(kDelegate, record.delegate, &message);
  AppendBytesField(kPrecision, record.precision, &message);
  if (record.plan != nullptr) {
    AppendVarintField(kOthers, static_cast<uint64_t>(record.plan->precision), &message);
    for (const auto& [name, precision] : record.plan->nodes) {
      std::string node;
      AppendBytesField(kNodeName, name, &node);
      AppendVarintField(kNodePrecision, static_cast<uint64_t>(precision), &node);
      AppendBytesField(kNode, node, &message);
    }
    for (const auto& [name, statistics] : record.plan->tensors) {
      std::string tensor;
      AppendBytesField(kTensorName, name, &tensor);
      AppendFixed32Field(kLeast, absl::bit_cast<uint32_t>(statistics.least), &tensor);
      AppendFixed32Field(kMost, absl::bit_cast<uint32_t>(statistics.most), &tensor);
      AppendFixed32Field(kBound, absl::bit_cast<uint32_t>(statistics.bound), &tensor);
      const auto* means = reinterpret_cast<const char*>(statistics.means.data());
      AppendBytesField(kMeans, absl::string_view(means, statistics.means.size() * sizeof(float)), &tensor);
      AppendBytesField(kTensor, tensor, &message);
    }
  }
  return absl::StrCat(kMark, HashBytes(message), message);
}

absl::StatusOr<PrecisionPlanRecord> ParsePrecisionPlanBytes(absl::string_view bytes) {
  if (!absl::StartsWith(bytes, kMark)) {
    return absl::InvalidArgumentError(absl::StrCat("found no '", kMark, "' at the start, expected a precision plan"));
  }
  bytes.remove_prefix(kMark.size());
  const absl::string_view hash = bytes.substr(0, kHashBytes);
  bytes.remove_prefix(hash.size());
  if (hash != HashBytes(bytes)) return absl::DataLossError("the precision plan is damaged");
  PrecisionPlanRecord record;
  std::shared_ptr<PrecisionPlan> plan;
  const auto made = [&]() -> PrecisionPlan* {
    if (plan == nullptr) plan = std::make_shared<PrecisionPlan>();
    return plan.get();
  };
  PF_RETURN_IF_ERROR(ForEachField(bytes, [&](const WireField& field) -> absl::Status {
    if (field.type == WireType::kVarint && field.number == kOthers) {
      PF_ASSIGN_OR_RETURN(made()->precision, PrecisionOf(field.value));
    }
    if (field.type != WireType::kLengthDelimited) return absl::OkStatus();
    switch (field.number) {
      case kModel:
        record.model = std::string(field.bytes);
        return absl::OkStatus();
      case kDelegate:
        record.delegate = std::string(field.bytes);
        return absl::OkStatus();
      case kPrecision:
        record.precision = std::string(field.bytes);
        return absl::OkStatus();
      case kNode:
        return ReadNode(field.bytes, made());
      case kTensor:
        return ReadTensor(field.bytes, made());
      default:
        return absl::OkStatus();
    }
  }));
  record.plan = std::move(plan);
  return record;
}

}  // namespace permafrost
