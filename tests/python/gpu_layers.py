"""TreeDecoder with a plan of layers on a GPU, against the same decoder without one and on the CPU: captured steps and forks.

usage: gpu_layers.py      needs the wheel installed, torch with CUDA and transformers; exit code 1 where something is wrong
"""

import sys

import torch
import transformers
from deft.hf import LayerPlan, TreeDecoder, recall

SIZES = dict(vocab_size=211, hidden_size=512, intermediate_size=768, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=2,
             head_dim=64, max_position_embeddings=4096, initializer_range=0.05)


def make_model(device):
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, attn_implementation="eager"))
    return model.to(device, torch.bfloat16).eval()


def decode(model, layers, prompt, steps):
    """The logits of each step of three branches, tokens the same whoever decodes."""
    decoder = TreeDecoder(model, pages=512, layers=layers)
    draw = torch.Generator().manual_seed(7)
    branches, found = decoder.fork(decoder.prefill(prompt), 3), []
    for step in range(steps):
        tokens = torch.randint(3, 211, (len(branches),), generator=draw).tolist()
        found.append(decoder.step(branches, tokens).float().cpu().clone())
        if step == steps // 2:
            branches = [branches[0], *decoder.fork(branches[1], 2)]
    return found


def difference(ours, theirs):
    return max(float((a - b).norm() / b.norm()) for a, b in zip(ours, theirs))


def check(what, value, most, least=0.0):
    is_right = least <= value <= most
    print(f"{'ok' if is_right else 'WRONG'}  {what}: {value:.4f}, allowed {least:.4f} to {most:.4f}")
    return is_right


def main():
    prompt = torch.randint(3, 211, (700,), generator=torch.Generator().manual_seed(3)).tolist()
    on_gpu, on_cpu = make_model("cuda"), make_model("cpu")
    full = decode(on_gpu, None, prompt, 12)
    some = LayerPlan(budget=128, full=1, select=(1, 4))
    sparse = decode(on_gpu, some, prompt, 12)
    all_of_it = decode(on_gpu, LayerPlan(budget=2048, full=1, select=(1, 4)), prompt, 12)
    results = [
        check("a budget beyond the paths is full attention", difference(all_of_it, full), 0.02),
        check("a budget of 128 of 700 is not", difference(sparse, full), 1.0, 0.02),
        check("and is what the CPU makes of it", difference(sparse, decode(on_cpu, some, prompt, 12)), 0.06),
    ]
    print(recall(TreeDecoder(on_gpu, pages=512, layers=some), prompt, 3))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
