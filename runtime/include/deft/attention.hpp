#pragma once

#include <deft/c/attention.h>
#include <deft/c/selection.h>
#include <deft/result.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The description of the computation: an attention, from a spec or a package.
namespace deft {

/// Only caches have 8-bit floats: `fp8_e4m3`, the finite kind (torch.float8_e4m3fn), and `fp8_e5m2`.
enum class DType { F16 = DEFT_F16, BF16 = DEFT_BF16, F8E4M3 = DEFT_F8_E4M3, F8E5M2 = DEFT_F8_E5M2 };

/// The type of a tensor: the dtype and size of its vectors, one for each head of a token or query.
struct TensorType {
  DType dtype = DType::BF16;
  int dim = 0; ///< elements of a vector

  bool operator==(const TensorType &) const = default;
};

/// The layout of the tokens of K or of V, in elements (not bytes). The token at location t is at
///   pageTable[t / pageSize] * page + (t % pageSize) * token + kvHead * head
/// and in a contiguous cache at t * token + kvHead * head. The elements of a vector are adjacent. Strides
/// must not be negative, and tokens, heads and pages must not overlap, except that 0 repeats one.
struct CacheStrides {
  std::int64_t page = 0; ///< unused in a contiguous cache
  std::int64_t token = 0;
  std::int64_t head = 0;
};

/// A parameter that the spec declares.
struct ParamInfo {
  std::string name;
  bool isF32 = true; ///< else i32
  int length = 1;    ///< 1; one value per query head or KV head; a table's size; 0: see isOfTokens
  bool isArray = false;
  bool hasDefault = false; ///< if not, a run must give a value
  /// For an array of length 0: one value for each slot of the cache (`[tokens]`), laid out like its pages
  /// without heads and dims, [page][slot in the page], or [token] in a contiguous cache; or one for each
  /// query (`[queries]`), in the caller's order.
  bool isOfTokens = false, isOfQueries = false;
  /// For each slot or query: 1, or the number of KV heads (`[tokens, kv_heads]`), which are consecutive in
  /// any order of the cache's pages.
  int elements = 1;
};

/// Which rows of a query share a list of selected tokens.
enum class SelectBy {
  KvHead = DEFT_SELECT_BY_KV_HEAD,
  QueryHead = DEFT_SELECT_BY_QUERY_HEAD,
  Query = DEFT_SELECT_BY_QUERY,
  Caller = DEFT_SELECT_BY_CALLER ///< all heads; callers give the lists
};

/// The contents of a spec's `select`.
struct SelectionInfo {
  std::vector<int> budgets; ///< tokens of a list, for the host to choose from
  SelectBy by = SelectBy::KvHead;
  int keepFirst = 0, keepLast = 0; ///< tokens of the path that every list contains
};

/// An attention as text to read: its source, and the compiler's output.
enum class SourceKind {
  Ir = DEFT_SOURCE_IR,     ///< the deft dialect of MLIR, after the passes
  Cuda = DEFT_SOURCE_CUDA, ///< a kernel's translation unit as NVRTC gets it
  Spec = DEFT_SOURCE_SPEC, ///< the compiled spec, as written; also of a package
};

/// For SourceKind::Cuda.
struct SourceOptions {
  std::string architecture = "sm_90a";
  std::string phase = {}; ///< of the untuned config, or "merge"; empty: the first
};

/// A compiled attention. Immutable and cheap to copy; all threads may use one. Compiling takes some tenths of
/// a second, so do it once.
class Attention {
public:
  /// Takes a handle of <deft/deft.h>.
  explicit Attention(deft_attention *handle) : known_(std::make_shared<const Known>(handle)) {}

  const std::string &name() const { return known_->name; }
  int queryHeads() const { return facts().query_heads; }
  int kvHeads() const { return facts().kv_heads; }
  TensorType q() const { return typeOf(facts().query_dtype, facts().key_dim); } ///< has k's dim
  TensorType k() const { return typeOf(facts().key_dtype, facts().key_dim); }
  TensorType v() const { return typeOf(facts().value_dtype, facts().value_dim); }
  TensorType out() const { return typeOf(facts().output_dtype, facts().value_dim); } ///< has v's dim
  /// V lies in K's memory: a token's value is the beginning of its key, and a run does not read its `v`.
  /// Latent caches are like that.
  bool valueInKey() const { return facts().value_in_key != 0; }
  /// For a latent cache with scales in its rows: the columns of V that share a scale; 0: no scales.
  int scaleColumns() const { return facts().scale_columns; }
  /// Whether q and the weights are rounded to e4m3, in which both products are made (rule A12).
  bool byteProducts() const { return facts().byte_products != 0; }
  int headDim() const { return k().dim; }           ///< k's
  DType dtype() const { return k().dtype; }         ///< k's
  DType outputDtype() const { return out().dtype; } ///< out's
  /// Whether the spec says `with lse`: only then can a run give the log-sum-exp. Never for sigmoid attention.
  bool hasLse() const { return facts().has_lse != 0; }
  /// Whether the mask is bound by `path`: a query may see later tokens of its path.
  bool seesPath() const { return facts().sees_path != 0; }
  int pageSize() const { return facts().page_size; } ///< tokens of a page; 0: the cache is contiguous
  /// The strides of the spec's `kv_cache`, with pages (or tokens) packed without gaps.
  CacheStrides strides() const { return {facts().page_stride, facts().token_stride, facts().head_stride}; }
  const std::vector<ParamInfo> &params() const { return known_->params; }
  /// None: the spec does not select, and every layer attends to all visible tokens.
  const std::optional<SelectionInfo> &selects() const { return known_->selects; }
  /// Needs the compiler (see hasCompiler), except for the spec and for the CUDA text of a package.
  Result<std::string> source(SourceKind kind, const SourceOptions &options = {}) const {
    deft_source_options own{};
    own.size = sizeof own;
    own.architecture = options.architecture.c_str();
    own.phase = options.phase.c_str();
    return detail::text([&](auto to) {
      return deft_attention_get_source(handle(), static_cast<std::int32_t>(kind), &own, to);
    });
  }

  const deft_attention *handle() const { return known_->handle.get(); } ///< for <deft/deft.h>
  const deft_attention_facts &facts() const { return known_->facts; }

private:
  struct Known {
    detail::Owned<deft_attention, deft_attention_destroy> handle;
    deft_attention_facts facts;
    std::string name;
    std::vector<ParamInfo> params;
    std::optional<SelectionInfo> selects;

    explicit Known(deft_attention *of)
        : handle(of), facts(detail::factsOf<deft_attention_facts>(
                          [&](auto to) { return deft_attention_get_facts(of, to); })),
          name(facts.name ? facts.name : "") {
      for (std::int32_t i = 0; i < facts.param_count; ++i) {
        const auto info =
            detail::factsOf<deft_param_info>([&](auto to) { return deft_attention_get_param(of, i, to); });
        params.push_back({info.name, info.dtype == DEFT_F32, info.length, info.is_array != 0,
                          info.has_default != 0, info.sized_by == DEFT_SIZED_BY_TOKENS,
                          info.sized_by == DEFT_SIZED_BY_QUERIES, info.elements});
      }
      const auto select =
          detail::factsOf<deft_selection_info>([&](auto to) { return deft_attention_get_selection(of, to); });
      if (select.budget_count > 0)
        selects = {{select.budgets, select.budgets + select.budget_count},
                   static_cast<SelectBy>(select.by),
                   select.keep_first,
                   select.keep_last};
    }
  };

  static TensorType typeOf(deft_dtype dtype, int dim) { return {static_cast<DType>(dtype), dim}; }

  std::shared_ptr<const Known> known_;
};

struct CompileOptions {
  std::string attention = {}; ///< its name, if the spec defines several
  /// For a spec given as text: its name in errors, and the folder of its imports; files outside of that
  /// folder are not read. Empty: only the shipped library can be imported.
  std::string name = "spec";
  std::string importFolder = {};
  std::string title = {}; ///< as deft_compile_options::title; empty: its name
};

namespace detail {

inline deft_compile_options optionsOf(const CompileOptions &options) {
  deft_compile_options own{};
  own.size = sizeof own;
  own.attention = options.attention.c_str();
  own.name = options.name.c_str();
  own.import_folder = options.importFolder.c_str();
  own.title = options.title.c_str();
  return own;
}

} // namespace detail

/// Compiles a spec for this machine's processor. If the library has no compiler (it was built with
/// DEFT_ENABLE_COMPILER=OFF; see hasCompiler), a correct spec is an Environment error: load a package.
inline Result<Attention> compileSpec(std::string_view text, const CompileOptions &options = {}) {
  const std::string own(text);
  const deft_compile_options of = detail::optionsOf(options);
  return detail::made<Attention, deft_attention>(
      [&](auto to) { return deft_attention_compile(own.c_str(), &of, to); });
}

/// Compiles the spec in a file, or a shipped spec by its name ("llama3_8b"). Imports are looked up next to
/// the file, then in the shipped library; `name` and `importFolder` are not used.
inline Result<Attention> compileSpecFile(const std::string &path, const CompileOptions &options = {}) {
  const deft_compile_options of = detail::optionsOf(options);
  return detail::made<Attention, deft_attention>(
      [&](auto to) { return deft_attention_compile_file(path.c_str(), &of, to); });
}

/// Loads a package of `deftc build`: for this machine's processor with `--cpu`, and for GPUs
/// (<deft/gpu.hpp>). A package holds native code: trust it like a program.
inline Result<Attention> loadPackage(const std::string &path, const std::string &attention = {}) {
  return detail::made<Attention, deft_attention>(
      [&](auto to) { return deft_attention_load_package(path.c_str(), attention.c_str(), to); });
}

/// Whether this build of the library can compile specs.
inline bool hasCompiler() { return deft_has_compiler() != 0; }

/// The library's version, "0.3.0"; <deft/version.h> has the version of the headers.
inline const char *version() { return deft_version(); }

/// Values of an attention's parameters. A value type; runs only read it.
class Params {
public:
  /// Starts with the defaults.
  explicit Params(const Attention &attention)
      : handle_(detail::filled<deft_params *>([&](auto to) {
                  return deft_params_make(attention.handle(), to);
                }).value()) {}
  Params(const Params &other)
      : handle_(detail::filled<deft_params *>([&](auto to) {
                  return deft_params_copy(other.handle(), to);
                }).value()) {}
  Params(Params &&) noexcept = default;
  Params &operator=(const Params &other) { return *this = Params(other); }
  Params &operator=(Params &&) noexcept = default;
  ~Params() = default;

  /// Sets a scalar, or every head of an array. An i32 takes whole numbers only, an f32 finite ones.
  Result<void> set(std::string_view name, double value) {
    return detail::done(deft_params_set(handle_.get(), std::string(name).c_str(), value));
  }

  /// Sets an array; the values are copied. It has ParamInfo::length values. For arrays over tokens or
  /// queries, give as many as the largest run needs: a run that finds too few is an error.
  Result<void> set(std::string_view name, std::span<const float> values) {
    return detail::done(
        deft_params_set_f32(handle_.get(), std::string(name).c_str(), values.data(), values.size()));
  }
  Result<void> set(std::string_view name, std::span<const std::int32_t> values) {
    return detail::done(
        deft_params_set_i32(handle_.get(), std::string(name).c_str(), values.data(), values.size()));
  }

  /// Sets an array of f32 or i32, as declared, in the memory of the GPU that runs. Kernels read it when they
  /// run, so it may change between the replays of a captured graph. It stays the caller's. Plans do not know
  /// its values: a window that is a parameter here removes no tokens from a plan. Runs on the host and the
  /// tuner refuse it.
  Result<void> setDevice(std::string_view name, const void *elements, std::size_t count) {
    return detail::done(deft_params_set_device(handle_.get(), std::string(name).c_str(), elements, count));
  }

  const deft_params *handle() const { return handle_.get(); } ///< for <deft/deft.h>

private:
  detail::Owned<deft_params, deft_params_destroy> handle_;
};

namespace detail {

inline const deft_params *handleOf(const Params *params) { return params ? params->handle() : nullptr; }

} // namespace detail

} // namespace deft
