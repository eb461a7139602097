# What makes a build fast and is not a condition: ccache and a fast linker, used where they are found. And what makes it
# the same in every folder.
include(CheckLinkerFlag)

# What __FILE__ says begins at the build folder, so that no folder of this machine gets into a program. It is
# what ccache makes of paths anyway, so a build without it gives the same. (Debug information names folders, and is in no package.)
file(RELATIVE_PATH deft_to_sources ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
string(REGEX REPLACE "/$" "" deft_to_sources "${deft_to_sources}")
add_compile_options(-fmacro-prefix-map=${PROJECT_SOURCE_DIR}=${deft_to_sources} -fmacro-prefix-map=${PROJECT_BINARY_DIR}/=)

find_program(DEFT_CCACHE ccache)
if(DEFT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without the first two, ccache refuses files that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_IGNOREOPTIONS=-fmacro-prefix-map=* ${DEFT_CCACHE})
endif()

option(DEFT_WARNINGS_ARE_ERRORS "A warning fails the build, as tools/test and tools/dev want it" OFF)
if(DEFT_WARNINGS_ARE_ERRORS)
  list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/tools/cmake/warnings_are_errors)
endif()

# Before 2.4, mold lays some programs out so that the loader refuses them ("cannot apply additional memory protection
# after relocation"), and without that protection (-z norelro) it never ends for others.
set(deft_linkers mold lld gold)
execute_process(COMMAND ld.mold --version OUTPUT_VARIABLE deft_mold ERROR_QUIET)
if(NOT deft_mold MATCHES "mold ([0-9.]+)" OR CMAKE_MATCH_1 VERSION_LESS 2.4)
  list(REMOVE_ITEM deft_linkers mold)
endif()
foreach(linker IN LISTS deft_linkers)
  check_linker_flag(CXX -fuse-ld=${linker} DEFT_HAS_LINKER_${linker})
  if(DEFT_HAS_LINKER_${linker})
    add_link_options(-fuse-ld=${linker})
    break()
  endif()
endforeach()
