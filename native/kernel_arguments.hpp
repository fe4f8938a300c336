// Kernel formulas and packed samples as Python passes them.
#pragma once

#include "bindings.hpp"

namespace maxmargin {

// function(Σ_k term(x_k, z_k)), by the numbers of Term and Function.
struct FormulaArguments {
  int term, function;
  double gamma, coef0;
  int degree;

  void check() const {
    require(term >= 0 && term <= 3 && function >= 0 && function <= 4 && degree >= 0, "unknown kernel formula");
  }

  operator Formula() const { return {static_cast<Term>(term), static_cast<Function>(function), gamma, coef0, degree}; }
};

// Dense samples interleaved by `pack`, in float32 or float64.
struct PackedArrays {
  AnyVector values, half_norms;
  std::int64_t count, features;

  void check() const {
    require(
        values.dtype() == half_norms.dtype() && (has_type<float>(values.dtype()) || has_type<double>(values.dtype())),
        "packed samples must be float32 or float64");
    require(count >= 0 && features >= 0, "count and features must not be negative");
  }

  void add_to(Memory& memory) const { memory.reads("values", values).reads("half_norms", half_norms); }

  // The samples, packed in groups of `width`.
  template <class T> PackedSamples<T> in_groups_of(int width) const {
    require(has_type<T>(values.dtype()), "packed samples and the output must have the same precision");
    const std::int64_t padded = (count + width - 1) / width * width;
    require(length(values) >= padded * features && length(half_norms) >= padded, "the packed samples are too short");
    return {as<T>(values), as<T>(half_norms), count};
  }
};

}  // namespace maxmargin
