"""Runs as operations of torch: what torch.compile and torch.export make of them is what runs without them give."""

import subprocess
import sys

import deft
import pytest

torch = pytest.importorskip("torch")

SHAPE = "query_heads = 4; kv_heads = 2; head_dim = 64; dtype = bf16;"


@pytest.fixture(scope="module")
def att():
    return deft.compile(f"attention a {{ {SHAPE} output = bf16 with lse; kv_cache = contiguous; }}")


@pytest.fixture(scope="module")
def paged():
    return deft.compile(f"attention a {{ {SHAPE} output = bf16 with lse; }}")


def values(*shape):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator).bfloat16()


def step(rows, tokens=120):
    return values(rows, 4, 64), values(tokens, 2, 64), values(tokens + 1, 2, 64)[:tokens]


@pytest.fixture
def batch(paged):
    made = deft.PagedBatch(paged, max_requests=4)
    made.update(torch.tensor([[0, 1, 2], [0, 1, 3]], dtype=torch.int32), [40, 37])
    return made


def cache():
    return values(4, 16, 2, 64), values(5, 16, 2, 64)[:4]


@pytest.fixture(autouse=True)
def _nothing_compiled():
    torch._dynamo.reset()


def compiled(function, **options):
    return torch.compile(function, fullgraph=True, backend="aot_eager", **options)


@pytest.mark.parametrize("return_lse", [False, True])
def test_a_run_is_one_graph_with_what_stands_around_it(att, family, return_lse):
    plan = att.plan(family)

    def layer(q, k, v):
        found = plan.run(q * 2, k, v, return_lse=return_lse)
        return (found[0] + 1, found[1] + 1) if return_lse else found + 1

    tensors = step(2)
    for seen, expected in zip(compiled(layer)(*tensors), layer(*tensors)):
        assert torch.equal(seen, expected)


def test_inductor_takes_it(att, family):
    plan = att.plan(family)
    tensors = step(2)
    seen = torch.compile(lambda q, k, v: plan.run(q, k, v), fullgraph=True)(*tensors)
    assert torch.equal(seen, plan.run(*tensors))


def test_what_is_given_to_write_to_is_written(att, family):
    plan = att.plan(family)
    q, k, v = step(2)
    expected, expected_lse = plan.run(q, k, v, return_lse=True)

    def into(out, lse):
        plan.run(q, k, v, out=out, lse=lse)
        return out * 2, lse

    out, lse = torch.zeros_like(expected), torch.zeros_like(expected_lse)
    doubled, _ = compiled(into)(out, lse)
    assert torch.equal(out, expected) and torch.equal(lse, expected_lse) and torch.equal(doubled, 2 * expected)


def test_keys_that_the_graph_writes_before_are_read(att, family):
    plan = att.plan(family)
    q, k, v = step(2)
    new = values(2, 2, 64)

    def layer(q, k, v):
        k[104:106] = new
        return plan.run(q, k, v)

    expected = layer(q, k.clone(), v)
    assert not torch.equal(expected, plan.run(q, k, v))
    assert torch.equal(compiled(layer)(q, k.clone(), v), expected)


def test_a_graph_serves_the_steps_of_a_plan_and_other_plans(att, family):
    counted = torch._dynamo.testing.CompileCounter()
    layer = torch.compile(lambda plan, q, k, v: plan.run(q, k, v), fullgraph=True, backend=counted)
    plan = att.plan(family)
    tensors = step(2)
    before = layer(plan, *tensors)
    family.append(2, 3)
    plan.advance(family)
    after = layer(plan, *tensors)
    assert torch.equal(after, plan.run(*tensors)) and not torch.equal(before, after)
    assert counted.frame_count == 1
    for _ in range(10):  # the second plan has it compiled again for any number; none after it
        other = att.plan(family)
        assert torch.equal(layer(other, *tensors), after)
    assert counted.frame_count == 2


def test_a_batch_is_run_with_its_own_table(batch, paged):
    q = values(2, 4, 64)
    layer = compiled(lambda q, k, v: batch.run(q, k, v, return_lse=True))
    for seen, expected in zip(layer(q, *cache()), batch.run(q, *cache(), return_lse=True)):
        assert torch.equal(seen, expected)
    batch.update(torch.tensor([[0, 1, 3], [0, 2, 1]], dtype=torch.int32), [41, 38])
    assert torch.equal(layer(q, *cache())[0], batch.run(q, *cache()))
    with pytest.raises(deft.UsageError, match="a batch has its own page table"):
        torch.ops.deft.attend(q, *cache(), torch.zeros(3, dtype=torch.int32), batch.number, torch.bfloat16)


def test_a_module_is_exported_saved_and_loaded(att, family, tmp_path):
    plan = att.plan(family)

    class Layer(torch.nn.Module):
        def forward(self, q, k, v):
            return plan.run(q, k, v, return_lse=True)

    tensors = step(2)
    exported = torch.export.export(Layer(), tensors)
    assert [node.target for node in exported.graph.nodes if node.op == "call_function"][0] == torch.ops.deft.attend_lse.default
    torch.export.save(exported, tmp_path / "layer.pt2")
    loaded = torch.export.load(tmp_path / "layer.pt2").module()
    for seen, expected in zip(loaded(*tensors), plan.run(*tensors, return_lse=True)):
        assert torch.equal(seen, expected)


def test_a_page_table_may_be_a_tensor_of_the_graph(paged, family):
    plan = paged.plan(family)
    table = torch.tensor([1, 0, 3, 2, 5, 4, 7, 6], dtype=torch.int32)
    q, k, v = values(2, 4, 64), values(8, 16, 2, 64), values(9, 16, 2, 64)[:8]
    layer = compiled(lambda q, k, v, table: plan.run(q, k, v, table))
    assert torch.equal(layer(q, k, v, table), plan.run(q, k, v, table))


def test_a_plan_of_sequences_has_their_page_table_in_the_graph(paged):
    sequences = deft.SequenceTree(pages=8)
    answer = sequences.fork(sequences.add_root(20))
    sequences.set_queries([answer])
    plan, table = paged.plan(sequences), sequences.page_table
    q, k, v = values(1, 4, 64), values(8, 16, 2, 64), values(8, 16, 2, 64)
    layer = compiled(lambda q, k, v: plan.run(q, k, v, table))
    for _ in range(3):
        sequences.append(answer, 9)
        plan.advance()
        assert torch.equal(layer(q, k, v), plan.run(q, k, v, sequences.page_table))


def test_operations_are_as_they_declare(att, family):
    plan = att.plan(family)
    q, k, v = step(2)
    out, lse = plan.run(q, k, v, return_lse=True)
    torch.library.opcheck(torch.ops.deft.attend.default, (q, k, v, None, plan.number, torch.bfloat16))
    torch.library.opcheck(torch.ops.deft.attend_lse.default, (q, k, v, None, plan.number, torch.bfloat16))
    for given in ((out, lse), (out, None)):
        torch.library.opcheck(torch.ops.deft.attend_out.default, (q, k, v, None, plan.number, *given))


def test_a_plan_that_is_gone_is_an_error(att, family):
    plan = att.plan(family)
    number = plan.number
    del plan
    with pytest.raises(deft.UsageError, match=f"there is no plan or batch {number}"):
        torch.ops.deft.attend(*step(2), None, number, torch.bfloat16)


def test_a_graph_of_another_dtype_is_refused(att, family):
    plan = att.plan(family)
    with pytest.raises(deft.UsageError, match="traced for an output of torch.float16, `a` writes torch.bfloat16"):
        torch.ops.deft.attend(*step(2), None, plan.number, torch.float16)


def test_wrong_arrays_are_named_through_an_operation(att, family):
    plan = att.plan(family)
    with pytest.raises(deft.Error, match="q is "):
        compiled(lambda q, k, v: plan.run(q, k, v))(*step(3))


def test_a_plan_that_was_there_before_torch_is_compiled_once_the_operations_are_imported():
    code = (
        "import deft; t = deft.Tree(); t.add_query(t.add_root(8, location=0))\n"
        f"p = deft.compile('attention a {{ {SHAPE} kv_cache = contiguous; }}').plan(t)\n"
        "import torch, deft.torch_ops; q, k = torch.ones(1, 4, 64).bfloat16(), torch.ones(8, 2, 64).bfloat16()\n"
        "run = torch.compile(lambda q, k: p.run(q, k, k), fullgraph=True, backend='eager')\n"
        "print(run(q, k).float().mean().item())"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "1.0\n"


@pytest.mark.parametrize("name", ["q", "k", "v", "out"])
def test_a_run_that_torch_would_want_a_gradient_of_is_an_error(att, batch, family, name):
    given = dict(zip("qkv", step(2)), out=torch.empty(2, 4, 64, dtype=torch.bfloat16))
    given[name].requires_grad_()
    plan = att.plan(family)
    for run in (plan.run, lambda **given: att.run(family, **given)):
        with pytest.raises(deft.UsageError, match=rf"{name}: a tensor requires grad(?s:.*)torch.no_grad\(\), or tensor.detach\(\)"):
            run(**given)
    with torch.no_grad():
        without = plan.run(**given)
    assert (without == plan.run(**{name: one.detach() for name, one in given.items()})).all()
    k_cache, v_cache = cache()
    with pytest.raises(deft.UsageError, match="k: a tensor requires grad"):
        batch.run(step(2)[0], k_cache.requires_grad_(), v_cache)


def test_an_operation_says_that_it_has_no_gradient_when_it_is_asked_for_one(att, family):
    plan = att.plan(family)
    q, k, v = step(2)
    out = torch.ops.deft.attend(q.requires_grad_(), k, v, None, plan.number, torch.bfloat16)
    with pytest.raises(RuntimeError, match="backward through deft.attend"):
        out.sum().backward()


def test_a_tensor_whose_sign_torch_alone_knows_is_an_error(att, family):
    q, k, v = step(2)
    plan = att.plan(family)
    negative = torch._neg_view(q)
    with pytest.raises(deft.UsageError, match=r"q: a tensor is negated lazily(?s:.*)resolve_neg\(\)"):
        plan.run(negative, k, v)
    assert (plan.run(negative.resolve_neg(), k, v) == plan.run(-q, k, v)).all()


@pytest.mark.parametrize("are_parts", [False, True])
def test_a_latent_cache_is_one_tensor_or_two_parts(family, are_parts):
    att = deft.compile("attention a { query_heads = 4; kv_cache = latent(dim = 64, rope = 16); scale = 0.2; output = bf16 with lse; }")
    plan, q, cache = att.plan(family), values(2, 4, 80), values(8, 16, 80)
    table = torch.arange(8, dtype=torch.int32)
    given = (cache[..., :64], cache[..., 64:]) if are_parts else cache
    right = plan.run(q, given, None, table, return_lse=True)
    ours = compiled(lambda q, given, table: plan.run(q, given, None, table, return_lse=True))(q, given, table)
    assert all(torch.equal(one, other) for one, other in zip(ours, right))
