// Writes to the slots of the library's global offset table, through which all its imported functions are called.
#include "runtime_check/delegates/imports.h"

#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

namespace permafrost {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kJumpSlot = R_X86_64_JUMP_SLOT, kGlobalData = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr uint32_t kJumpSlot = R_AARCH64_JUMP_SLOT, kGlobalData = R_AARCH64_GLOB_DAT;
#endif

#if defined(__x86_64__) || defined(__aarch64__)

struct Relocations {
  const Elf64_Rela* begin = nullptr;
  size_t count = 0;
};

struct Library {
  uintptr_t base = 0;
  uintptr_t address = 0;  // The library that is looked for contains it.
  const Elf64_Dyn* dynamic = nullptr;
  uintptr_t read_only_begin = 0, read_only_end = 0;  // What the loader made read-only after relocation.
};

int FindLibrary(struct dl_phdr_info* info, size_t, void* data) {
  auto* const library = static_cast<Library*>(data);
  bool is_inside = false;
  Library found;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const Elf64_Phdr& header = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr, end = begin + header.p_memsz;
    if (header.p_type == PT_LOAD && library->address >= begin && library->address < end) is_inside = true;
    if (header.p_type == PT_DYNAMIC) found.dynamic = reinterpret_cast<const Elf64_Dyn*>(begin);
    if (header.p_type == PT_GNU_RELRO) {
      found.read_only_begin = begin;
      found.read_only_end = end;
    }
  }
  if (!is_inside) return 0;
  found.base = info->dlpi_addr;
  found.address = library->address;
  *library = found;
  return 1;
}

class Table {
 public:
  explicit Table(const Library& library) : library_(library) {
    for (const Elf64_Dyn* entry = library.dynamic; entry->d_tag != DT_NULL; ++entry) {
      // glibc adds the base to addresses in this table, other C libraries do not.
      uintptr_t address = entry->d_un.d_ptr;
      if (address < library.base) address += library.base;
      switch (entry->d_tag) {
        case DT_SYMTAB:
          symbols_ = reinterpret_cast<const Elf64_Sym*>(address);
          break;
        case DT_STRTAB:
          names_ = reinterpret_cast<const char*>(address);
          break;
        case DT_JMPREL:
          calls_.begin = reinterpret_cast<const Elf64_Rela*>(address);
          break;
        case DT_PLTRELSZ:
          calls_.count = entry->d_un.d_val / sizeof(Elf64_Rela);
          break;
        case DT_RELA:
          data_.begin = reinterpret_cast<const Elf64_Rela*>(address);
          break;
        case DT_RELASZ:
          data_.count = entry->d_un.d_val / sizeof(Elf64_Rela);
          break;
        default:
          break;
      }
    }
  }

  // Appends the addresses of the slots of an imported function.
  void FindSlots(const char* name, std::vector<uintptr_t>* slots) const {
    if (symbols_ == nullptr || names_ == nullptr) return;
    for (const Relocations& relocations : {calls_, data_}) {
      for (size_t i = 0; relocations.begin != nullptr && i < relocations.count; ++i) {
        const Elf64_Rela& relocation = relocations.begin[i];
        const uint32_t type = static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info));
        if (type != kJumpSlot && type != kGlobalData) continue;
        const Elf64_Sym& symbol = symbols_[ELF64_R_SYM(relocation.r_info)];
        if (std::strcmp(names_ + symbol.st_name, name) == 0) slots->push_back(library_.base + relocation.r_offset);
      }
    }
  }

 private:
  const Library library_;
  const Elf64_Sym* symbols_ = nullptr;
  const char* names_ = nullptr;
  Relocations calls_, data_;
};

bool Protect(const Library& library, int protection) {
  if (library.read_only_begin == library.read_only_end) return true;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  // As the loader does: a page that is only in part read-only stays writable.
  const uintptr_t begin = library.read_only_begin / page * page, end = library.read_only_end / page * page;
  return begin >= end || mprotect(reinterpret_cast<void*>(begin), end - begin, protection) == 0;
}

#endif

}  // namespace

bool RedirectImports(const void* inside, absl::Span<const Import> imports) {
#if defined(__x86_64__) || defined(__aarch64__)
  Library library;
  library.address = reinterpret_cast<uintptr_t>(inside);
  if (dl_iterate_phdr(&FindLibrary, &library) == 0 || library.dynamic == nullptr) return false;
  const Table table(library);
  std::vector<std::vector<uintptr_t>> slots(imports.size());
  for (size_t i = 0; i < imports.size(); ++i) {
    table.FindSlots(imports[i].name, &slots[i]);
    if (slots[i].empty()) return false;
  }
  if (!Protect(library, PROT_READ | PROT_WRITE)) return false;
  for (size_t i = 0; i < imports.size(); ++i) {
    for (const uintptr_t slot : slots[i]) {
      // Another thread may call the function at this moment: it calls the one or the other.
      reinterpret_cast<std::atomic<void*>*>(slot)->store(imports[i].replacement, std::memory_order_release);
    }
  }
  Protect(library, PROT_READ);
  return true;
#else
  (void)inside;
  (void)imports;
  return false;
#endif
}

}  // namespace permafrost
