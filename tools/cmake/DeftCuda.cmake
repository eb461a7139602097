# CUDA, when there is one: never a condition of the build, because NVRTC and the driver are loaded at run time.
#   DEFT_CUDA_ROOT          where it was found: a toolkit, or the wheels that tools/quickstart installs; empty without
#   DEFT_NVRTC_DIR          the folder of its libnvrtc, which is tried first when NVRTC is loaded; empty without
#   DEFT_CUDA_INCLUDE_DIR   the headers of that root (cuda.h, nvrtc.h); empty without
#   DEFT_NVTX_INCLUDE_DIR   where <nvtx3/nvToolsExt.h> lies; empty without: no ranges for profilers
#   DEFT_NVCC               nvcc, which only a toolkit has; the templates are compiled by it as a test
set(DEFT_CUDA_ROOT "" CACHE PATH "A CUDA toolkit, or a folder with lib/ and include/ of NVRTC; empty: look for one")

if(NOT DEFT_CUDA_ROOT)
  find_program(DEFT_NVCC_ON_PATH nvcc)
  if(DEFT_NVCC_ON_PATH)
    get_filename_component(nvcc_real ${DEFT_NVCC_ON_PATH} REALPATH)
    get_filename_component(nvcc_root ${nvcc_real}/../.. ABSOLUTE)
  endif()
  foreach(root $ENV{CUDA_HOME} $ENV{CUDA_PATH} ${nvcc_root} /usr/local/cuda
          ${PROJECT_SOURCE_DIR}/.cache/cuda/nvidia/cu13)
    file(GLOB nvrtc ${root}/lib64/libnvrtc.so* ${root}/lib/libnvrtc.so*)
    if(nvrtc AND EXISTS ${root}/include/nvrtc.h)
      set(DEFT_CUDA_ROOT ${root}) # hides the empty cache entry, so that the next configuration looks again
      break()
    endif()
  endforeach()
endif()

set(DEFT_CUDA_INCLUDE_DIR "")
set(DEFT_NVTX_INCLUDE_DIR "")
set(DEFT_NVCC "")
if(DEFT_CUDA_ROOT)
  if(NOT DEFT_NVRTC_DIR)
    file(GLOB nvrtc ${DEFT_CUDA_ROOT}/lib64/libnvrtc.so* ${DEFT_CUDA_ROOT}/lib/libnvrtc.so*)
    list(GET nvrtc 0 nvrtc)
    get_filename_component(DEFT_NVRTC_DIR ${nvrtc} DIRECTORY)
  endif()
  set(DEFT_CUDA_INCLUDE_DIR ${DEFT_CUDA_ROOT}/include)
  if(EXISTS ${DEFT_CUDA_INCLUDE_DIR}/nvtx3/nvToolsExt.h)
    set(DEFT_NVTX_INCLUDE_DIR ${DEFT_CUDA_INCLUDE_DIR})
  endif()
  if(EXISTS ${DEFT_CUDA_ROOT}/bin/nvcc)
    set(DEFT_NVCC ${DEFT_CUDA_ROOT}/bin/nvcc)
  endif()
  message(STATUS "CUDA: ${DEFT_CUDA_ROOT} (NVRTC in ${DEFT_NVRTC_DIR}, nvcc: ${DEFT_NVCC})")
else()
  message(STATUS "CUDA: none found; the build goes on without it and looks for NVRTC again when it runs")
endif()
