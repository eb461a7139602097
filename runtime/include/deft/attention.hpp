#pragma once

#include <deft/result.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What is computed: an attention, out of a spec or a package.
namespace deft {

/// 8-bit floats are of caches only: `fp8_e4m3`, the finite one (torch.float8_e4m3fn), and `fp8_e5m2`.
enum class DType { F16, BF16, F8E4M3, F8E5M2 };

/// What a tensor is made of: the vectors that it has for a head and a token, or a query.
struct TensorType {
  DType dtype = DType::BF16;
  int dim = 0; ///< elements of a vector

  bool operator==(const TensorType &) const = default;
};

/// Where the tokens of K or of V lie, in elements (not bytes). The token at location t is at
///   pageTable[t / pageSize] * page + (t % pageSize) * token + kvHead * head
/// and in a contiguous cache at t * token + kvHead * head. Its vector's elements stand side by side. None is
/// negative.
struct CacheStrides {
  std::int64_t page = 0; ///< unused in a contiguous cache
  std::int64_t token = 0;
  std::int64_t head = 0;
};

/// A parameter that the spec declares.
struct ParamInfo {
  std::string name;
  bool isF32 = true; ///< else i32
  int length = 1;    ///< 1, one value a query head or KV head, or a table's; 0: see isOfTokens
  bool isArray = false;
  bool hasDefault = false; ///< else a run fails that does not give it
  /// Of an array of length 0: one value for each slot of the cache (`[tokens]`), laid out like its pages
  /// without heads and dims, [page][slot in the page], or [token] of a contiguous cache; or for each query
  /// (`[queries]`), in the caller's order.
  bool isOfTokens = false, isOfQueries = false;
  /// Of each slot or query: 1, or as many as KV heads (`[tokens, kv_heads]`), side by side whatever the order
  /// of the cache's pages.
  int elements = 1;
};

/// Which rows of a query share a list of selected tokens.
enum class SelectBy { KvHead, QueryHead, Query };

/// What a spec's `select` says.
struct SelectionInfo {
  std::vector<int> budgets; ///< tokens of a list: those that a host may choose from
  SelectBy by = SelectBy::KvHead;
  int keepFirst = 0, keepLast = 0; ///< tokens of the path that are in every list
};

/// An attention as text to read: what was written, and what the compiler makes of it.
enum class SourceKind {
  Ir,   ///< the deft dialect of MLIR, after the passes
  Cuda, ///< a kernel's translation unit as NVRTC gets it
  Spec, ///< what was compiled, as it was written; of a package, too
};

/// Of SourceKind::Cuda.
struct SourceOptions {
  std::string architecture = "sm_90a";
  std::string phase = {}; ///< of the untuned config, or "merge"; empty: the first
};

/// A compiled attention. Immutable and cheap to copy; all threads may use one. Compiling takes some tenths of
/// a second, so do it once.
class DEFT_API Attention {
public:
  const std::string &name() const;
  int queryHeads() const;
  int kvHeads() const;
  TensorType q() const; ///< of k's dim
  TensorType k() const;
  TensorType v() const;
  TensorType out() const; ///< of v's dim
  /// V is K's memory: a token's value is the beginning of its key, and a run's `v` is not read. No spec says
  /// so yet, nor that k and v have dims of their own; they have one dtype, which need not be q's.
  bool valueInKey() const;
  int headDim() const;       ///< k's
  DType dtype() const;       ///< k's
  DType outputDtype() const; ///< out's
  /// Whether the spec says `with lse`: only then a run can give the log-sum-exp. Never for sigmoid attention.
  bool hasLse() const;
  /// Whether the mask is bound by `path`: a query may see tokens of its path behind its own.
  bool seesPath() const;
  int pageSize() const; ///< tokens of a page; 0: the cache is contiguous
  /// The strides that the spec's `kv_cache` means: pages (or tokens) packed without gaps.
  CacheStrides strides() const;
  const std::vector<ParamInfo> &params() const;
  /// None: the spec selects nothing, and every layer attends to all that it sees.
  const std::optional<SelectionInfo> &selects() const;
  /// Asks for the compiler (see hasCompiler), but for the spec, and for the CUDA text of a package, which
  /// holds what that is made of.
  Result<std::string> source(SourceKind kind, const SourceOptions &options = {}) const;

  struct Impl;
  explicit Attention(std::shared_ptr<const Impl> impl); ///< for the library itself, as is impl()
  const Impl &impl() const { return *impl_; }

private:
  std::shared_ptr<const Impl> impl_;
};

struct CompileOptions {
  std::string attention = {}; ///< which one, where the spec defines several
  /// Of a spec given as text: how its errors call it, and where its imports are looked for; files outside of
  /// that folder are not read. Empty: only the shipped library can be imported.
  std::string name = "spec";
  std::string importFolder = {};
};

/// Compiles a spec for this machine's processor. Without the compiler in the library (it was built with
/// DEFT_ENABLE_COMPILER=OFF; see hasCompiler) a right spec is an Environment error: load a package.
DEFT_API Result<Attention> compileSpec(std::string_view text, const CompileOptions &options = {});

/// Compiles the spec in a file, or a shipped spec by its name ("llama3_8b"). Imports are looked for beside
/// the file, then in the shipped library; `name` and `importFolder` are not used.
DEFT_API Result<Attention> compileSpecFile(const std::string &path, const CompileOptions &options = {});

/// Loads what `deftc build` made: for this machine's processor with `--cpu`, and for GPUs (<deft/gpu.hpp>). A
/// package holds native code: trust it like a program.
DEFT_API Result<Attention> loadPackage(const std::string &path, const std::string &attention = {});

/// Whether this build of the library can compile specs.
DEFT_API bool hasCompiler();

/// The library's version, "0.2.0"; that of the headers is in <deft/version.h>.
DEFT_API const char *version();

/// Values of an attention's parameters. A value type; a run only reads it.
class DEFT_API Params {
public:
  /// Begins with the defaults.
  explicit Params(const Attention &attention);
  Params(const Params &);
  Params(Params &&) noexcept;
  Params &operator=(const Params &);
  Params &operator=(Params &&) noexcept;
  ~Params();

  /// Sets a scalar, or every head of an array. An i32 takes whole numbers only, an f32 finite ones.
  Result<void> set(std::string_view name, double value);

  /// Sets an array (ParamInfo::length values: one a head, or a table's; of arrays over tokens and queries as
  /// many as the largest run needs: one with fewer is an error); they are copied.
  Result<void> set(std::string_view name, std::span<const float> values);
  Result<void> set(std::string_view name, std::span<const std::int32_t> values);

  /// Sets an array of f32 or i32, as it is declared, that lies in the memory of the GPU that runs: kernels
  /// read it when they run, so that it may change between the replays of a captured graph. It stays the
  /// caller's. Plans see no bound in it: a window that is a parameter here cuts no tokens off a plan. Runs on
  /// the host and the tuner refuse it.
  Result<void> setDevice(std::string_view name, const void *elements, std::size_t count);

  struct Impl;
  const Impl &impl() const { return *impl_; } ///< for the library itself

private:
  std::unique_ptr<Impl> impl_;
};

} // namespace deft
