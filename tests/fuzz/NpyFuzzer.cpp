// Any bytes as a .npy file: what is read holds what its shape says, and no message has what a terminal obeys.
#include "runtime/exec/Npy.h"
#include "runtime/exec/NpyHeader.h"
#include "tests/fuzz/Require.h"

#include <algorithm>

using namespace deft;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char *>(data), size);
  if (const auto header = exec::parseNpyHeader(bytes)) {
    require(header->dataBegin <= size, "values that begin behind the file's end");
    if (const auto lengths = exec::lengthsOf(header->shape))
      require(exec::lengthsOf(exec::shapeText(*lengths)) == lengths,
              "a shape that is changed by being written");
  }
  const auto array = exec::parseNpy(bytes);
  if (!array) {
    const std::string &said = array.error().message;
    require(!said.empty() &&
                std::all_of(said.begin(), said.end(), [](char c) { return c >= ' ' && c <= '~'; }),
            "a message that cannot be shown: " + said);
  } else {
    require(array->f32.empty() || array->i32.empty(), "values of two types");
    require((array->f32.size() + array->i32.size()) * 4 <= size, "more values than bytes");
  }
  return 0;
}
