# `cpack` in the folder of the preset package or package-runtime: a .deb and a .tar.gz of what `cmake --install` lays down. With
# the compiler it is called deftc, without it deftc-runtime; either replaces the other. tools/package does all steps.
set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_PACKAGE_NAME deftc)
set(deft_other_package deftc-runtime)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Tree-structured attention for LLM decoding: compiler, runtime and tuner")
set(deft_package_parts "the compiler, the library with its headers, and the command line")
if(NOT DEFT_ENABLE_COMPILER)
  set(CPACK_PACKAGE_NAME deftc-runtime)
  set(deft_other_package deftc)
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Tree-structured attention for LLM decoding: the runtime, for packages of kernels")
  set(deft_package_parts "the library with its headers and the command line, without the compiler: it runs what `deftc build` made elsewhere")
endif()
set(CPACK_PACKAGE_DESCRIPTION "deftc compiles short texts about tree-structured attention into CUDA and native CPU kernels and runs them over trees, "
  "so that what requests share is read once. This package has ${deft_package_parts}.")
list(JOIN CPACK_PACKAGE_DESCRIPTION "" CPACK_PACKAGE_DESCRIPTION)
set(CPACK_PACKAGE_VENDOR deftc)
set(CPACK_PACKAGE_CONTACT "the authors of deftc <deftc@localhost>")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_MONOLITHIC_INSTALL ON)
set(CPACK_ARCHIVE_THREADS 1) # with more, the compressor's bytes may differ
# Times of files, which the archives keep: those of the commit.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/same_times.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_PACKAGE_FILE_NAME ${CPACK_PACKAGE_NAME}-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_CONFLICTS ${deft_other_package})
set(CPACK_DEBIAN_PACKAGE_REPLACES ${deft_other_package})
# Nothing but the C library (tests/packaging/bare_root asks the binaries); NVRTC and the driver are loaded where they are there.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.34)")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/deb/triggers)
include(CPack)
