# DEFT_CARRY_AWAY: the library and the tool are made to be carried away. They have all that they need inside, but the
# C library: LLVM, MLIR, zlib, zstd and the C++ library, each no more than is used, and nothing of it can be seen. Objects are
# the same as without (ccache has them); only links differ.

# deft_carry_away(TARGET): for each of the two. All is inside the library; the tool asks for it and for the C library.
function(deft_carry_away target)
  if(DEFT_CARRY_AWAY)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL SHARED_LIBRARY)
      target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tools/cmake/older_glibc.cpp)
      target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,--exclude-libs,ALL)
    else()
      # Not the C++ library and GCC's, which it does not call: a linker may take out of them what the library has weak names of.
      target_link_options(${target} PRIVATE -nodefaultlibs)
      target_link_libraries(${target} PRIVATE c)
    endif()
    # No build id: it would be a hash of the debug information too, which names folders of this machine.
    target_link_options(${target} PRIVATE -Wl,--build-id=none -Wl,-s)
  endif()
endfunction()
