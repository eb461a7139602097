// The dialect itself and its attributes. The operations are in DeftOps.td.
#ifndef DEFT_DIALECT_TD
#define DEFT_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def DeftDialect : Dialect {
  let name = "deft";
  let cppNamespace = "::deft::dialect";
  let summary = "What one attention computes: its dimensions, and its mask and score as regions of arith and math ops";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let useDefaultAttributePrinterParser = 1;
}

class DeftEnum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::deft::dialect";
  let genSpecializedAttr = 0;
}

def PageOrder : DeftEnum<"PageOrder", "order of slot and KV head in a page", [
  I32EnumAttrCase<"Nhd", 0, "nhd">, I32EnumAttrCase<"Hnd", 1, "hnd">]>;
def ParamShape : DeftEnum<"ParamShape", "one value, one for each query or KV head, for each token, query or token and KV head, or a table", [
  I32EnumAttrCase<"Scalar", 0, "scalar">, I32EnumAttrCase<"PerQueryHead", 1, "per_query_head">,
  I32EnumAttrCase<"PerKvHead", 2, "per_kv_head">, I32EnumAttrCase<"Table", 3, "table">,
  I32EnumAttrCase<"PerToken", 4, "per_token">, I32EnumAttrCase<"PerQuery", 5, "per_query">,
  I32EnumAttrCase<"PerTokenAndHead", 6, "per_token_and_head">]>;
def Normalize : DeftEnum<"Normalize", "how scores become weights", [
  I32EnumAttrCase<"Softmax", 0, "softmax">, I32EnumAttrCase<"Sigmoid", 1, "sigmoid">]>;
def Partition : DeftEnum<"Partition", "how a plan groups KV with queries", [
  I32EnumAttrCase<"Query", 0, "query">, I32EnumAttrCase<"Node", 1, "node">,
  I32EnumAttrCase<"NodeChunk", 2, "node_chunk">, I32EnumAttrCase<"Flatten", 3, "flatten">,
  I32EnumAttrCase<"Cascade", 4, "cascade">, I32EnumAttrCase<"Greedy", 5, "greedy">,
  I32EnumAttrCase<"Union", 6, "union">, I32EnumAttrCase<"Auto", 7, "auto">]>;

def SelectBy : DeftEnum<"SelectBy", "which rows of a query share a list of selected tokens", [
  I32EnumAttrCase<"KvHead", 0, "kv_head">, I32EnumAttrCase<"QueryHead", 1, "query_head">,
  I32EnumAttrCase<"Query", 2, "query">, I32EnumAttrCase<"Caller", 3, "caller">]>;

class DeftAttr<string name, string attrMnemonic> : AttrDef<DeftDialect, name> {
  let mnemonic = attrMnemonic;
  let genVerifyDecl = 1;
}

def NormalizeAttr : EnumAttr<DeftDialect, Normalize, "normalize"> { let assemblyFormat = "$value"; }

def CacheAttr : DeftAttr<"Cache", "cache"> {
  let summary = "layout of the KV cache; page_size 0 is contiguous";
  let parameters = (ins "int64_t":$page_size, EnumParameter<PageOrder>:$order);
  let assemblyFormat = "`<` struct(params) `>`";
}

def ParamAttr : DeftAttr<"Param", "param"> {
  let summary = "a parameter given at run time; arrays have no default";
  let parameters = (ins StringRefParameter<>:$name, "::mlir::Type":$type, EnumParameter<ParamShape>:$shape,
                        OptionalParameter<"::mlir::FloatAttr">:$default_value);
  let assemblyFormat = "`<` struct(params) `>`";
}

def TuneAttr : DeftAttr<"Tune", "tune"> {
  let summary = "a fixed number, or the alternatives of tune(...) in written order";
  let parameters = (ins ArrayRefParameter<"int64_t">:$values);
  let assemblyFormat = "`<` $values `>`";
}

def PhaseAttr : DeftAttr<"Phase", "phase"> {
  let summary = "tile shapes of the items with more than rows_above rows; the last phase has -1";
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$rows_above, OptionalParameter<"TuneAttr">:$tile_q,
                        OptionalParameter<"TuneAttr">:$tile_kv, OptionalParameter<"TuneAttr">:$stages,
                        OptionalParameter<"TuneAttr">:$warps);
  let assemblyFormat = "`<` struct(params) `>`";
}

def PartitionAttr : EnumAttr<DeftDialect, Partition, "partition"> { let assemblyFormat = "`<` $value `>`"; }

def ScheduleAttr : DeftAttr<"Schedule", "schedule"> {
  let summary = "the space of configs as the spec has it; what is absent is left to the families of kernels";
  let parameters = (ins OptionalParameter<"::mlir::ArrayAttr", "of PartitionAttr">:$partitions,
                        OptionalParameter<"TuneAttr">:$chunk,
                        OptionalParameter<"::mlir::ArrayAttr", "of PhaseAttr">:$phases);
  let assemblyFormat = "`<` struct(params) `>`";
}

def SelectAttr : DeftAttr<"Select", "select"> {
  let summary = "which tokens of a path later layers read alone; kernels then give the scores they attend by";
  let parameters = (ins "TuneAttr":$budget, EnumParameter<SelectBy>:$by, "int64_t":$keep_first, "int64_t":$keep_last);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif
