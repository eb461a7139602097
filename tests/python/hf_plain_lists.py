"""Attention over lists, written to be read: a model decodes with it what a TreeDecoder with a plan of layers has decoded."""

from deft import Plan
from hf_models import torch, transformers


class PlainPath:
    """One path of a tree: K and V of each layer, rounded as the cache rounds them, and attention in float64."""

    def __init__(self, model, dtype=torch.float16):
        self.model, self.dtype = model, dtype
        self.k, self.v = {}, {}
        self.scores = {}  # of each layer, [heads, tokens]: the last token's
        self._lists = {}
        transformers.AttentionInterface.register("plain_lists", _attend)
        transformers.AttentionMaskInterface.register("plain_lists", lambda *arguments, **unused: None)

    def fork(self):
        other = PlainPath(self.model, self.dtype)
        other.k, other.v = dict(self.k), dict(self.v)
        return other

    @torch.no_grad()
    def read(self, tokens, lists=None):
        """The logits behind the last of the tokens. `lists[layer]` are those of its KV heads (or query heads, or one for all),
        for layers that read them."""
        self._lists = lists or {}
        first = self.k[0].shape[1] if self.k else 0
        before = self.model.config._attn_implementation
        self.model.config._attn_implementation = "plain_lists"
        try:
            positions = torch.arange(first, first + len(tokens))[None]
            output = self.model(torch.tensor([tokens]), position_ids=positions, use_cache=False, plain_path=self)
        finally:
            self.model.config._attn_implementation = before
        return output.logits[0, -1]

    def attend(self, layer, q, k, v, scale, window, softcap):
        q, k, v = (one[0].to(self.dtype).double() for one in (q, k, v))
        for kept, new in ((self.k, k), (self.v, v)):
            kept[layer] = torch.cat([kept[layer], new], dim=1) if layer in kept else new
        heads, rows, _ = q.shape
        k, v = (kept[layer].repeat_interleave(heads // len(kept[layer]), dim=0) for kept in (self.k, self.v))
        scores = q @ k.transpose(1, 2) * scale
        if softcap is not None:
            scores = torch.tanh(scores / softcap) * softcap
        tokens = scores.shape[2]
        kv, own = torch.arange(tokens)[None], torch.arange(tokens - rows, tokens)[:, None]
        seen = (kv <= own) & (kv > own - (window or tokens))
        if layer in self._lists:
            lists = self._lists[layer]
            listed = torch.zeros(heads, 1, tokens, dtype=torch.bool)
            for head in range(heads):
                listed[head, 0, lists[head * len(lists) // heads]] = True
            seen = seen & listed
        self.scores[layer] = scores[:, -1]
        return (scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v).to(self.dtype)


def _attend(module, query, key, value, mask, scaling=None, sliding_window=None, softcap=None, plain_path=None, **unused):
    out = plain_path.attend(module.layer_idx, query, key, value, scaling, sliding_window, softcap)
    return out.transpose(0, 1)[None].to(query.dtype), None


class Heard:
    """The lists of every selecting run, in order: [run][query][list] are positions."""

    def __init__(self, monkeypatch):
        self.runs = []
        run_selecting = Plan.run_selecting

        def noting(plan, selection, *arguments, **named):
            out = run_selecting(plan, selection, *arguments, **named)
            queries, lists = range(selection.query_count), range(selection.lists)
            self.runs.append([[selection.positions(query, one) for one in lists] for query in queries])
            return out

        monkeypatch.setattr(Plan, "run_selecting", noting)

    def of_last_step(self, decoder, query):
        """What each sparse layer read for a query, by the layer's number."""
        runs = iter(self.runs[-decoder.roles.count("select") :])
        found, now = {}, None
        for layer, role in enumerate(decoder.roles):
            if role == "select":
                now = next(runs)[query]
            elif role == "sparse":
                found[layer] = now
        return found
