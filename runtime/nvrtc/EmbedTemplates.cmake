# Writes OUTPUT, a .cpp file that holds the text of HEADERS (a list of names below ROOT). Literals know their lengths: to count these
# characters is more than Clang computes at compile time.
separate_arguments(HEADERS)
list(SORT HEADERS)
set(entries "")
foreach(name IN LISTS HEADERS)
  file(READ ${ROOT}/${name} text)
  string(APPEND entries "    {\"${name}\", R\"deft_text(${text})deft_text\"sv},\n")
endforeach()
file(WRITE ${OUTPUT} "// Generated from templates/.
#include \"runtime/nvrtc/Templates.h\"

namespace deft::nvrtc {

std::span<const TemplateHeader> templateHeaders() {
  using namespace std::string_view_literals;
  static constexpr TemplateHeader kHeaders[] = {
${entries}  };
  return kHeaders;
}

} // namespace deft::nvrtc
")
