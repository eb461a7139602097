#include "tools/deftc/run/RunBackend.h"

namespace deft::cli {

support::Result<std::unique_ptr<RunBackend>> openBackend(Context &context, const RunSubject &subject,
                                                         const std::string &name, int threads) {
  if (name != "cpu") {
    auto cuda = openCuda(context, subject, /*isRequired=*/name == "cuda");
    if (!cuda || *cuda)
      return cuda;
  }
  return openCpu(context, subject, threads);
}

} // namespace deft::cli
