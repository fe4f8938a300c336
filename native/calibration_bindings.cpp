// Binding of the sums of Platt's sigmoid: checks arguments, releases the interpreter lock, calls the loop.
#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings.hpp"
#include "platt_sigmoid.hpp"

namespace maxmargin {
namespace {

// Loss, first derivatives by slope and shift, and second derivatives: slope twice, both, shift twice.
std::tuple<double, double, double, double, double, double> sigmoid_loss(Vector<const double> values,
                                                                        Vector<const double> targets,
                                                                        Vector<const double> weights, double slope,
                                                                        double shift) {
  require_length(length(values), "there must be one entry for every sample", targets, weights);
  nb::gil_scoped_release unlocked;
  const SigmoidSums sums = sigmoid_sums(values.data(), targets.data(), weights.data(), length(values), slope, shift);
  return {sums.loss, sums.slope, sums.shift, sums.slope_slope, sums.slope_shift, sums.shift_shift};
}

}  // namespace

void define_calibration(nb::module_& m) {
  m.def("sigmoid_loss", &sigmoid_loss, exact("values"), exact("targets"), exact("weights"), nb::arg("slope"),
        nb::arg("shift"));
}

}  // namespace maxmargin
