# LLVM and MLIR as one interface library, mlir_deps. Both are linked as shared libraries: mixing in static ones would
# register every dialect twice. What hosts link is another matter: a library whose property DEFT_CARRIES_MLIR is on has
# MLIR's static libraries inside, and none of it can be seen. With libMLIR.so it could not be hidden: MLIR keeps
# the identities of traits and interfaces in variables of inline functions, which the two would have to share by name.
# What is carried to machines without LLVM has LLVM's static libraries inside, too: DEFT_CARRY_AWAY.
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR) # not HandleLLVMOptions: it turns exceptions off

# The linker of CPU kernels, lld_deps, before mlir_deps: what it asks for is in LLVM's libraries, whichever these are, and
# in zlib and zstd, which shared ones hide.
add_library(lld_deps INTERFACE)
target_link_libraries(lld_deps INTERFACE ${DEFT_LLD_ELF} ${DEFT_LLD_COMMON})
if(NOT DEFT_CARRY_AWAY)
  target_link_libraries(lld_deps INTERFACE ${DEFT_ZLIB} ${DEFT_ZSTD})
endif()

add_library(mlir_deps INTERFACE)
target_include_directories(mlir_deps SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
# What every C++20 compiler here defines by itself or ignores. Left in, a test that links MLIR could not share
# GoogleTest's precompiled header with the others.
list(FILTER llvm_definitions EXCLUDE REGEX "^-D(_GNU_SOURCE|_GLIBCXX_USE_CXX11_ABI=1|__STDC_[A-Z]+_MACROS)$")
target_compile_options(mlir_deps INTERFACE ${llvm_definitions})
file(GLOB deft_mlir_archives ${MLIR_INSTALL_PREFIX}/lib/libMLIR*.a)
list(FILTER deft_mlir_archives EXCLUDE REGEX "/libMLIR(CAPI|ExecutionEngine|Mlir|.*Test)[^/]*$")
if(DEFT_CARRY_AWAY)
  # Of an archive only what is asked for is taken: MLIR's dialects that are used, one target of LLVM.
  file(GLOB deft_llvm_archives ${LLVM_LIBRARY_DIR}/libLLVM*.a)
  set(deft_llvm ${deft_mlir_archives} ${deft_llvm_archives})
  string(REPLACE ";" "," deft_llvm "${deft_llvm}")
  target_link_libraries(mlir_deps INTERFACE $<LINK_GROUP:RESCAN,${deft_llvm}>
    ${DEFT_ZLIB} ${DEFT_ZSTD} ${CMAKE_DL_LIBS} Threads::Threads)
else()
  string(REPLACE ";" "," deft_mlir_archives "${deft_mlir_archives}")
  target_link_libraries(mlir_deps INTERFACE
    $<IF:$<BOOL:$<TARGET_PROPERTY:DEFT_CARRIES_MLIR>>,$<LINK_GROUP:RESCAN,${deft_mlir_archives}>,MLIR> LLVM)
endif()
include_directories(SYSTEM ${MLIR_INCLUDE_DIRS}) # mlir_tablegen reads the directory property

# One precompiled header for every file that includes MLIR: about 35 s once, then 2 to 4 s a file instead of 7 to 12.
# A header that few files need stays out, because reading the precompiled header costs time by its size.
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/mlir_pch.cpp CONTENT "// Holds the precompiled header.\n")
add_library(deft_mlir_pch OBJECT ${CMAKE_CURRENT_BINARY_DIR}/mlir_pch.cpp)
target_link_libraries(deft_mlir_pch PRIVATE deft_options mlir_deps)
target_precompile_headers(deft_mlir_pch PRIVATE
  <map> <memory> <optional> <string> <vector>
  <llvm/ADT/TypeSwitch.h>
  <mlir/Dialect/Arith/IR/Arith.h>
  <mlir/Dialect/Func/IR/FuncOps.h>
  <mlir/Dialect/LLVMIR/LLVMDialect.h>
  <mlir/Dialect/Math/IR/Math.h>
  <mlir/Dialect/SCF/IR/SCF.h>
  <mlir/Dialect/Vector/IR/VectorOps.h>
  <mlir/IR/Builders.h>
  <mlir/IR/BuiltinOps.h>
  <mlir/IR/BuiltinTypes.h>
  <mlir/IR/DialectImplementation.h>
  <mlir/IR/OpImplementation.h>
  <mlir/IR/PatternMatch.h>
  <mlir/IR/Verifier.h>
  <mlir/Interfaces/SideEffectInterfaces.h>
  <mlir/Pass/Pass.h>
  <mlir/Pass/PassManager.h>)

# deft_mlir_library(NAME SOURCES ... [LINK ...] [DEPENDS ...]): deft_library for a folder that includes MLIR.
# DEPENDS names the targets that generate headers (the ...IncGen of mlir_tablegen).
function(deft_mlir_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK;DEPENDS" ${ARGN})
  deft_library(${name} MLIR SOURCES ${arg_SOURCES} LINK ${arg_LINK} mlir_deps)
  if(arg_DEPENDS)
    add_dependencies(deft_${name} ${arg_DEPENDS})
  endif()
endfunction()

# deft_use_mlir_pch(TARGET): for a target that is no library of ours. (A test says MLIR in deft_test.)
function(deft_use_mlir_pch target)
  # An executable would be compiled with -fPIE and could not read a header compiled with -fPIC.
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${target} REUSE_FROM deft_mlir_pch)
endfunction()
