// The passes, each with an example in its description: the first block is the input, the second what the pass makes of
// it. tests/passes runs them.
#ifndef DEFT_PASSES_TD
#define DEFT_PASSES_TD

include "mlir/Pass/PassBase.td"

class AttentionPass<string passArgument> : Pass<passArgument, "::deft::dialect::AttentionOp">;

def ReciprocalPass : AttentionPass<"deft-reciprocal"> {
  let summary = "divide by row-uniform values of the score through their reciprocal";
  let description = [{
    In `score`, a division by what is the same for a whole row becomes a product with its reciprocal, which is computed
    once a row: a soft cap divides every score by one number, an exact f32 division costs about ten instructions on a GPU
    and a multiplication one. That costs one rounding, far below that of the 16-bit inputs. A division of what is itself
    the same for a row stays, since it happens once, and `mask` is left exact. So does one of exact numbers, such as
    positions, whose quotient a `floor`, a comparison or the index of a table reads: 41 / 41 is 1, and 41 times the
    reciprocal less.

    Example:

    ```mlir
    deft.attention @capped query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
      cache <page_size = 16, order = nhd> scale 1.0 normalize softmax
      params [#deft.param<name = "cap", type = f32, shape = scalar>]
    score(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
      %cap = deft.param "cap" : f32
      %ratio = arith.divf %s, %cap : f32
      %bent = math.tanh %ratio : f32
      %score = arith.mulf %bent, %cap : f32
      deft.yield %score : f32
    }
    ```

    becomes

    ```mlir
    deft.attention @capped query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
      cache <page_size = 16, order = nhd> scale 1.0 normalize softmax
      params [#deft.param<name = "cap", type = f32, shape = scalar>]
    score(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
      %cap = deft.param "cap" : f32
      %one = arith.constant 1.0 : f32
      %inverse = arith.divf %one, %cap : f32
      %ratio = arith.mulf %s, %inverse : f32
      %bent = math.tanh %ratio : f32
      %score = arith.mulf %bent, %cap : f32
      deft.yield %score : f32
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def TileAnalysisPass : AttentionPass<"deft-tile-analysis"> {
  let summary = "make the region `tile` from `mask` by interval arithmetic";
  let description = [{
    Walks `mask` once and emits, operation by operation, what it is over a set of (row, token) pairs: of numbers the least
    and the greatest, of bools whether some pair may have it and whether every pair surely has. So kernels leave out tiles
    that nobody sees, and do not ask the mask where all is visible. Bounds err on the safe side: what the analysis does not
    know may be anything. A `tile` that was there is made anew; where there is no mask there is none.

    Example:

    ```mlir
    deft.attention @first_tokens query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
      cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
    mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
      %many = arith.constant 4 : i32
      %visible = arith.cmpi slt, %kv_pos, %many : i32
      deft.yield %visible : i1
    }
    ```

    becomes

    ```mlir
    deft.attention @first_tokens query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
      cache <page_size = 16, order = nhd> scale 1.0 normalize softmax params []
    mask(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
      %many = arith.constant 4 : i32
      %visible = arith.cmpi slt, %kv_pos, %many : i32
      deft.yield %visible : i1
    }
    tile(%q_lo: i32, %q_hi: i32, %kv_lo: i32, %kv_hi: i32, %depth_lo: i32, %depth_hi: i32, %query_lo: i32, %query_hi: i32,
         %head_lo: i32, %head_hi: i32, %kv_head: i32) {
      %many = arith.constant 4 : i32
      %any = arith.cmpi slt, %kv_lo, %many : i32
      %all = arith.cmpi slt, %kv_hi, %many : i32
      deft.yield %any, %all : i1, i1
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::deft::dialect::DeftDialect"];
}

def AnnotateUniformityPass : AttentionPass<"deft-annotate-uniformity"> {
  let summary = "write what each operation of a hook depends on";
  let description = [{
    Writes the uniformity of every operation of `mask`, `score` and `sink` as an attribute, for a reader: `launch` depends on neither
    the row nor the token, `row` on the row alone, `column` on the token alone, `pair` on both. Code generation and
    deft-reciprocal compute the same by themselves; no pass reads the attribute.

    Example:

    ```mlir
    deft.attention @alibi query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
      cache <page_size = 16, order = nhd> scale 1.0 normalize softmax
      params [#deft.param<name = "slope", type = f32, shape = per_query_head>]
    score(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
      %slope = deft.param_element "slope"[%head] : f32
      %position = arith.sitofp %kv_pos : i32 to f32
      %bias = arith.mulf %slope, %position : f32
      %score = arith.addf %s, %bias : f32
      deft.yield %score : f32
    }
    ```

    becomes

    ```mlir
    deft.attention @alibi query_heads 8 kv_heads 2 q vector<64xbf16> k vector<64xbf16> v vector<64xbf16> out vector<64xbf16>
      cache <page_size = 16, order = nhd> scale 1.0 normalize softmax
      params [#deft.param<name = "slope", type = f32, shape = per_query_head>]
    score(%s: f32, %q_pos: i32, %kv_pos: i32, %head: i32, %kv_head: i32, %depth: i32, %query: i32) {
      %slope = deft.param_element "slope"[%head] {deft.uniformity = "row"} : f32
      %position = arith.sitofp %kv_pos {deft.uniformity = "column"} : i32 to f32
      %bias = arith.mulf %slope, %position {deft.uniformity = "pair"} : f32
      %score = arith.addf %s, %bias {deft.uniformity = "pair"} : f32
      deft.yield %score : f32
    }
    ```
  }];
}

#endif
