"""Random times that are the same on every machine: whole numbers, made from uniform draws only."""

import random


class Chance:
    def __init__(self, seed):
        self._random = random.Random(seed)

    def uniform(self):
        return self._random.random()

    def around(self, nanoseconds, spread):
        """Bell-shaped around `nanoseconds`, at most `spread` (a fraction) away."""
        offset = (self.uniform() + self.uniform() + self.uniform()) / 1.5 - 1
        return round(nanoseconds * (1 + spread * offset))

    def host(self, nanoseconds):
        """Time on a CPU: wide, with a tail from caches, page faults and the scheduler."""
        time = self.around(nanoseconds, 0.25)
        draw = self.uniform()
        if draw < 0.002:
            time *= 4
        elif draw < 0.02:
            time += time // 2
        return max(time, 100)

    def device(self, nanoseconds):
        """Time on a GPU: nearly the same every time."""
        return max(self.around(nanoseconds, 0.015), 700)
