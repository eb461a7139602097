#pragma once

#include <stdint.h>

/// The host's own idea of the result: no tree, no plan, no cache. A token is a number, and its K and V follow
/// from it.

enum { QUERY_HEADS = 4, KV_HEADS = 2, HEAD_DIM = 64 };
enum { KEY = 0, VALUE = 1, QUERY = 2 };

/// An element of a token's K or V, or of a query, in bf16.
uint16_t element(int kind, int token, int head, int d);

float from_bf16(uint16_t bits);

/// One query head of the query `query`, which sees these tokens, with scale 1/4; gives the log-sum-exp.
double plain_attention(int query, int head, const int *tokens, int count, double *out);
