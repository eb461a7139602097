#include "plain_attention.h"

#include <math.h>
#include <string.h>

float from_bf16(uint16_t bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

uint16_t element(int kind, int token, int head, int d) {
  // Any mixture that tells neighbours apart will do.
  uint32_t mixed = (uint32_t)(((token * 3 + kind) * 16 + head) * 128 + d) * 2654435761u;
  float value;
  uint32_t bits;
  mixed = (mixed ^ mixed >> 15) * 2246822519u;
  mixed ^= mixed >> 13;
  value = (float)(mixed & 0xffff) / 32768.0f - 1.0f;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}

static double score(int query, int head, int token) {
  double sum = 0;
  int d;
  for (d = 0; d < HEAD_DIM; ++d)
    sum += (double)from_bf16(element(QUERY, query, head, d)) *
           from_bf16(element(KEY, token, head / (QUERY_HEADS / KV_HEADS), d));
  return sum * 0.25;
}

double plain_attention(int query, int head, const int *tokens, int count, double *out) {
  double largest = -INFINITY, weights = 0;
  int i, d;
  for (i = 0; i < count; ++i)
    largest = fmax(largest, score(query, head, tokens[i]));
  memset(out, 0, HEAD_DIM * sizeof *out);
  for (i = 0; i < count; ++i) {
    const double weight = exp(score(query, head, tokens[i]) - largest);
    weights += weight;
    for (d = 0; d < HEAD_DIM; ++d)
      out[d] += weight * from_bf16(element(VALUE, tokens[i], head / (QUERY_HEADS / KV_HEADS), d));
  }
  for (d = 0; d < HEAD_DIM; ++d)
    out[d] /= weights;
  return largest + log(weights);
}
