// ScalarKernel.h as the native code of a package (MakePackage.cpp): a build without the compiler then has one
// to run, and what the public API promises is also seen under the thread sanitizer.
#include "tests/support/ScalarKernel.h"

extern "C" const deft::abi::CpuKernel deft_cpu_host_program = *deft::test::ScalarKernel<4, 2, 64>::kernel();
