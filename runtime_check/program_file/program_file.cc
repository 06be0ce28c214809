// Reads program files.
#include "runtime_check/program_file/program_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/base/wire.h"

namespace permafrost {
namespace {

constexpr size_t kHeaderBytes = 16;  // The magic and the size of the directory.
// Memory that no session can have; prevents sums from wrapping.
constexpr uint64_t kMostArenaBytes = uint64_t{1} << 62;

absl::Status Damaged(absl::string_view what, uint64_t number) {
  return absl::DataLossError(absl::StrCat("the program file is damaged: ", what, " ", number));
}

// Returns DataLoss for a text with control characters, which messages would quote.
absl::Status CheckText(absl::string_view text) {
  for (const char c : text) {
    if (static_cast<uint8_t>(c) < ' ') return Damaged("a name has a control character,", static_cast<uint8_t>(c));
  }
  return absl::OkStatus();
}

// Returns whether [offset, offset + bytes) starts at an aligned address and lies within `limit`.
bool IsWithin(uint64_t offset, int64_t bytes, uint64_t limit) {
  return offset % kProgramAlignment == 0 && offset <= limit && static_cast<uint64_t>(bytes) <= limit - offset;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProgramFile>> ProgramFile::Read(absl::string_view bytes, Owner owner) {
  if (bytes.size() < kHeaderBytes || !LooksLikeProgram(bytes)) {
    return absl::DataLossError(absl::StrCat("found another format or version, expected a program file of version ",
                                            static_cast<int>(kProgramMagic.back()),
                                            ", as convert_model --to=program of this version writes"));
  }
  uint64_t size;
  std::memcpy(&size, bytes.data() + kProgramMagic.size(), sizeof(size));
  if (size > bytes.size() - kHeaderBytes) return Damaged("its directory exceeds the file, with a size of", size);
  const size_t end = (kHeaderBytes + size + kProgramAlignment - 1) / kProgramAlignment * kProgramAlignment;
  std::unique_ptr<ProgramFile> file(new ProgramFile(bytes.substr(std::min(end, bytes.size())), std::move(owner)));
  PF_RETURN_IF_ERROR(file->ReadDirectory(bytes.substr(kHeaderBytes, size)));
  PF_RETURN_IF_ERROR(file->CheckPlaces());
  return file;
}

absl::Status ProgramFile::ReadDirectory(absl::string_view directory) {
  return ForEachField(directory, [this](const WireField& field) -> absl::Status {
    switch (static_cast<ProgramField>(field.number)) {
      case ProgramField::kArenaBytes:
        if (field.value > kMostArenaBytes) return Damaged("found an arena of the size", field.value);
        arena_bytes_ = static_cast<int64_t>(field.value);
        return absl::OkStatus();
      case ProgramField::kTensor:
        return ReadTensor(field.bytes);
      case ProgramField::kInput:
        return ReadEndpoint(field.bytes, &inputs_);
      case ProgramField::kOutput:
        return ReadEndpoint(field.bytes, &outputs_);
      case ProgramField::kStep:
        return ReadStep(field.bytes);
    }
    return Damaged("found a field with the number", field.number);
  });
}

absl::Status ProgramFile::ReadTensor(absl::string_view message) {
  ProgramFileTensor tensor;
  uint64_t place = 0, dtype = 0;
  WireReader reader(message);
  for (WireField field; reader.Next(&field);) {
    switch (static_cast<ProgramTensorField>(field.number)) {
      case ProgramTensorField::kDType:
        dtype = field.value;
        break;
      case ProgramTensorField::kDim:
        if (field.value > INT64_MAX) return Damaged("found the dimension", field.value);
        tensor.shape.AddDim(static_cast<int64_t>(field.value));
        break;
      case ProgramTensorField::kPlace:
        place = field.value;
        break;
      case ProgramTensorField::kOffset:
        tensor.offset = field.value;
        break;
    }
  }
  PF_RETURN_IF_ERROR(reader.status());
  if (dtype < 64) tensor.dtype = static_cast<DType>(dtype);
  const size_t size = SizeOf(tensor.dtype);
  if (size == 0) return Damaged("found a tensor of the type", dtype);
  PF_ASSIGN_OR_RETURN(const int64_t count, tensor.shape.CheckedNumElements());
  if (__builtin_mul_overflow(count, static_cast<int64_t>(size), &tensor.bytes)) {
    return Damaged("the size of a tensor overflows, number", tensors_.size());
  }
  tensor.place = static_cast<ProgramPlace>(place);
  if (place < 1 || place > 3) return Damaged("found the place", place);
  tensors_.push_back(std::move(tensor));
  return absl::OkStatus();
}

absl::Status ProgramFile::AddNumber(uint64_t number, std::vector<int>* numbers) const {
  if (number >= tensors_.size()) return Damaged("there is no tensor", number);
  numbers->push_back(static_cast<int>(number));
  return absl::OkStatus();
}

absl::Status ProgramFile::ReadEndpoint(absl::string_view message, std::vector<ProgramFileEndpoint>* endpoints) {
  ProgramFileEndpoint endpoint;
  uint64_t number = UINT64_MAX;
  WireReader reader(message);
  for (WireField field; reader.Next(&field);) {
    if (field.number == static_cast<uint32_t>(ProgramEndpointField::kTensor)) number = field.value;
    if (field.number == static_cast<uint32_t>(ProgramEndpointField::kName)) endpoint.name = field.bytes;
  }
  PF_RETURN_IF_ERROR(reader.status());
  PF_RETURN_IF_ERROR(CheckText(endpoint.name));
  if (number >= tensors_.size()) return Damaged("there is no tensor", number);
  endpoint.tensor = static_cast<int>(number);
  endpoints->push_back(endpoint);
  return absl::OkStatus();
}

absl::Status ProgramFile::ReadStep(absl::string_view message) {
  ProgramFileStep& step = steps_.emplace_back();
  Node* node = nullptr;
  absl::string_view op;
  WireReader reader(message);
  for (WireField field; reader.Next(&field);) {
    switch (static_cast<ProgramStepField>(field.number)) {
      case ProgramStepField::kOp:
        op = field.bytes;
        PF_RETURN_IF_ERROR(CheckText(op));
        break;
      case ProgramStepField::kName: {
        PF_RETURN_IF_ERROR(CheckText(field.bytes));
        PF_ASSIGN_OR_RETURN(node, graph_.AddNodeView(field.bytes, Op::Named(op), {}));
        break;
      }
      case ProgramStepField::kInput:
        PF_RETURN_IF_ERROR(AddNumber(field.value, &step.inputs));
        break;
      case ProgramStepField::kOutput:
        PF_RETURN_IF_ERROR(AddNumber(field.value, &step.outputs));
        if (tensors_[field.value].place != ProgramPlace::kArena) {
          return Damaged("a step writes to a tensor outside of the arena, number", field.value);
        }
        break;
      case ProgramStepField::kAttr: {
        if (node == nullptr) break;
        absl::string_view key, value;
        WireReader attr(field.bytes);
        for (WireField part; attr.Next(&part);) {
          (part.number == static_cast<uint32_t>(ProgramAttrField::kKey) ? key : value) = part.bytes;
        }
        PF_RETURN_IF_ERROR(attr.status());
        graph_.AppendAttrView(node, key, AttrValue::FromWire(value, nullptr));
        break;
      }
    }
  }
  PF_RETURN_IF_ERROR(reader.status());
  if (node == nullptr) return Damaged("a step has no name, number", steps_.size() - 1);
  step.node = node;
  return absl::OkStatus();
}

absl::Status ProgramFile::CheckPlaces() const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const ProgramFileTensor& tensor = tensors_[i];
    bool is_within = false;
    if (tensor.place == ProgramPlace::kInput) {
      if (tensor.offset < inputs_.size()) {
        const ProgramFileTensor& input = tensors_[inputs_[tensor.offset].tensor];
        is_within = input.place == ProgramPlace::kInput && input.offset == tensor.offset && input.bytes == tensor.bytes;
      }
    } else {
      const uint64_t limit =
          tensor.place == ProgramPlace::kArena ? static_cast<uint64_t>(arena_bytes_) : constants_.size();
      is_within = IsWithin(tensor.offset, tensor.bytes, limit);
    }
    if (!is_within) return Damaged("the place of a tensor does not fit, number", i);
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const ProgramFileTensor& tensor = tensors_[inputs_[i].tensor];
    if (tensor.place != ProgramPlace::kInput || tensor.offset != i)
      return Damaged("the place does not fit of input", i);
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ProgramFile::Constant(int tensor) const {
  const ProgramFileTensor& entry = tensors_[tensor];
  return Tensor::FromBytes(entry.dtype, entry.shape, constants_.substr(entry.offset, static_cast<size_t>(entry.bytes)),
                           owner_);
}

}  // namespace permafrost
