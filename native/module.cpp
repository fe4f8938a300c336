// The extension module: the choice of the instruction set, and the definitions of all bindings.
#include <cstdlib>
#include <string>

#include "bindings.hpp"

using namespace maxmargin;

// The widest usable instruction set. The environment variable MAXMARGIN_LEVEL asks for a narrower one, for tests and
// for comparisons of speed.
static Level choose_level() {
  const std::vector<Level> usable = usable_levels();
  const char* requested = std::getenv("MAXMARGIN_LEVEL");
  for (const Level& level : usable)
    if (requested && std::string(requested) == level.name) return level;
  return usable.back();
}

const Level maxmargin::level = choose_level();

void maxmargin::define_arguments(nb::module_& m) {
  define_arguments<BoxProblem, Vector<const double>, Vector<const double>, Vector<const std::int32_t>, std::int32_t,
                   Vector<const double>, Vector<const double>, Vector<const double>>(
      m, "BoxProblem", exact("lower"), exact("upper"), exact("group"), nb::arg("groups"), optional("linear"),
      optional("ridge"), optional("kink"));
  define_arguments<CachedRows, AnyTable, Vector<const std::int64_t>, Vector<std::int64_t>, std::int64_t,
                   Vector<const std::int64_t>>(m, "CachedRows", exact("storage"), exact("slot"), exact("last_use"),
                                               nb::arg("clock"), optional("valid"));
  define_arguments<StepLimits, double, std::int64_t, double, int>(
      m, "StepLimits", nb::arg("tolerance"), nb::arg("max_steps"), nb::arg("max_seconds"), nb::arg("threads") = 1);
}

NB_MODULE(_extension, m) {
  m.doc() = "Compiled loops of maxmargin: arrays in, arrays and counters out.";
  m.attr("level") = level.name;                             // the instruction set in use
  m.attr("strip") = level.kernels->in_single.strip;         // rows that are packed side by side
  m.attr("single_panel") = level.kernels->in_single.panel;  // columns that are packed side by side
  m.attr("double_panel") = level.kernels->in_double.panel;
  m.attr("max_product_exponent") = kMaxProductExponent;  // of samples near the centre, in the Gaussian of a product
  m.attr("sparse_panel") = level.kernels->in_single.sparse_panel;  // weights are padded to a multiple of it
  define_arguments(m);
  define_kernels(m);
  define_rows(m);
  define_solvers(m);
  define_small_problems(m);
  define_row_products(m);
  define_linear(m);
  define_primal(m);
  define_passes(m);
  define_small_linear(m);
  define_extended(m);
  define_online(m);
  define_ranking(m);
  define_calibration(m);
  define_folds(m);
  define_removals(m);
  define_text(m);
  define_files(m);
  // For tests: an exception of a worker thread must reach the caller.
  m.def("_raise_in_thread", [](int threads) {
    nb::gil_scoped_release unlocked;
    in_parallel(threads, 4 * threads, 1, [&](std::int64_t k, std::int64_t, int) {
      if (k == 2 * threads) throw std::runtime_error("raised in a worker thread");
    });
  });
}
