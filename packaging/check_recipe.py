"""Render the recipe for conda as conda-forge would, which checks its schema and fills in compilers and Pythons.

    pip install py-rattler-build && python packaging/check_recipe.py

The package is not built; that needs the channel conda-forge.
"""

from pathlib import Path

from rattler_build import Stage0Recipe, VariantConfig

RECIPE = Path(__file__).resolve().parents[1] / "recipe" / "recipe.yaml"

#: What conda-forge pins for Linux.
VARIANTS = {
    "c_stdlib": ["sysroot"],
    "c_stdlib_version": ["2.28"],
    "cxx_compiler": ["gxx"],
    "python": ["3.11.*", "3.12.*", "3.13.*", "3.14.*"],
}


def main() -> None:
    """Print what each rendered package needs to be built."""
    for rendered in Stage0Recipe.from_file(RECIPE).render(VariantConfig(VARIANTS)):
        recipe = rendered.recipe.to_dict()
        name = f"{recipe['package']['name']} {recipe['package']['version']} {recipe['build']['string']}"
        print(f"{name}: build needs {', '.join(recipe['requirements']['build'])}")


if __name__ == "__main__":
    main()
