# Targets in one shape: include paths from the repository root, the project's warnings, the chosen sanitizers.

include(DeftToolchain)
include(DeftCuda)
find_package(Threads REQUIRED)

add_library(deft_options INTERFACE)
target_include_directories(deft_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>)
target_compile_options(deft_options INTERFACE -Wall -Wextra -Wno-unused-parameter)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 takes what std::string copies inside `"text" + std::string` for an overflow (GCC bug 105651 and its
  # like), under these three names and at every level of optimisation. GCC 13 does not.
  target_compile_options(deft_options INTERFACE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  # At -O3 it also takes a string within a copied aggregate for uninitialised when it is destroyed.
  target_compile_options(deft_options INTERFACE $<$<CONFIG:Release>:-Wno-maybe-uninitialized>)
endif()
if(DEFT_SANITIZE)
  target_compile_options(deft_options INTERFACE -fsanitize=${DEFT_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The checks that a sanitizer adds hide from GCC what is initialised (GCC bug 105562 and its like), and to GCC 12
    # a copied string's own variables look clobbered where a fiber is entered.
    target_compile_options(deft_options INTERFACE -Wno-maybe-uninitialized -Wno-clobbered)
  endif()
  target_link_options(deft_options INTERFACE -fsanitize=${DEFT_SANITIZE})
endif()

# The standard library's headers that most files include, precompiled once for all libraries: a fourth of the time to compile
# them. JSON and CLI11 stay out: functions that they define are compiled again in each file that reads their headers.
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/std_pch.cpp CONTENT "// Holds the precompiled header.\n")
add_library(deft_std_pch OBJECT ${PROJECT_BINARY_DIR}/std_pch.cpp)
target_link_libraries(deft_std_pch PRIVATE deft_options)
target_precompile_headers(deft_std_pch PRIVATE <algorithm> <array> <chrono> <cstdint> <deque> <functional> <limits> <map>
  <memory> <optional> <set> <span> <string> <string_view> <utility> <variant> <vector>)

# deft_use_std_pch(TARGET): for a library that deft_library does not make.
function(deft_use_std_pch target)
  target_precompile_headers(${target} REUSE_FROM deft_std_pch)
endfunction()

# deft_library(NAME [MLIR] SOURCES ... [LINK ...]): a static library deft_NAME. LINK is public. MLIR: its files include MLIR's
# headers.
function(deft_library name)
  cmake_parse_arguments(arg "MLIR" "" "SOURCES;LINK" ${ARGN})
  add_library(deft_${name} STATIC ${arg_SOURCES})
  target_link_libraries(deft_${name} PUBLIC deft_options ${arg_LINK})
  if(arg_MLIR)
    deft_use_mlir_pch(deft_${name})
  else()
    deft_use_std_pch(deft_${name})
  endif()
endfunction()

option(DEFT_TOGETHER "Compile most sources several at a time: a third less work for a build, more of it after a change of one file" ON)

# deft_compile_together(TARGET [COUNT]): its sources in groups of COUNT (8), each group one unit, which reads the headers
# once. Names in unnamed namespaces have to differ. A source with properties of its own stays alone, and so does a generated
# one. Call it when all sources and their properties are known. Not for what a step runs: what GCC inlines depends on its unit.
function(deft_compile_together target)
  if(NOT DEFT_TOGETHER)
    return()
  endif()
  set(most 8)
  if(ARGC GREATER 1)
    set(most ${ARGV1})
  endif()
  get_target_property(sources ${target} SOURCES)
  set(together "")
  foreach(source IN LISTS sources)
    set(alone FALSE)
    foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS SKIP_PRECOMPILE_HEADERS)
      get_source_file_property(value ${source} ${property})
      if(value)
        set(alone TRUE)
      endif()
    endforeach()
    if(NOT alone AND NOT IS_ABSOLUTE ${source} AND source MATCHES "\\.cpp$")
      list(APPEND together ${source})
    endif()
  endforeach()
  list(LENGTH together count)
  math(EXPR groups "(${count} + ${most} - 1) / ${most}")
  # By names from the repository's root, so that ccache has one object of it for all folders.
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  foreach(group RANGE 1 ${groups})
    math(EXPR begin "${count} * (${group} - 1) / ${groups}")
    math(EXPR length "${count} * ${group} / ${groups} - ${begin}")
    list(SUBLIST together ${begin} ${length} members)
    list(TRANSFORM members REPLACE "(.+)" "#include \"${folder}/\\1\"\n" OUTPUT_VARIABLE includes)
    list(JOIN includes "" text)
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/together/${target}_${group}.cpp)
    file(CONFIGURE OUTPUT ${unit} CONTENT "${text}" @ONLY)
    target_sources(${target} PRIVATE ${unit})
  endforeach()
  set_source_files_properties(${together} PROPERTIES HEADER_FILE_ONLY ON)
endfunction()

# deft_compile_quickly(TARGET): for what nobody waits for while it runs. It takes two thirds of the time to compile.
function(deft_compile_quickly target)
  target_compile_options(${target} PRIVATE -O1)
endfunction()

# GoogleTest's headers, precompiled once for all tests. An executable, because tests are compiled as such (-fPIE).
function(deft_gtest_pch)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/gtest_pch.cpp CONTENT "int main() { return 0; }\n")
  add_executable(deft_gtest_pch EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/gtest_pch.cpp)
  target_link_libraries(deft_gtest_pch PRIVATE deft_options GTest::gtest_main GTest::gmock)
  deft_compile_quickly(deft_gtest_pch)
  target_precompile_headers(deft_gtest_pch PRIVATE
    <algorithm> <filesystem> <fstream> <random> <sstream> <string> <vector> <gmock/gmock.h> <gtest/gtest.h>)
endfunction()

# deft_is_same(RESULT LIBRARY ...): whether a build with the compiler has the same of these. It differs in deft_program and
# deft_doctor, and in what links them.
function(deft_is_same result)
  set(waiting ${ARGN})
  set(seen "")
  while(NOT waiting STREQUAL "")
    list(POP_FRONT waiting library)
    if(library IN_LIST seen OR NOT TARGET ${library})
      continue()
    endif()
    if(library MATCHES "^deft(_program|_doctor)?$")
      set(${result} FALSE PARENT_SCOPE)
      return()
    endif()
    list(APPEND seen ${library})
    get_target_property(links ${library} INTERFACE_LINK_LIBRARIES)
    if(links)
      list(APPEND waiting ${links})
    endif()
  endwhile()
  set(${result} TRUE PARENT_SCOPE)
endfunction()

# deft_test(NAME SOURCES ... [LINK ...] [LABELS ...] [TIMEOUT SECONDS] [MLIR]): a GoogleTest program, its cases known to
# ctest. A case may take 300 s, or TIMEOUT. MLIR: its files include MLIR's headers. Label `long`: it takes long and is the
# same in every build, so tools/test runs it in one.
function(deft_test name)
  cmake_parse_arguments(arg "MLIR" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE deft_options ${arg_LINK} GTest::gtest_main GTest::gmock)
  if(arg_MLIR)
    deft_use_mlir_pch(${name})
  else()
    deft_compile_quickly(${name})
    if(NOT TARGET deft_gtest_pch)
      deft_gtest_pch()
    endif()
    target_precompile_headers(${name} REUSE_FROM deft_gtest_pch)
  endif()
  deft_is_same(same ${arg_LINK})
  if(DEFT_SKIP_SAME_TESTS AND same)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    return()
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  set(properties TIMEOUT ${arg_TIMEOUT})
  if(arg_LABELS) # an empty one would be left out, and its key take what comes next
    list(APPEND properties LABELS ${arg_LABELS})
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()
