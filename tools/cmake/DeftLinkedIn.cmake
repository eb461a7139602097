# What others wrote and our binaries have inside, told twice: as a CycloneDX document (the SBOM, deftc.cdx.json) and as the
# texts of the licences (THIRD_PARTY_LICENCES.txt). Both are made of one list, of what this build links, in its versions; the texts are
# those that came with the development files here. A package needs them all; another build says which it has not.
set(deft_linked_folder ${PROJECT_BINARY_DIR}/linked_in)
set(deft_components "")
set(deft_depends "")
set(deft_notices "What others wrote and is inside the library `deft` and the tool `deftc`, with its licences.\n")

# deft_linked_in(NAME VERSION LICENCE PURL WHAT FILES...): FILES: where the text lies, as many as are there.
function(deft_linked_in name version licence purl what)
  # An exception makes an expression of an identifier.
  if(licence MATCHES " WITH ")
    set(choice "{\"expression\": \"${licence}\"}")
  else()
    set(choice "{\"license\": {\"id\": \"${licence}\"}}")
  endif()
  if(deft_components)
    string(APPEND deft_components ",\n")
  endif()
  string(APPEND deft_components "    {\"type\": \"library\", \"bom-ref\": \"${purl}@${version}\", \"name\": \"${name}\", \"version\": \"${version}\", "
    "\"description\": \"${what}\", \"licenses\": [${choice}], \"purl\": \"${purl}@${version}\"}")
  if(deft_depends)
    string(APPEND deft_depends ", ")
  endif()
  string(APPEND deft_depends "\"${purl}@${version}\"")
  set(text "")
  foreach(file IN LISTS ARGN)
    if(EXISTS ${file})
      file(READ ${file} part)
      string(APPEND text "${part}")
    endif()
  endforeach()
  if(NOT text AND DEFT_CARRY_AWAY)
    message(FATAL_ERROR "the licence of ${name} is in none of ${ARGN}, and a package has to have it")
  elseif(NOT text)
    set(text "The text was not on the machine that built this.\n")
  endif()
  string(APPEND deft_notices "\n==== ${name} ${version}: ${what}\n==== ${licence}\n\n${text}")
  foreach(variable deft_components deft_depends deft_notices)
    set(${variable} "${${variable}}" PARENT_SCOPE)
  endforeach()
endfunction()

# deft_version_in(RESULT FILE PATTERN): the version that a header says, in one or more groups.
function(deft_version_in result file pattern)
  set(version unknown)
  if(EXISTS "${file}")
    file(READ ${file} text)
    if(text MATCHES "${pattern}")
      string(REGEX REPLACE "\\.+$" "" version "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}.${CMAKE_MATCH_3}")
    endif()
  endif()
  set(${result} ${version} PARENT_SCOPE)
endfunction()

deft_version_in(asio_version "${DEFT_ASIO_INCLUDE_DIR}/asio/version.hpp" "([0-9]+\\.[0-9]+\\.[0-9]+)")
string(REGEX MATCH "^[0-9]+" compiler_major ${CMAKE_CXX_COMPILER_VERSION})
set(doc /usr/share/doc)
set(apache /usr/share/common-licenses/Apache-2.0)
deft_linked_in("JSON for Modern C++" ${nlohmann_json_VERSION} MIT pkg:github/nlohmann/json "reads and writes JSON"
  ${doc}/nlohmann-json3-dev/copyright)
deft_linked_in(CLI11 ${CLI11_VERSION} BSD-3-Clause pkg:github/CLIUtils/CLI11 "options of the command line; in deftc alone"
  ${doc}/libcli11-dev/copyright)
deft_linked_in(Asio ${asio_version} BSL-1.0 pkg:github/chriskohlhoff/asio "the threads of the executor for CPUs"
  ${doc}/libasio-dev/copyright)
if(DEFT_NVTX_INCLUDE_DIR)
  deft_version_in(nvtx_version ${DEFT_NVTX_INCLUDE_DIR}/nvtx3/nvToolsExt.h "#define NVTX_VERSION +([0-9]+)")
  deft_linked_in(NVTX ${nvtx_version} "Apache-2.0 WITH LLVM-exception" pkg:github/NVIDIA/NVTX "ranges for profilers"
    ${apache})
endif()
if(DEFT_CARRY_AWAY AND DEFT_ENABLE_COMPILER)
  find_path(DEFT_ZLIB_INCLUDE_DIR zlib.h)
  find_path(DEFT_ZSTD_INCLUDE_DIR zstd.h)
  deft_version_in(zlib_version "${DEFT_ZLIB_INCLUDE_DIR}/zlib.h" "#define ZLIB_VERSION \"([0-9.]+)")
  deft_version_in(zstd_version "${DEFT_ZSTD_INCLUDE_DIR}/zstd.h"
    "ZSTD_VERSION_MAJOR +([0-9]+).*ZSTD_VERSION_MINOR +([0-9]+).*ZSTD_VERSION_RELEASE +([0-9]+)")
  deft_linked_in("LLVM, MLIR and LLD" "${LLVM_PACKAGE_VERSION}" "Apache-2.0 WITH LLVM-exception" pkg:github/llvm/llvm-project
    "the IR, its passes, native code and its linker" ${doc}/llvm-22-dev/copyright ${apache})
  deft_linked_in(zlib ${zlib_version} Zlib pkg:github/madler/zlib "asked for by LLVM" ${doc}/zlib1g-dev/copyright)
  deft_linked_in(Zstandard ${zstd_version} BSD-3-Clause pkg:github/facebook/zstd "asked for by LLVM"
    ${doc}/libzstd-dev/copyright)
endif()
if(DEFT_CARRY_AWAY)
  deft_linked_in("GNU C++ library" ${CMAKE_CXX_COMPILER_VERSION} "GPL-3.0-or-later WITH GCC-exception-3.1"
    pkg:generic/libstdc%2B%2B "the standard library" ${doc}/libstdc++-${compiler_major}-dev/copyright)
endif()

file(WRITE ${deft_linked_folder}/THIRD_PARTY_LICENCES.txt "${deft_notices}")
file(WRITE ${deft_linked_folder}/deftc.cdx.json "{
  \"bomFormat\": \"CycloneDX\",
  \"specVersion\": \"1.6\",
  \"version\": 1,
  \"metadata\": {
    \"component\": {\"type\": \"library\", \"bom-ref\": \"pkg:pypi/deftc@${PROJECT_VERSION}\", \"name\": \"deftc\", \"version\": \"${PROJECT_VERSION}\",
      \"licenses\": [{\"license\": {\"id\": \"MIT\"}}], \"purl\": \"pkg:pypi/deftc@${PROJECT_VERSION}\"}
  },
  \"components\": [
${deft_components}
  ],
  \"dependencies\": [
    {\"ref\": \"pkg:pypi/deftc@${PROJECT_VERSION}\", \"dependsOn\": [${deft_depends}]}
  ]
}
")
install(FILES ${deft_linked_folder}/THIRD_PARTY_LICENCES.txt ${deft_linked_folder}/deftc.cdx.json DESTINATION share/doc/deftc)
if(SKBUILD)
  # Where PEP 770 looks for it, and beside our own licence.
  install(FILES ${deft_linked_folder}/deftc.cdx.json DESTINATION ${SKBUILD_METADATA_DIR}/sboms COMPONENT python EXCLUDE_FROM_ALL)
  install(FILES ${deft_linked_folder}/THIRD_PARTY_LICENCES.txt DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT python
    EXCLUDE_FROM_ALL)
endif()
