#ifndef DEFT_OPS_TD
#define DEFT_OPS_TD

include "compiler/dialect/DeftDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class DeftOp<string opMnemonic, list<Trait> traits = []> : Op<DeftDialect, opMnemonic, traits>;

/// The vector that a tensor has for a head and a token, or a query.
def RowTypeAttr : TypeAttrOf<VectorOfRankAndType<[1], [F16, BF16, F8E4M3FN, F8E5M2]>>;

def AttentionOp : DeftOp<"attention", [IsolatedFromAbove, Symbol,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "one attention: what is computed for a (query head, query) row over the tokens of its path";
  let description = [{
    `q`, `k`, `v` and `out` are what the four tensors have for a head and a token, or a query. With `value_in_key` a token's
    `v` is the beginning of its `k`. With `byte_products` q and the weights are rounded to the type of `k` and `v`.

    The regions hold at most one block each.

    `mask` yields i1: whether a token of the path is visible. `score` yields the final score, f32, in natural units.
    Their arguments are always all of
      (s: f32, q_pos: i32, kv_pos: i32, head: i32, kv_head: i32, depth: i32, query: i32).
    An empty mask hides nothing; an empty score is `s`, which is q.k * scale. With `path` a token may come behind `q_pos`, up to
    the end of the query's node; then nothing is selected.

    `sink` yields a logit, f32, that joins the denominator of each row once. Of the same arguments it uses `head` and `kv_head`
    alone. Where it is empty there is none.

    `value_factor` yields what a token's V is multiplied by, f32. Of the same arguments it uses `kv_pos`, `kv_head` and `depth`
    alone. Where it is empty, V stays as it is.

    `query` yields an element of q before q.k, `output` one of the normalised row, f32. Their arguments are always all of
      (x, x_half, x_pair, x_rms: f32, dim: i32, q_pos: i32, head: i32, kv_head: i32, query: i32):
    the element, that half a row further on, its neighbour of an even and an odd one, the row's root mean square, and the
    element's place. `output` uses none of the three that others of the row make. Where they are empty, rows stay as they are.

    `key` yields an element of K before q.k, f32. Its arguments are always all of
      (x, x_half, x_pair, x_rms: f32, dim: i32, kv_pos: i32, kv_head: i32):
    the first five as those of `query`, of the token's row. Where it is empty, keys stay as they are.

    `tile` is made from `mask` by deft-tile-analysis. Its arguments are the inclusive bounds of a set of (row, token) pairs,
      (q_lo, q_hi, kv_lo, kv_hi, depth_lo, depth_hi, query_lo, query_hi, head_lo, head_hi, kv_head: i32),
    and it yields (any: i1, all: i1): some pair may be visible; every pair surely is.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I32Attr:$query_heads, I32Attr:$kv_heads, RowTypeAttr:$q,
                       RowTypeAttr:$k, RowTypeAttr:$v, UnitAttr:$value_in_key, UnitAttr:$byte_products, RowTypeAttr:$out, UnitAttr:$lse,
                       CacheAttr:$cache, F64Attr:$scale,
                       NormalizeAttr:$normalize, TypedArrayAttrBase<ParamAttr, "parameters">:$params,
                       OptionalAttr<ScheduleAttr>:$schedule, OptionalAttr<SelectAttr>:$select, UnitAttr:$path);
  let regions = (region AnyRegion:$query, AnyRegion:$key, AnyRegion:$mask, AnyRegion:$score, AnyRegion:$value_factor, AnyRegion:$sink,
                        AnyRegion:$output, AnyRegion:$tile);
  let assemblyFormat = [{
    $sym_name `query_heads` $query_heads `kv_heads` $kv_heads `q` $q `k` $k `v` $v
    (`value_in_key` $value_in_key^)? (`byte_products` $byte_products^)? `out` $out (`lse` $lse^)? `cache` $cache `scale` $scale `normalize` `` $normalize ` ` `\n` ` ` ` ` `params` $params
    (`\n` ` ` ` ` `schedule` $schedule^)? (`\n` ` ` ` ` `select` $select^)? (`\n` ` ` ` ` `path` $path^)? attr-dict-with-keyword custom<Hooks>($query, $key, $mask, $score, $value_factor, $sink, $output, $tile)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizeMethod = 1;
  let extraClassDeclaration = [{
    bool hasQuery() { return !getQuery().empty(); }
    bool hasKey() { return !getKey().empty(); }
    bool hasOutput() { return !getOutput().empty(); }
    bool hasMask() { return !getMask().empty(); }
    bool hasScore() { return !getScore().empty(); }
    bool hasValueFactor() { return !getValueFactor().empty(); }
    bool hasSink() { return !getSink().empty(); }
    bool hasTile() { return !getTile().empty(); }
    bool hasTokenParams() { return tokenParams() > 0; }
    int tokenParams(); ///< arrays over tokens
    ::deft::spec::Tensors tensors();
    int64_t ratio() { return getQueryHeads() / getKvHeads(); }
    /// The declaration of a parameter and its slot; a null attribute when there is none of this name.
    std::pair<ParamAttr, unsigned> findParam(::llvm::StringRef name);
  }];
}

def ParamOp : DeftOp<"param", [Pure]> {
  let summary = "the value of a scalar parameter";
  let arguments = (ins StrAttr:$name);
  let results = (outs AnyTypeOf<[F32, I32]>:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}

def ParamElementOp : DeftOp<"param_element", [Pure]> {
  let summary = "the element of a parameter that belongs to a head or a query, or that of a table at an index within it";
  let arguments = (ins StrAttr:$name, I32:$index);
  let results = (outs AnyTypeOf<[F32, I32]>:$result);
  let assemblyFormat = "$name `[` $index `]` attr-dict `:` type($result)";
}

def ParamOfTokenOp : DeftOp<"param_of_token", [Pure]> {
  let summary = "the element of a per-token parameter that belongs to the token";
  let description = [{
    Where the token's slot of the cache is, a kernel knows and no region: kernels fetch the value as they fetch the token, that of the
    KV head at hand where each has one.
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs AnyTypeOf<[F32, I32]>:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
}

def YieldOp : DeftOp<"yield", [Pure, Terminator, HasParent<"AttentionOp">]> {
  let summary = "what a region of deft.attention computes";
  let arguments = (ins Variadic<AnyTypeOf<[I1, F32]>>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

#endif
