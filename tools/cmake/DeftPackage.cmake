# DEFT_STATIC_LLVM: the library and the tool are made to be carried away. They have all that they need inside, but the
# C library: LLVM, MLIR, zlib, zstd and the C++ library, each no more than is used, and nothing of it can be seen. Objects are
# the same as without (ccache has them); only links differ.
if(NOT DEFT_STATIC_LLVM)
  return()
endif()
find_library(DEFT_ZLIB_ARCHIVE libz.a REQUIRED)
find_library(DEFT_ZSTD_ARCHIVE libzstd.a REQUIRED)
add_link_options(-static-libstdc++ -static-libgcc -Wl,--gc-sections -Wl,--exclude-libs,ALL -Wl,-s)
