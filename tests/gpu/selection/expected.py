"""What a selection and sparse attention must give, by other programs than the kernels; and what lists keep."""

import numpy as np
import torch
from kernels import DIM, KV_HEADS, RATIO, SCALE


def keys_in_order(worth):
    """Unsigned keys as int64."""
    return worth.to(torch.int64) & 0xFFFFFFFF


def expected_lists(worth, length, budget, first, last):
    """What a sort puts first, by numpy: another program than the kernel."""
    keys = keys_in_order(worth).cpu().numpy()[..., :length]
    lists = []
    for row in keys.reshape(-1, length):
        row = row.copy()
        kept = np.zeros(length, bool)
        kept[:first] = kept[length - last:] = True
        row[kept & (row > 0)] = 1 << 40
        order = np.argsort(-row, kind="stable")[:budget]
        lists.append(np.sort(order[row[order] > 0]))
    return lists


def reference(layer, table, query, positions_of_group, length, page):
    """Softmax in float64 of a query over positions of its path, a list a KV head."""
    outs = []
    for group in range(KV_HEADS):
        positions = positions_of_group[group].long() + query * length
        token = table[positions // page].long() * page + positions % page
        k = layer.k.view(-1, KV_HEADS, DIM)[token, group].double()
        v = layer.v.view(-1, KV_HEADS, DIM)[token, group].double()
        q = layer.q[query, group * RATIO:(group + 1) * RATIO].double()
        outs.append(torch.softmax(q @ k.T * SCALE, -1) @ v)
    return torch.cat(outs)


def recall(length, budget, structured):
    """Of the mass of each head's softmax, and of each head's own best tokens: the share that a list by the
    group's largest score has, and one by the sum of its scores."""
    torch.manual_seed(3)
    k = torch.randn(KV_HEADS, length, DIM, device="cuda")
    if structured:  # keys about few directions, which a group's heads seek each in its own way
        centres = torch.randn(KV_HEADS, 64, DIM, device="cuda") * 1.5
        k = k + centres[:, torch.randint(64, (length,), device="cuda")]
        q = torch.stack([centres[:, torch.randint(64, (RATIO,), device="cuda")][:, i] for i in range(RATIO)], 1)
        q = q + 0.5 * torch.randn_like(q)
    else:
        q = torch.randn(KV_HEADS, RATIO, DIM, device="cuda") * 3
    scores = torch.einsum("grd,gtd->grt", q, k) * SCALE
    mass = torch.softmax(scores.double(), -1)
    own = scores.topk(budget, -1).indices
    row = {}
    for name, worth in (("maximum", scores.amax(1)), ("sum", scores.sum(1))):
        chosen = torch.zeros(KV_HEADS, length, dtype=torch.bool, device="cuda")
        chosen.scatter_(1, worth.topk(budget, -1).indices, True)
        wide = chosen[:, None].expand_as(scores)
        share = (mass * wide).sum(-1)
        row[name] = {"mass_mean": share.mean().item(), "mass_least": share.min().item(),
                     "own_best": wide.gather(2, own).double().mean().item()}
    return row
