# What makes a build fast and is not a condition: ccache and a fast linker, used where they are found.
include(CheckLinkerFlag)

find_program(DEFT_CCACHE ccache)
if(DEFT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without the first two, ccache refuses files that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${DEFT_CCACHE})
endif()

foreach(linker mold lld gold)
  check_linker_flag(CXX -fuse-ld=${linker} DEFT_HAS_LINKER_${linker})
  if(DEFT_HAS_LINKER_${linker})
    add_link_options(-fuse-ld=${linker})
    break()
  endif()
endforeach()
