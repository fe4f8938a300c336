"""Solvers of structured outputs: `StructuredProblem` → `StructuredSolution`.

- `block_coordinate_frank_wolfe`: `BlockCoordinateFrankWolfe`, pairwise steps on one sample at a time
- `cutting_planes`: `CuttingPlanes`, the one-slack formulation
- `structured_solution`: what both return
- `sample_planes`: the known constraints of a sample and their dual variables
"""

from maxmargin.solvers.structured.block_coordinate_frank_wolfe import BlockCoordinateFrankWolfe
from maxmargin.solvers.structured.cutting_planes import CuttingPlanes
from maxmargin.solvers.structured.structured_solution import StructuredSolution

__all__ = ["BlockCoordinateFrankWolfe", "CuttingPlanes", "StructuredSolution"]
