#pragma once

#include <deft/c/merge_states.h>
#include <deft/c/plan.h>
#include <deft/c/ranks.h>

/// Merges the results of one tree over several ranks: each rank gives the results of its own tokens, and
/// merges the heads that it wants. Processes of one host use shared memory (POSIX), its GPUs memory that they
/// map from each other, and other GPUs NCCL. Starting ranks and naming the group is up to the program
/// (torchrun, MPI, an engine).

DEFT_C_BEGIN

/// The objects that ranks must have in common. Null ones are not compared.
typedef struct deft_agreement {
  size_t size; ///< sizeof(deft_agreement)
  const deft_attention *attention;
  const deft_plan *plan; ///< for processors: compares its options, and its config if it is invariant
  const deft_gpu_plan *gpu_plan;
  const deft_tree *tree; ///< nodes, queries, and the layout of deft_ranks except the rank
} deft_agreement;

/// The same as numbers, for a comparison by other means (torch.distributed); 0: not compared.
typedef struct deft_agreement_hashes {
  size_t size; ///< sizeof(deft_agreement_hashes), set by the caller
  uint64_t version;
  uint64_t attention;
  uint64_t options;
  uint64_t tree;
} deft_agreement_hashes;

DEFT_C_API deft_status deft_agreement_get_hashes(const deft_agreement *of, deft_agreement_hashes *hashes);

typedef struct deft_peers_options {
  size_t size;            ///< sizeof(deft_peers_options)
  const char *name;       ///< of the group: letters, digits, `_`, `-` and `.`; unique at that time
  int32_t count;          ///< ranks, 1 to DEFT_MOST_RANKS
  int32_t rank;           ///< this one, from 0
  int64_t bytes;          ///< of a rank's largest results, out and lse together: each rank takes twice that
  double timeout_seconds; ///< a later rank is an error; 0: 10 seconds
} deft_peers_options;

/// A rank of the group. All ranks make the same calls, in the same order, each rank in one thread at a time.
/// A call returns when all ranks have made it, or with an error that names a rank that has ended, has given
/// up, or was too late. After an error the group is unusable: ranks must meet again.
typedef struct deft_peers deft_peers;

DEFT_C_API deft_status deft_peers_meet(const deft_peers_options *options, deft_peers **peers);
/// The others' calls fail from now on.
DEFT_C_API void deft_peers_destroy(deft_peers *peers);

/// Call it before the first run, and after changes of trees that ranks might not share. The error names a
/// rank with another version of the library, attention, config or tree, or a page or node that two ranks
/// claim.
DEFT_C_API deft_status deft_peers_agree(deft_peers *peers, const deft_agreement *own);

/// `own`: the results of this rank's run, all heads of all queries, with its lse. `to` gets the heads from
/// `head_begin` on, [queries, head_count, head_dim] and [queries, head_count]; its lse may be null. Neither
/// may overlap `own`. Ranks may want different heads. Parts are added in the order of ranks, so the bits do
/// not depend on timing.
DEFT_C_API deft_status deft_peers_merge(deft_peers *peers, const deft_state *own, int32_t head_begin,
                                        int32_t head_count, const deft_state *to);

/* GPUs: those of one host meet by a name or map memory themselves, those of any hosts hand on an id. */

/// How results go from GPU to GPU.
typedef int32_t deft_transport;
enum {
  DEFT_TRANSPORT_AUTO = 0,   ///< mapped where every pair of ranks can, else NCCL: the same for all ranks
  DEFT_TRANSPORT_MAPPED = 1, ///< each reads the others' memory
  DEFT_TRANSPORT_NCCL = 2    ///< libnccl.so.2 is loaded at run time, version 2.14 or later
};

enum { DEFT_PEERS_ID_BYTES = 128 };

typedef struct deft_gpu_peers_options {
  size_t size;            ///< sizeof(deft_gpu_peers_options)
  int32_t count;          ///< ranks, 1 to DEFT_MOST_RANKS
  int32_t rank;           ///< this one, from 0
  deft_dtype type;        ///< of `out`: DEFT_F32, DEFT_F16 or DEFT_BF16
  int32_t queries;        ///< the most of a merge
  int32_t heads;          ///< all heads of an attention
  int32_t head_dim;       ///< of `out`; a row is a multiple of 16 bytes
  double timeout_seconds; ///< a later rank is an error of deft_gpu_peers_check; 0: 10 seconds
  /// Of deft_gpu_peers_make: the memory of each rank as this rank's GPU maps it, deft_gpu_peers_get_bytes
  /// each, zeros at first.
  void *const *memories;
  /// Of deft_gpu_peers_make, in place of memories: the id that one rank made by deft_gpu_peers_make_id,
  /// and sent to all others (MPI, torch.distributed); the ranks use NCCL.
  const void *id;
  int32_t head_begin;       ///< the heads that this rank merges, so that NCCL sends it no others
  int32_t head_count;       ///< with head_begin 0: 0 is all
  deft_transport transport; ///< of deft_gpu_peers_meet; all ranks say the same
  int32_t reserved;         ///< 0
} deft_gpu_peers_options;

/// The size of a rank's memory: two alternating buffers of its results, and flags. Does not read
/// `memories`.
DEFT_C_API deft_status deft_gpu_peers_get_bytes(const deft_gpu_peers_options *options, int64_t *bytes);

/// Fills DEFT_PEERS_ID_BYTES bytes, which name a new group. Its maker stays until all have met.
DEFT_C_API deft_status deft_gpu_peers_make_id(void *id);

/// A rank's end of the group, on one stream. All ranks merge equally often, in the same order, as many
/// queries each.
typedef struct deft_gpu_peers deft_gpu_peers;

/// NVRTC compiles the kernels, or they come from the cache of kernels. The memories are the caller's; keep
/// them until the last merge has ended. With an id it returns when all ranks have come.
DEFT_C_API deft_status deft_gpu_peers_make(const deft_gpu *gpu, const deft_gpu_peers_options *options,
                                           deft_gpu_peers **peers);
/// The ranks of the group `name` (as in deft_peers_options) make memory by CUDA's virtual memory and map each
/// other's, or use NCCL; `memories` and `id` are null. It returns when all have, or with an error that names
/// the rank that is late, or that cannot use the transport. Ranks are processes of one user, or threads.
DEFT_C_API deft_status deft_gpu_peers_meet(const deft_gpu *gpu, const deft_gpu_peers_options *options,
                                           const char *name, deft_gpu_peers **peers);
/// Call it after this rank's last merge. With NCCL, first destroy graphs that hold a merge.
DEFT_C_API void deft_gpu_peers_destroy(deft_gpu_peers *peers);
/// The one in use: mapped or NCCL.
DEFT_C_API deft_status deft_gpu_peers_get_transport(const deft_gpu_peers *peers, deft_transport *transport);
/// As deft_peers_agree, for ranks that have met by a name or an id. Outside of captures.
DEFT_C_API deft_status deft_gpu_peers_agree(const deft_gpu_peers *peers, const deft_agreement *own);
/// Enqueues deft_peers_merge on the stream, which may be capturing: one launch where memory is mapped, three
/// with NCCL. It gives the others this rank's results, waits for theirs on the GPU, and merges. `to` may be
/// memory of `own`.
DEFT_C_API deft_status deft_gpu_peers_merge(const deft_gpu_peers *peers, const deft_state *own,
                                            int32_t head_begin, int32_t head_count, const deft_state *to,
                                            deft_gpu_stream stream);
/// An error if a finished merge found a rank late; it names the rank. That merge and all later ones write
/// nothing. With NCCL also one if a rank or the network is gone; replay no graph of merges then.
DEFT_C_API deft_status deft_gpu_peers_check(const deft_gpu_peers *peers);

DEFT_C_END
