// Bindings of steps along rows of features: dual coordinate ascent, stochastic subgradient steps.
#include "data_rows.hpp"

namespace maxmargin {
namespace {

// ---- dual coordinate ascent -------------------------------------------------------------------------------------

// The dual variables, the weights w = Σ b_i x_i with that of the constant feature last, and the state of each group.
struct AscentArrays {
  Vector<double> dual, weights;
  Vector<const double> squared_norms;
  Vector<const double> offset;
  Vector<double> excess;         // Σ b − total
  Vector<const double> penalty;  // of the quadratic penalty on the excess

  void check() const {
    require(length(weights) >= 1, "weights must include the constant feature");
    require(length(squared_norms) == length(dual), "there must be one squared norm for every variable");
    require_length(length(offset), "the arrays of the groups must have one length", excess, penalty);
  }

  void add_to(Memory& memory) const {
    memory.writes("dual", dual).writes("weights", weights).writes("excess", excess);
    memory.reads("squared_norms", squared_norms).reads("offset", offset).reads("penalty", penalty);
  }
};

struct AscentOptions {
  double constant;                    // the value of one more feature that all rows have
  double shrink_above, shrink_below;  // gradients beyond which variables at their bounds are left out
  double damping;                     // of the steps of several threads

  void check() const {}
};

// One step along each variable of `order`. Variables that shrinking leaves out are moved behind the others; `remaining`
// of the result counts those before. With several threads each has its own part of the order and its own copy of the
// weights; the changes are added up.
AscentResult coordinate_ascent(const DataRows& features, const BoxProblem& problem, const AscentArrays& arrays,
                               const AscentOptions& options, Vector<std::int64_t> order, int threads) {
  const std::int64_t width = length(arrays.weights) - 1, n = length(arrays.dual), groups = length(arrays.offset);
  require(width == features.width, "the rows have another width");
  problem.require_objective();
  require(problem.size() == n && problem.groups == groups, "problem and state must have one length");
  problem.count_singles();
  check_order(order, n);
  require(features.indices.is_valid() ? features.count() == n : n <= features.count(),
          "there must be a row for every variable");
  Memory().of(features, problem, arrays).writes("order", order).require_disjoint();
  return with_rows(features, [&](auto rows, const auto& loops) {
    AscentState state{arrays.dual.data(),
                      arrays.weights.data(),
                      problem.linear.data(),
                      problem.lower.data(),
                      problem.upper.data(),
                      problem.ridge.data(),
                      arrays.squared_norms.data(),
                      features.at(),
                      groups ? problem.group.data() : nullptr,
                      arrays.offset.data(),
                      arrays.excess.data(),
                      arrays.penalty.data(),
                      width,
                      options.constant,
                      options.shrink_above,
                      options.shrink_below,
                      options.damping};
    const std::int64_t end = length(order);
    double *weights = arrays.weights.data(), *excess = arrays.excess.data();
    if (threads <= 1) {
      nb::gil_scoped_release unlocked;
      return loops.ascend(rows, state, order.data(), 0, end);
    }
    std::vector<std::vector<double>> copies(threads), sums(threads);
    for (int t = 0; t < threads; ++t) {
      copies[t].assign(weights, weights + width + 1);
      sums[t].assign(excess, excess + groups);
    }
    std::vector<AscentResult> outcomes(threads);
    std::vector<std::int64_t> left_out;
    left_out.reserve(end);
    nb::gil_scoped_release unlocked;
    in_parts(threads, end, [&](std::int64_t first, std::int64_t last, int part) {
      AscentState own = state;
      own.weights = copies[part].data();
      own.excess = sums[part].data();
      outcomes[part] = loops.ascend(rows, own, order.data(), first, last);
    });
    for (std::int64_t k = 0; k <= width; ++k) {
      const double before = weights[k];
      double change = 0.0;
      for (const auto& copy : copies) change += copy[k] - before;
      weights[k] = before + change / options.damping;
    }
    for (std::int64_t g = 0; g < groups; ++g) {
      const double before = excess[g];
      for (const auto& sum : sums) excess[g] += (sum[g] - before) / options.damping;
    }
    AscentResult total;
    std::int64_t* at = order.data();
    for (int part = 0; part < threads; ++part) {
      const AscentResult& out = outcomes[part];
      const std::int64_t first = end * part / threads, last = end * (part + 1) / threads;
      left_out.insert(left_out.end(), order.data() + out.remaining, order.data() + last);
      at = std::copy(order.data() + first, order.data() + out.remaining, at);
      total.steps += out.steps;
      total.highest = std::max(total.highest, out.highest);
      total.lowest = std::min(total.lowest, out.lowest);
      total.gap += out.gap;
    }
    total.remaining = at - order.data();
    std::copy(left_out.begin(), left_out.end(), at);
    return total;
  });
}

// ---- stochastic subgradient steps -------------------------------------------------------------------------------

// The weights scale · direction, and the weighted sum of those of the steps before, factor · direction + sums.
struct AveragedWeights {
  Vector<double> direction;  // with the constant feature last
  Vector<double> sums;       // empty: no average
  Vector<double> offset, offset_sums;
  Vector<double> numbers;  // scale, factor, squared norm of the direction, weight of the last step, sum of all weights
  std::int64_t steps;

  void check() const {
    require(length(direction) >= 1 && (length(sums) == 0 || length(sums) == length(direction)) && length(numbers) == 5,
            "the state of the weights is malformed");
    require(length(offset_sums) == length(offset), "the arrays of the groups must have one length");
  }

  void add_to(Memory& memory) const {
    memory.writes("direction", direction).writes("sums", sums).writes("offset", offset);
    memory.writes("offset_sums", offset_sums).writes("numbers", numbers);
  }
};

struct SubgradientOptions {
  double constant;                  // the value of one more feature that all rows have
  double samples;                   // the number of variables that the objective counts
  Vector<const double> share;       // of each group: the sum that it must have, divided by the number of variables
  double numerator, growth, delay;  // the step size is numerator / (growth t + delay)
  double offset_rate;               // of the steps of the offsets, relative to those of the weights
  double radius;                    // of the ball that the weights are projected to; infinite: none
  bool growing;                     // whether step t has weight t in the average, or all have the same

  void check() const {}
};

// One step for every `batch` samples of `order`; returns the number of steps so far. Responses and their weights are
// added to `responses` and `visits`, unless these are empty.
std::int64_t subgradient_steps(const DataRows& features, const BoxProblem& problem, const AveragedWeights& arrays,
                               const SubgradientOptions& options, Vector<const std::int64_t> order, std::int64_t batch,
                               Vector<double> responses, Vector<double> visits) {
  const std::int64_t width = length(arrays.direction) - 1, n = problem.size(), groups = length(arrays.offset);
  require(width == features.width, "the rows have another width");
  problem.require_objective();
  require(problem.groups == groups && length(options.share) == groups, "the arrays of the groups must have one length");
  problem.count_singles();
  require(length(responses) == length(visits) && (length(visits) == 0 || length(visits) == n),
          "responses and visits must have one length");
  require(batch >= 1, "the batch size must be at least 1");
  check_order(order, n);
  require(features.indices.is_valid() ? features.count() == n : n <= features.count(),
          "there must be a row for every variable");
  Memory()
      .of(features, problem, arrays)
      .reads("share", options.share)
      .reads("order", order)
      .writes("responses", responses)
      .writes("visits", visits)
      .require_disjoint();
  return with_rows(features, [&](auto rows, const auto& loops) {
    std::vector<double> buffer(std::min(batch, length(order)));
    double* number = arrays.numbers.data();
    SubgradientState state{arrays.direction.data(),
                           given(arrays.sums) ? arrays.sums.data() : nullptr,
                           arrays.offset.data(),
                           arrays.offset_sums.data(),
                           problem.linear.data(),
                           problem.lower.data(),
                           problem.upper.data(),
                           problem.ridge.data(),
                           features.at(),
                           problem.group.data(),
                           options.share.data(),
                           given(responses) ? responses.data() : nullptr,
                           visits.data(),
                           buffer.data(),
                           width,
                           groups,
                           options.constant,
                           options.samples,
                           options.numerator,
                           options.growth,
                           options.delay,
                           options.offset_rate,
                           options.radius,
                           options.growing,
                           number[0],
                           number[1],
                           number[2],
                           number[3],
                           number[4],
                           arrays.steps};
    nb::gil_scoped_release unlocked;
    loops.subgradient_steps(rows, state, order.data(), length(order), batch);
    number[0] = state.scale;
    number[1] = state.factor;
    number[2] = state.squared_norm;
    number[3] = state.last_weight;
    number[4] = state.weight_sum;
    return state.steps;
  });
}

}  // namespace

void define_linear(nb::module_& m) {
  define_arguments<AscentArrays, Vector<double>, Vector<double>, Vector<const double>, Vector<const double>,
                   Vector<double>, Vector<const double>>(m, "AscentState", exact("dual"), exact("weights"),
                                                         exact("squared_norms"), exact("offset"), exact("excess"),
                                                         exact("penalty"));
  define_arguments<AscentOptions, double, double, double, double>(
      m, "AscentOptions", nb::arg("constant"), nb::arg("shrink_above"), nb::arg("shrink_below"), nb::arg("damping"));
  define_arguments<AveragedWeights, Vector<double>, Vector<double>, Vector<double>, Vector<double>, Vector<double>,
                   std::int64_t>(m, "AveragedWeights", exact("direction"), exact("sums"), exact("offset"),
                                 exact("offset_sums"), exact("numbers"), nb::arg("steps"));
  define_arguments<SubgradientOptions, double, double, Vector<const double>, double, double, double, double, double,
                   bool>(m, "SubgradientOptions", nb::arg("constant"), nb::arg("samples"), exact("share"),
                         nb::arg("numerator"), nb::arg("growth"), nb::arg("delay"), nb::arg("offset_rate"),
                         nb::arg("radius"), nb::arg("growing"));
  nb::class_<AscentResult>(m, "AscentResult")
      .def_ro("steps", &AscentResult::steps)
      .def_ro("remaining", &AscentResult::remaining)
      .def_ro("highest", &AscentResult::highest)
      .def_ro("lowest", &AscentResult::lowest)
      .def_ro("gap", &AscentResult::gap);
  m.def("coordinate_ascent", &coordinate_ascent, nb::arg("rows"), nb::arg("problem"), nb::arg("state"),
        nb::arg("options"), exact("order"), nb::arg("threads"));
  m.def("subgradient_steps", &subgradient_steps, nb::arg("rows"), nb::arg("problem"), nb::arg("weights"),
        nb::arg("options"), exact("order"), nb::arg("batch"), exact("responses"), exact("visits"));
}

}  // namespace maxmargin
