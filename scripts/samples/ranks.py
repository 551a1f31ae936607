"""Several ranks of a job, which are simulated together: a collective ends on all of them at once."""

import threading

NCCL_STREAM = 16
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
BYTES_PER_NS = 100  # Of gradients, between two devices that NVLink joins.
START_NS = 12_000  # Of a collective, before its first byte arrives.


class Meeting:
    """Each rank runs on a thread of its own and says here when it enters a collective; all learn who came last. So times do
    not depend on how the threads run."""

    def __init__(self, ranks):
        self.ranks = ranks
        self._barrier = threading.Barrier(ranks)
        self._entered = [0] * ranks

    def last(self, rank, time):
        self._entered[rank] = time
        self._barrier.wait()
        latest = max(self._entered)
        self._barrier.wait()  # Before anyone enters the next one.
        return latest


def collective_args(elements, ranks):
    return {"Collective name": "allreduce", "In msg nelems": elements, "Out msg nelems": elements, "Group size": ranks,
            "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": str(list(range(ranks)))}


def all_reduce(thread, size, meeting, rank):
    """Adds gradients up over all ranks, on a stream of its own behind the work so far. Returns the event of its end."""
    args = collective_args(size // 4, meeting.ranks)
    with thread.op("c10d::allreduce_", before=4), thread.op("record_param_comms", **args):
        computed, before = thread.record_event(), thread.stream
        thread.stream = NCCL_STREAM
        thread.stream_waits_for(computed)
        thread.launch_until(ALL_REDUCE, lambda start: meeting.last(rank, start) + START_NS + size // BYTES_PER_NS, args)
        done = thread.record_event()
        thread.stream = before
    return done
