# Writes OUTPUT, a .cpp file that holds the text of HEADERS (a list of names below ROOT).
separate_arguments(HEADERS)
list(SORT HEADERS)
set(entries "")
foreach(name IN LISTS HEADERS)
  file(READ ${ROOT}/${name} text)
  string(APPEND entries "    {\"${name}\", R\"deft_text(${text})deft_text\"},\n")
endforeach()
file(WRITE ${OUTPUT} "// Generated from templates/.
#include \"runtime/nvrtc/Templates.h\"

namespace deft::nvrtc {

std::span<const TemplateHeader> templateHeaders() {
  static constexpr TemplateHeader kHeaders[] = {
${entries}  };
  return kHeaders;
}

} // namespace deft::nvrtc
")
