"""How peers are timed, as `deftc bench` times ours: replays of a CUDA graph, the L2 cache evicted before each."""

import statistics


def graph_time_us(torch, run, repeat):
    """The median time of so many replays of what `run` puts on the current stream."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    # Read, not written: lines that are to be written back would cost the kernel that needs their room.
    evict = torch.zeros(32 << 20, dtype=torch.int64, device="cuda")
    times = []
    for _ in range(repeat):
        evict.max()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(1e3 * begin.elapsed_time(end))
    return statistics.median(times)
