"""Joint steps in NumPy: the readable twin of `cuda/sources/joint_steps.cu`.

Selection is the same; steps are computed in float64, in float32 there.
"""

import numpy as np

from maxmargin.backends.interface import StopReason
from maxmargin.backends.numpy_backend import NumpySubproblem
from maxmargin.cuda.pair_steps import JOINT_FRACTION, MIN_JOINT_SIZE, Shape
from maxmargin.problems.kinks import slopes

#: Slots that offer a variable for each end, and the most pair steps of a joint step.
SLOTS, MAX_STEPS = 32, 128


def are_joint(part):
    """Return whether steps on a subproblem on a device are joint."""
    return part.active >= MIN_JOINT_SIZE and part.groups == 1 and not part.singles and not part.precise


class JointNumpySubproblem(NumpySubproblem):
    """A working set with joint steps, of one group."""

    def pair_steps(self, tolerance, max_steps, max_seconds):
        last, stays = self.totals.iterations + max_steps, np.empty(0, dtype=np.int64)
        while True:
            offered = self.offered(stays)
            members = np.concatenate([stays, offered])
            part = NumpySubproblem(self, members, self.values[np.ix_(members, members)])
            reason = part.pair_steps(tolerance, 0, np.inf)  # the violation of all is that of the members
            self.violation = part.violation
            if reason is not StopReason.PAUSED or self.totals.iterations >= last:
                return reason
            first = self.totals.iterations
            reason = part.pair_steps(max(0.5 * tolerance, JOINT_FRACTION * self.violation), MAX_STEPS, np.inf)
            if self.totals.iterations == first:
                return reason
            self.absorb(part)
            stays = offered

    def offered(self, stays):
        """Return the variables that the slots offer: of theirs the first to grow and the first to fall."""
        growing, falling = slopes(self.dual, self.gradient, self.kink)
        up = np.where(self.dual < self.upper, growing, -np.inf)
        down = np.where(self.dual > self.lower, falling, np.inf)
        up[stays], down[stays] = -np.inf, np.inf
        chosen = []
        for slot in self.slots():
            best, least = slot[np.argmax(up[slot])], slot[np.argmin(down[slot])]
            if up[best] > -np.inf:
                chosen.append(best)
            if down[least] < np.inf and least != best:
                chosen.append(least)
        return np.array(chosen, dtype=np.int64)

    def slots(self):
        """Return the variables of each slot: those of neighbouring warps."""
        shape = Shape.of(self.active, clusters=True)
        k = np.arange(self.active)
        thread = k // (shape.threads * shape.variables) * shape.threads + k % shape.threads
        slot = thread // (shape.blocks * shape.threads // SLOTS)
        return [members for each in range(SLOTS) if len(members := np.flatnonzero(slot == each))]
