// Wraps oneDNN, through its C functions where performance matters.
#include "runtime_check/delegates/onednn/primitives.h"

#include <cstring>

namespace permafrost {
namespace onednn {
namespace {

const dnnl::stream& CpuStream() {
  static const auto* const stream = new dnnl::stream(CpuEngine());
  return *stream;
}

bool Has(dnnl::cpu_isa wanted) {
  // Each bit is an instruction set.
  const auto bits = static_cast<unsigned>(wanted);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

}  // namespace

const dnnl::engine& CpuEngine() {
  static const auto* const engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

bool HasBf16() { return Has(dnnl::cpu_isa::avx512_core); }
bool HasBf16Instructions() { return Has(dnnl::cpu_isa::avx512_core_bf16); }
bool HasInt8() { return Has(dnnl::cpu_isa::avx512_core_vnni); }

dnnl::memory::data_type TypeOf(Element element) {
  switch (element) {
    case Element::kFloat:
      return dnnl::memory::data_type::f32;
    case Element::kBf16:
      return dnnl::memory::data_type::bf16;
    case Element::kU8:
      return dnnl::memory::data_type::u8;
    case Element::kS8:
      return dnnl::memory::data_type::s8;
  }
  return dnnl::memory::data_type::undef;
}

dnnl::memory::desc ImageDesc(int64_t batch, int64_t height, int64_t width, int64_t channels, Element element) {
  return dnnl::memory::desc({batch, channels, height, width}, TypeOf(element), dnnl::memory::format_tag::nhwc);
}

bool IsReferenceImplementation(const char* name) { return std::strstr(name, "ref") != nullptr; }

void BoundPrimitive::Bind(int argument, dnnl::memory memory) {
  arguments_.push_back({argument, memory.get()});
  pointers_.push_back(memory.get_data_handle());
  memories_.push_back(std::move(memory));
}

int BoundPrimitive::Declare(int argument, const dnnl::memory::desc& desc) {
  Bind(argument, dnnl::memory(desc, CpuEngine(), nullptr));
  return static_cast<int>(memories_.size()) - 1;
}

void BoundPrimitive::SetPointer(int number, void* pointer) {
  if (pointers_[number] == pointer) return;
  pointers_[number] = pointer;
  dnnl_memory_set_data_handle_v2(memories_[number].get(), pointer, nullptr);
}

absl::Status BoundPrimitive::Run() {
  const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), CpuStream().get(),
                                                      static_cast<int>(arguments_.size()), arguments_.data());
  if (status == dnnl_success) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("oneDNN failed to run a primitive, with status ", static_cast<int>(status)));
}

}  // namespace onednn
}  // namespace permafrost
