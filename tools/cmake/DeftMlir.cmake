# LLVM and MLIR as one interface library, mlir_deps. Both are linked as shared libraries: mixing in the
# static MLIRxxx targets would register every dialect twice.
find_package(MLIR REQUIRED CONFIG PATHS /usr/lib/llvm-22 NO_DEFAULT_PATH)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR) # not HandleLLVMOptions: it turns exceptions off

add_library(mlir_deps INTERFACE)
target_include_directories(mlir_deps SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(mlir_deps INTERFACE ${llvm_definitions})
target_link_libraries(mlir_deps INTERFACE MLIR LLVM)
