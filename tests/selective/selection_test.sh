#!/bin/sh
# Tests that a header for another version or another product is a compile error with a clear message, and that a valid
# header answers by op, attribute and type.
set -eu
folder=$TEST_TMPDIR/header
mkdir -p "$folder"

compile() {
  c++ -std=c++17 -fsyntax-only -DSELECTIVE_REGISTRATION -I"$folder" -iquote . "$1" 2>&1
}

header() {
  cat >"$folder/ops_to_register.h" <<END
#define PERMAFROST_OPS_TO_REGISTER $1
namespace permafrost { namespace ops_to_register {
inline constexpr unsigned long long kTypes = 0x80002;
inline constexpr const char* kOps[] = {"Relu", "_Arg"};
struct OpTypes { const char* op; const char* attr; unsigned long long types; };
inline constexpr OpTypes kOpTypes[] = {{"Relu", "", 0x80000}, {"Relu", "T", 0x80000}, {"", "", 0}};
inline constexpr char kHint[] = "; again";
} }
END
}

cat >"$folder/uses.cc" <<'END'
#define PERMAFROST_OPS_OF_THIS_FILE "Relu", "Tanh"
#include "graph/base/selection.h"
using namespace permafrost::selection;
static_assert(kIsSelective && HoldsOp("Relu") && !HoldsOp("Tanh") && !HoldsOp("Rel") && !HoldsOp("Relu6"), "ops");
static_assert(TypesOf("Relu", "T") == SetOf(19) && TypesOf("Relu", "U") == kAllTypes, "types of an attribute");
static_assert(kTypesHere == (SetOf(19) | SetOf(1)), "half is computed as float, and nothing else is");
static_assert(kHoldsFunctions && !kHoldsControlFlow && !kHoldsDelegates, "parts of the runtime");
END

header 100
compile "$folder/uses.cc"

header 99
compile "$folder/uses.cc" | grep -q "ops_to_register.h was generated for another version of Permafrost; generate it again"

echo '#define SHOULD_REGISTER_OP(op) true' >"$folder/ops_to_register.h"
compile "$folder/uses.cc" | grep -q "ops_to_register.h is not for Permafrost; generate it with"
