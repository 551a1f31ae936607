"""Device memory as a caching allocator manages it: freed blocks are kept, and reused for requests of the same size."""


class Allocator:
    ROUND = 512
    SEGMENT = 2 << 20

    def __init__(self, recorder, resident):
        """`resident` bytes were allocated before the recording: parameters and the optimizer's state."""
        self._recorder = recorder
        self._cached = {}  # size -> free addresses
        self._next = 0x7F2A00000000
        self.allocated = resident
        self.reserved = -(-resident // self.SEGMENT) * self.SEGMENT

    def allocate(self, thread, size):
        size = -(-size // self.ROUND) * self.ROUND
        cached = self._cached.get(size)
        if cached:
            address = cached.pop()
        else:
            address = self._next
            segment = -(-size // self.SEGMENT) * self.SEGMENT
            self._next += segment
            self.reserved += segment
        self.allocated += size
        self._recorder.memory(thread.tid, thread.now, address, size, self.allocated, self.reserved)
        return address, size

    def free(self, thread, block):
        address, size = block
        self._cached.setdefault(size, []).append(address)
        self.allocated -= size
        self._recorder.memory(thread.tid, thread.now, address, -size, self.allocated, self.reserved)
