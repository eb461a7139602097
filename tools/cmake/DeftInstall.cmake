# What `cmake --install` puts down beside the tool and the specs: the library, its headers, and what find_package(deft)
# and pkg-config read. A host needs nothing of ours beyond them: the library is shared and carries the rest inside.
include(CMakePackageConfigHelpers)

install(TARGETS deft EXPORT deftTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/include/deft DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
# For who compiles the text of a kernel by himself; the library carries its own copy.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/templates/deft DESTINATION share/deftc/templates
  FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/SECURITY.md DESTINATION share/doc/deftc)

set(deft_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/deft)
install(EXPORT deftTargets NAMESPACE deft:: DESTINATION ${deft_cmake_folder})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/deftConfig.cmake.in ${PROJECT_BINARY_DIR}/deftConfig.cmake
  INSTALL_DESTINATION ${deft_cmake_folder} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/deftConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY AnyNewerVersion)
install(FILES ${PROJECT_BINARY_DIR}/deftConfig.cmake ${PROJECT_BINARY_DIR}/deftConfigVersion.cmake
  DESTINATION ${deft_cmake_folder})

set(deft_pkgconfig_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH deft_pc_to_prefix /${deft_pkgconfig_folder} /)
string(REGEX REPLACE "/$" "" deft_pc_to_prefix ${deft_pc_to_prefix})
configure_file(${CMAKE_CURRENT_LIST_DIR}/deft.pc.in ${PROJECT_BINARY_DIR}/deft.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/deft.pc DESTINATION ${deft_pkgconfig_folder})
