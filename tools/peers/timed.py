"""The time of one kernel on a case, or why there is none."""

import contextlib
import io
from time import monotonic

from case import allowed_error, largest_error
from graph_time import graph_time_us


def time_of(torch, case, prepare, repeat, has_byte_products=False):
    """Microseconds and the largest error, or why there are none."""
    try:
        began = monotonic()
        with contextlib.redirect_stdout(io.StringIO()):  # of what peers say while they prepare
            run = prepare(case)
        first = run()
        torch.cuda.synchronize()
        first_s = round(monotonic() - began, 3)
        error, allowed = largest_error(case, first), allowed_error(case, has_byte_products)
        if not error <= allowed:  # a NaN, too
            return {"why": f"wrong: an error of {error:.2g} of a row's length, {allowed:.2g} is allowed", "error": error}
        return {"us": round(graph_time_us(torch, run, repeat), 2), "error": error, "first_s": first_s}
    except NotImplementedError as error:
        return {"why": str(error)}
    except Exception as error:  # whatever a peer throws is its answer
        torch.cuda.synchronize()
        return {"why": f"{type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}"}
