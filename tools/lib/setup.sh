# shellcheck shell=bash disable=SC2034
# What tools/setup, tools/quickstart, tools/test and tools/dev share: install what is missing, configure, build. Sourced, not run.
# Every step looks first and skips what is there, so that a second run needs no network and no rights.

deft_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
deft_cuda_wheels=$deft_root/.cache/cuda
deft_compiler_packages=(llvm-22-dev libmlir-22-dev mlir-22-tools liblld-22-dev zlib1g-dev libzstd-dev)
deft_packages=(
  g++ cmake ninja-build ccache lld python3
  "${deft_compiler_packages[@]}"
  nlohmann-json3-dev libgtest-dev libgmock-dev libbenchmark-dev libcli11-dev libasio-dev pkgconf
)
deft_wheel_packages=(python3-venv) # an empty environment
deft_fuzz_packages=(clang-22 libclang-rt-22-dev)
# Another compiler and standard library. Not those of LLVM 22, whose <cxxabi.h> would hide GCC's from sources that include MLIR.
deft_other_compiler_packages=(clang libc++-dev libc++abi-dev)
deft_browser_package=chromium # opens the tuning report
deft_numpy_package=python3-numpy # recomputes random attentions
deft_abi_package=abigail-tools # compares the C ABI with the one that is kept
deft_roots_package=debootstrap # bare roots of distributions
deft_lint_packages=(clang-format-22 clang-tidy-22 shellcheck)

deft_say() { printf '\n== %s\n' "$*"; }

# The one way to give up: a sentence that says what is missing and what to do. 3 is the exit code for "environment".
deft_fail() {
  printf '\n%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 3
}

deft_run() {
  printf '+ %s\n' "$*"
  "$@"
}

# deft_run_to FILE COMMAND ...
deft_run_to() {
  printf '+ %s > %s\n' "${*:2}" "$1"
  "${@:2}" >"$1"
}

deft_as_root() {
  if [[ $EUID -eq 0 ]]; then
    deft_run "$@"
  elif command -v sudo >/dev/null; then
    deft_run sudo "$@"
  else
    return 1
  fi
}

deft_missing_packages() {
  local package
  for package in "$@"; do
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || printf '%s\n' "$package"
  done
}

# Installs Debian packages that are missing; says one sentence and exits when it cannot.
deft_install_packages() {
  local missing=() unknown=() package updated=yes
  read -ra missing <<<"$(deft_missing_packages "$@" | tr '\n' ' ')"
  if [[ ${#missing[@]} -eq 0 ]]; then
    echo "packages: all $# are installed"
    return
  fi
  deft_say "installing packages: ${missing[*]}"
  [[ $EUID -eq 0 ]] || command -v sudo >/dev/null ||
    deft_fail "packages are missing, installing them needs root, and there is no sudo here: as root, run" \
      "\`apt-get update && apt-get install -y --no-install-recommends ${missing[*]}\`, then run this again"
  # A failed update is not fatal: the lists on disk may still know the packages. It succeeds without a network, too,
  # unless told to take a missing list for an error.
  deft_as_root apt-get -q -o APT::Update::Error-Mode=any update || updated=no
  for package in "${missing[@]}"; do
    apt-cache show "$package" >/dev/null 2>&1 || unknown+=("$package")
  done
  if [[ ${#unknown[@]} -gt 0 && $updated == no ]]; then
    deft_fail "these packages are missing and apt-get update failed (its message is above; is there a network?):" \
      "${missing[*]}"
  elif [[ ${#unknown[@]} -gt 0 ]]; then
    deft_fail "the package sources of this machine do not offer ${unknown[*]}: on Debian 12 they are in main and" \
      "bookworm-security; elsewhere add a source that has LLVM/MLIR 22 (for example apt.llvm.org), then run this again"
  fi
  deft_as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
    install -y --no-install-recommends "${missing[@]}" ||
    deft_fail "these packages are missing and apt-get could not install them (its message is above): ${missing[*]}"
}

# Without apt we do not guess at package names of other distributions: look for the things themselves.
deft_check_tools() {
  local missing=() tool
  for tool in c++ cmake ninja python3; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  [[ -n ${MLIR_DIR:-} || -d /usr/lib/llvm-22/lib/cmake/lld ]] ||
    missing+=("LLVM, MLIR and LLD 22 with their CMake files (set MLIR_DIR to the folder of MLIRConfig.cmake)")
  if [[ ${#missing[@]} -gt 0 ]]; then
    local list
    list=$(printf ', %s' "${missing[@]}")
    deft_fail "there is no apt-get here, so install these with this system's package manager, together with" \
      "nlohmann-json, GoogleTest, Google Benchmark, CLI11 and Asio (development files), then run this again: ${list:2}"
  fi
  echo "no apt-get here: using the compiler, CMake, Ninja, Python and MLIR that are installed"
}

# For tests that are skipped without it: where it cannot be installed, nothing fails.
deft_install_if_possible() {
  if [[ -z $(deft_missing_packages "$1") ]]; then
    return
  fi
  if command -v apt-get >/dev/null && apt-cache show "$1" >/dev/null 2>&1 && (deft_install_packages "$1"); then
    return
  fi
  echo "$1 cannot be installed: tests that need it are skipped"
}

deft_setup_packages() {
  if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
    deft_install_packages "$@"
  else
    deft_check_tools
  fi
}

# Prints the root of a CUDA toolkit that has NVRTC; the same places in the same order as tools/cmake/DeftCuda.cmake.
deft_cuda_toolkit() {
  local root nvcc
  nvcc=$(command -v nvcc || true)
  [[ -z $nvcc ]] || nvcc=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
  for root in "${CUDA_HOME:-}" "${CUDA_PATH:-}" "$nvcc" /usr/local/cuda; do
    if [[ -n $root && -e $root/include/nvrtc.h ]] && compgen -G "$root/lib*/libnvrtc.so*" >/dev/null; then
      echo "$root"
      return
    fi
  done
  return 1
}

# A toolkit if there is one, else NVRTC and the headers from the Python registry into .cache/cuda, else nothing.
# Never fails: a build without CUDA checks, emits CUDA text and runs on the CPU.
deft_setup_cuda() {
  local root wheels=(nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl nvidia-nvtx)
  if root=$(deft_cuda_toolkit); then
    echo "CUDA: the toolkit in $root"
    return
  fi
  if [[ -e $deft_cuda_wheels/complete ]]; then
    echo "CUDA: no toolkit; NVRTC and headers from the wheels in ${deft_cuda_wheels#"$deft_root"/}"
    return
  fi
  deft_say "no CUDA toolkit: fetching NVRTC and the CUDA headers (wheels, 13.0) into ${deft_cuda_wheels#"$deft_root"/}"
  # Into a second folder and renamed at the end, so that a broken download is never taken for a complete one.
  rm -rf "$deft_cuda_wheels.part"
  if deft_ensure_pip && deft_run env PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-deps --only-binary=:all: --retries 2 \
    --target "$deft_cuda_wheels.part" "${wheels[@]/%/==13.0.*}"; then
    touch "$deft_cuda_wheels.part/complete"
    rm -rf "$deft_cuda_wheels"
    mv "$deft_cuda_wheels.part" "$deft_cuda_wheels"
  else
    rm -rf "$deft_cuda_wheels.part"
    deft_say "NOTE: neither a CUDA toolkit nor NVRTC from the Python registry (${wheels[*]}) could be had:" \
      "the build goes on without CUDA, so nothing is compiled to cubins and the tests of that are skipped"
  fi
}

deft_ensure_pip() {
  python3 -m pip --version >/dev/null 2>&1 && return
  command -v apt-get >/dev/null || return 1
  # In a subshell, because no pip only means no CUDA: deft_fail ends the subshell, not the script.
  (deft_install_packages python3-pip ca-certificates)
}

# deft_setup [PACKAGE ...]: all that a build takes from the machine, and these packages.
deft_setup() {
  deft_say "setting up"
  deft_setup_packages "${deft_packages[@]}" "$@"
  deft_setup_cuda
}

# One job a core, fewer where memory is short: a file that includes MLIR takes up to 1.2 GiB.
deft_jobs() {
  local cores memory_kib jobs
  cores=$(nproc)
  memory_kib=$(awk '/MemAvailable/ {print $2}' /proc/meminfo)
  jobs=$((memory_kib / (1200 * 1024)))
  ((jobs < cores)) || jobs=$cores
  ((jobs > 0)) || jobs=1
  echo "$jobs"
}

# deft_build PRESET [TARGET ...]; deft_configure: what developers' builds have that users' have not.
deft_configure=()
deft_build() {
  local preset=$1 started=$SECONDS log
  shift
  deft_say "building ($preset)"
  cd "$deft_root" || return
  log=build/$preset.configure.log
  mkdir -p build
  printf '+ %s\n' "cmake --preset $preset"
  cmake --preset "$preset" "${deft_configure[@]}" ${MLIR_DIR:+"-DMLIR_DIR=$MLIR_DIR"} >"$log" 2>&1 || {
    tail -n 30 "$log" >&2
    deft_fail "CMake could not configure the preset $preset (its last lines are above, all of it is in $log)"
  }
  grep -E '^-- (CUDA|MLIR):' "$log" || true
  if [[ $# -gt 0 ]]; then
    deft_run cmake --build --preset "$preset" --parallel "$(deft_jobs)" --target "$@"
  else
    deft_run cmake --build --preset "$preset" --parallel "$(deft_jobs)"
  fi
  echo "built ($preset) in $((SECONDS - started)) s"
}
