# Writes OUTPUT, a .cpp file that holds page.html, page.css and, as page.js, SCRIPTS (names, in their order) of FOLDER. Literals know their
# lengths: to count these characters is more than Clang computes at compile time.
separate_arguments(SCRIPTS)
set(script "\"use strict\";\n(() => {\n")
foreach(name IN LISTS SCRIPTS)
  file(READ ${FOLDER}/${name} text)
  string(APPEND script "${text}")
endforeach()
string(APPEND script "})();\n")
file(READ ${FOLDER}/page.html html)
file(READ ${FOLDER}/page.css css)
file(WRITE ${OUTPUT} "// Generated from runtime/plan/report/page/.
#include \"runtime/plan/report/PlanPage.h\"

namespace deft::plan {

std::string_view pageFile(std::string_view name) {
  using namespace std::string_view_literals;
  static constexpr std::string_view kHtml = R\"deft_text(${html})deft_text\"sv;
  static constexpr std::string_view kStyle = R\"deft_text(${css})deft_text\"sv;
  static constexpr std::string_view kScript = R\"deft_text(${script})deft_text\"sv;
  return name == \"page.html\" ? kHtml : name == \"page.css\" ? kStyle : name == \"page.js\" ? kScript : std::string_view();
}

} // namespace deft::plan
")
