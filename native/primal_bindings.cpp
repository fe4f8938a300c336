// Bindings of primal methods for linear models: responses to slacks, derivatives of the loss, steps along weights.
#include <atomic>
#include <numeric>
#include <tuple>

#include "data_rows.hpp"

namespace maxmargin {
namespace {

constexpr std::int64_t kSamplesForThreads = 8 * kRowsPerChunk;  // fewer samples are not worth a thread

int parts_for(std::int64_t samples, std::int64_t least, int threads) {
  return samples < least ? 1 : std::max(1, threads);
}

// The primal smoothed with σ around the dual vector `centre`, at given offsets; slack, response and group_sums are
// computed.
struct SmoothedArrays {
  Vector<const double> centre, offset;
  double sigma;
  Vector<double> slack, response, group_sums;

  void check() const {
    require_length(length(centre), "the arrays of a smoothed primal must have one length", slack, response);
    require(length(group_sums) == length(offset), "there must be one sum for every offset");
  }

  void add_to(Memory& memory) const {
    memory.reads("centre", centre).reads("offset", offset);
    memory.writes("slack", slack).writes("response", response).writes("group_sums", group_sums);
  }

  SmoothedProblem of(const BoxProblem& problem) const {
    problem.require_objective();
    require(problem.size() == length(centre) && problem.groups == length(offset),
            "problem and smoothed primal must have one length");
    problem.count_singles();
    return {problem.linear.data(), problem.lower.data(),
            problem.upper.data(),  problem.ridge.data(),
            centre.data(),         problem.groups ? problem.group.data() : nullptr,
            offset.data(),         sigma,
            slack.data(),          response.data()};
  }
};

// Call work(begin, end, part, sums, sums by group) for every part, and add up the sums of the parts.
template <class Work> ResponseSums sum_parts(int parts, std::int64_t n, const Vector<double>& group_sums, Work work) {
  const std::int64_t groups = length(group_sums);
  std::vector<ResponseSums> sums(parts);
  std::vector<double> by_group(static_cast<std::size_t>(parts) * groups, 0.0);
  in_parts(parts, n, [&](std::int64_t begin, std::int64_t end, int part) {
    work(begin, end, part, sums[part], by_group.data() + part * groups);
  });
  ResponseSums all;
  std::fill_n(group_sums.data(), groups, 0.0);
  for (int part = 0; part < parts; ++part) {
    all.loss += sums[part].loss;
    all.linear += sums[part].linear;
    all.ridge += sums[part].ridge;
    all.absolute_sum += sums[part].absolute_sum;
    for (std::int64_t g = 0; g < groups; ++g) group_sums.data()[g] += by_group[part * groups + g];
  }
  return all;
}

// The slacks and responses of samples with known decision values F w, and the sums of the responses by group. Returns
// the loss at the unsmoothed slacks, and of the responses β linear·β, Σ ridge β² and Σ |β|.
ResponseSums responses(const BoxProblem& problem, const SmoothedArrays& smoothed, Vector<const double> decisions,
                       int threads) {
  const SmoothedProblem smoothed_problem = smoothed.of(problem);
  const std::int64_t n = problem.size();
  require(length(decisions) == n, "there must be one decision value for every variable");
  Memory().of(problem, smoothed).reads("decisions", decisions).require_disjoint();
  nb::gil_scoped_release unlocked;
  return sum_parts(parts_for(n, kSamplesForThreads, threads), n, smoothed.group_sums,
                   [&](std::int64_t begin, std::int64_t end, int, ResponseSums& sums, double* by_group) {
                     level.linear->respond(smoothed_problem, decisions.data(), begin, end, sums, by_group);
                   });
}

// The same at weights w, the last of which belongs to a feature that is `constant` in all rows. Computes the decision
// values F w, too, and the weights Fᵀβ of the responses.
ResponseSums responses_of_rows(const DataRows& features, const BoxProblem& problem, const SmoothedArrays& smoothed,
                               Vector<const double> weights, double constant, Vector<double> decisions,
                               Vector<double> dual_weights, int threads) {
  const SmoothedProblem smoothed_problem = smoothed.of(problem);
  const std::int64_t n = problem.size(), width = length(weights) - 1;
  require(width >= 0 && length(dual_weights) == length(weights), "weights must include the constant feature");
  require(width == features.width, "the rows have another width");
  require(length(decisions) == n, "there must be one decision value for every variable");
  require(features.count() == n, "there must be a row for every variable");
  Memory()
      .of(features, problem, smoothed)
      .reads("weights", weights)
      .writes("decisions", decisions)
      .writes("dual_weights", dual_weights)
      .require_disjoint();
  return with_rows(features, [&](auto rows, const auto& loops) {
    const int parts = parts_for(n, 2 * kRowsPerChunk, threads);
    double* own = dual_weights.data();
    std::vector<double> others(static_cast<std::size_t>(parts - 1) * width, 0.0);
    std::fill_n(own, width + 1, 0.0);
    nb::gil_scoped_release unlocked;
    const ResponseSums all = sum_parts(
        parts, n, smoothed.group_sums,
        [&](std::int64_t begin, std::int64_t end, int part, ResponseSums& sums, double* by_group) {
          loops.respond(rows, features.at(), smoothed_problem, weights.data(), constant * weights.data()[width],
                        decisions.data(), part ? others.data() + (part - 1) * width : own, begin, end, sums, by_group);
        });
    for (int part = 1; part < parts; ++part)
      for (std::int64_t k = 0; k < width; ++k) own[k] += others[(part - 1) * width + k];
    double total = 0.0;
    if (constant != 0.0)
      for (std::int64_t k = 0; k < n; ++k) total += smoothed.response.data()[k];
    own[width] = constant * total;
    return all;
  });
}

// Σ conjugate(slack)
double total_loss(Vector<const double> slack, Vector<const double> lower, Vector<const double> upper,
                  Vector<const double> ridge, int threads) {
  const std::int64_t n = length(slack);
  require_length(n, "the arrays must have one length", lower, upper, ridge);
  const int parts = parts_for(n, kSamplesForThreads, threads);
  std::vector<double> losses(parts);
  nb::gil_scoped_release unlocked;
  const SlackArrays arrays{slack.data(), lower.data(), upper.data(), ridge.data()};
  in_parts(parts, n, [&](std::int64_t begin, std::int64_t end, int part) {
    losses[part] = level.linear->loss(arrays, begin, end);
  });
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

// Σ response(slack − t direction) direction and its curvature: the derivatives of the loss along the direction, with
// the opposite signs. An empty direction is 1 everywhere; sigma is added to all ridges.
std::tuple<double, double> loss_derivatives(Vector<const double> slack, Vector<const double> lower,
                                            Vector<const double> upper, Vector<const double> ridge,
                                            Vector<const double> direction, double t, int threads, double sigma) {
  const std::int64_t n = length(slack);
  require_length(n, "the arrays must have one length", lower, upper, ridge);
  require(!given(direction) || length(direction) == n, "the arrays must have one length");
  const int parts = parts_for(n, kSamplesForThreads, threads);
  std::vector<Derivatives> parts_of_sum(parts);
  nb::gil_scoped_release unlocked;
  const SlackArrays arrays{slack.data(), lower.data(), upper.data(), ridge.data(), sigma};
  in_parts(parts, n, [&](std::int64_t begin, std::int64_t end, int part) {
    parts_of_sum[part] =
        level.linear->derivatives(arrays, given(direction) ? direction.data() : nullptr, t, begin, end);
  });
  Derivatives all;
  for (const Derivatives& part : parts_of_sum) {
    all.slope += part.slope;
    all.curvature += part.curvature;
  }
  return {all.slope, all.curvature};
}

// ---- passes over numbers of each sample -------------------------------------------------------------------------

// change = after − before and decrease = change + shift
void slack_changes(Vector<const double> after, Vector<const double> before, double shift, Vector<double> change,
                   Vector<double> decrease, int threads) {
  const std::int64_t n = length(after);
  require_length(n, "the arrays must have one length", before, change, decrease);
  Memory()
      .reads("after", after)
      .reads("before", before)
      .writes("change", change)
      .writes("decrease", decrease)
      .require_disjoint();
  nb::gil_scoped_release unlocked;
  in_parallel(threads, n, kSamplesForThreads, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t k = begin; k < end; ++k) {
      const double difference = after.data()[k] - before.data()[k];
      change.data()[k] = difference;
      decrease.data()[k] = difference + shift;
    }
  });
}

// out = whether a value is off both bounds; returns how many are.
std::int64_t strictly_between(Vector<const double> values, Vector<const double> lower, Vector<const double> upper,
                              Vector<bool> out, int threads) {
  const std::int64_t n = length(values);
  require_length(n, "the arrays must have one length", lower, upper, out);
  Memory().reads("values", values).reads("lower", lower).reads("upper", upper).writes("out", out).require_disjoint();
  std::atomic<std::int64_t> count{0};
  nb::gil_scoped_release unlocked;
  in_parallel(threads, n, kSamplesForThreads, [&](std::int64_t begin, std::int64_t end, int) {
    std::int64_t found = 0;
    for (std::int64_t k = begin; k < end; ++k) {
      const double value = values.data()[k];
      const int between = int{value > lower.data()[k]} & int{value < upper.data()[k]};  // no branch
      out.data()[k] = between != 0;
      found += between;
    }
    count += found;
  });
  return count;
}

// Σ (left − right)², summed in parts that do not depend on the number of threads.
double squared_distance(Vector<const double> left, Vector<const double> right, int threads) {
  constexpr int lanes = 8;
  const std::int64_t n = length(left);
  require_length(n, "the arrays must have one length", right);
  std::vector<double> parts((n + kSamplesForThreads - 1) / kSamplesForThreads);
  nb::gil_scoped_release unlocked;
  in_parallel(threads, n, kSamplesForThreads, [&](std::int64_t begin, std::int64_t end, int) {
    double sums[lanes] = {};
    const auto add = [&](int lane, std::int64_t k) {
      const double difference = left.data()[k] - right.data()[k];
      sums[lane] += difference * difference;
    };
    std::int64_t k = begin;
    for (; k + lanes <= end; k += lanes)
      for (int lane = 0; lane < lanes; ++lane) add(lane, k + lane);
    for (; k < end; ++k) add(0, k);
    parts[begin / kSamplesForThreads] = std::accumulate(sums, sums + lanes, 0.0);
  });
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

// Two sums over n variables, of what work(k) returns, in parts that do not depend on the number of threads.
template <class Work> std::pair<double, double> sum_pairs(std::int64_t n, int threads, Work work) {
  std::vector<std::pair<double, double>> parts((n + kSamplesForThreads - 1) / kSamplesForThreads);
  in_parallel(threads, n, kSamplesForThreads, [&](std::int64_t begin, std::int64_t end, int) {
    std::pair<double, double> sums;
    for (std::int64_t k = begin; k < end; ++k) {
      const std::pair<double, double> one = work(k);
      sums.first += one.first;
      sums.second += one.second;
    }
    parts[begin / kSamplesForThreads] = sums;
  });
  std::pair<double, double> all;
  for (const auto& part : parts) {
    all.first += part.first;
    all.second += part.second;
  }
  return all;
}

// Clip variables to their bounds and correct their sum, unless the difference is within `rounding` times the sum of
// magnitudes: free variables change in proportion to their distances to the bounds ahead, or, if some of these are
// infinite, those by equal amounts. Returns the sums of the variables and of their magnitudes.
std::pair<double, double> repair_sum(Vector<double> dual, Vector<const double> lower, Vector<const double> upper,
                                     double total, double rounding, int threads) {
  const std::int64_t n = length(dual);
  require_length(n, "the arrays must have one length", lower, upper);
  Memory().reads("lower", lower).reads("upper", upper).writes("dual", dual).require_disjoint();
  nb::gil_scoped_release unlocked;
  double* b = dual.data();
  const double *least = lower.data(), *most = upper.data();
  const auto sums = sum_pairs(n, threads, [&](std::int64_t k) {
    b[k] = b[k] < least[k] ? least[k] : b[k] > most[k] ? most[k] : b[k];
    return std::pair(b[k], std::fabs(b[k]));
  });
  const double deficit = total - sums.first;
  if (!(std::fabs(deficit) > rounding * (sums.second + std::fabs(total)))) return sums;
  const auto distance = [&](std::int64_t k) {
    if (!(b[k] > least[k] && b[k] < most[k])) return 0.0;
    return deficit > 0.0 ? most[k] - b[k] : b[k] - least[k];
  };
  const auto found = sum_pairs(n, threads, [&](std::int64_t k) {
    const double ahead = distance(k);
    return std::isinf(ahead) ? std::pair(0.0, 1.0) : std::pair(ahead, 0.0);
  });
  const bool unlimited = found.second > 0.0;
  if (!unlimited && !(found.first > 2.0 * std::fabs(deficit))) return sums;
  const double share = deficit / (unlimited ? found.second : found.first);
  return sum_pairs(n, threads, [&](std::int64_t k) {
    const double ahead = distance(k);
    b[k] += share * (unlimited ? std::isinf(ahead) : ahead);
    return std::pair(b[k], std::fabs(b[k]));
  });
}

// ---- steps along weights for the penalty Σ |w_j| ----------------------------------------------------------------

struct ColumnArrays {
  Vector<double> weights, slack;
  Vector<const double> inverse_ridge, lower, upper;  // of each sample
  Vector<const double> curvature;                    // of each weight: the largest that the loss has along it

  void check() const {
    require_length(length(slack), "the arrays of the samples must have one length", inverse_ridge, lower, upper);
    require(length(curvature) == length(weights), "there must be a curvature for every weight");
  }

  void add_to(Memory& memory) const {
    memory.writes("weights", weights).writes("slack", slack).reads("inverse_ridge", inverse_ridge);
    memory.reads("lower", lower).reads("upper", upper).reads("curvature", curvature);
  }
};

// One step along each weight of `order`; the rows are the columns of the data. Returns the largest violation met.
double coordinate_descent(const DataRows& columns, const ColumnArrays& arrays, Vector<const std::int64_t> order) {
  require(columns.width == length(arrays.slack), "the columns have another length");
  require(!columns.indices.is_valid() && columns.count() == length(arrays.weights),
          "there must be a weight for every column");
  check_order(order, length(arrays.weights));
  Memory().of(columns, arrays).reads("order", order).require_disjoint();
  return with_rows(columns, [&](auto rows, const auto& loops) {
    ColumnState state{arrays.weights.data(), arrays.slack.data(), arrays.inverse_ridge.data(),
                      arrays.lower.data(),   arrays.upper.data(), arrays.curvature.data()};
    nb::gil_scoped_release unlocked;
    return loops.descend_columns(rows, state, order.data(), length(order));
  });
}

// Passes over the weights of a quadratic model of the loss; returns the largest violation of the last pass.
double descend_quadratic_model(Table<const double> square, Vector<double> weights, Vector<double> slope,
                               double tolerance, std::int64_t max_passes) {
  const std::int64_t count = length(weights);
  require(length(square) == count && length(square, 1) == count && length(slope) == count, "the model is malformed");
  Memory().reads("square", square).writes("weights", weights).writes("slope", slope).require_disjoint();
  nb::gil_scoped_release unlocked;
  return level.linear->descend_model(square.data(), count, weights.data(), slope.data(), tolerance, max_passes);
}

}  // namespace

void define_primal(nb::module_& m) {
  define_arguments<SmoothedArrays, Vector<const double>, Vector<const double>, double, Vector<double>, Vector<double>,
                   Vector<double>>(m, "SmoothedArrays", exact("centre"), exact("offset"), nb::arg("sigma"),
                                   exact("slack"), exact("response"), exact("group_sums"));
  define_arguments<ColumnArrays, Vector<double>, Vector<double>, Vector<const double>, Vector<const double>,
                   Vector<const double>, Vector<const double>>(m, "ColumnState", exact("weights"), exact("slack"),
                                                               exact("inverse_ridge"), exact("lower"), exact("upper"),
                                                               exact("curvature"));
  nb::class_<ResponseSums>(m, "ResponseSums")
      .def_ro("loss", &ResponseSums::loss)
      .def_ro("linear", &ResponseSums::linear)
      .def_ro("ridge", &ResponseSums::ridge)
      .def_ro("absolute_sum", &ResponseSums::absolute_sum);
  m.def("responses", &responses, nb::arg("problem"), nb::arg("smoothed"), exact("decisions"), nb::arg("threads"));
  m.def("responses_of_rows", &responses_of_rows, nb::arg("rows"), nb::arg("problem"), nb::arg("smoothed"),
        exact("weights"), nb::arg("constant"), exact("decisions"), exact("dual_weights"), nb::arg("threads"));
  m.def("total_loss", &total_loss, exact("slack"), exact("lower"), exact("upper"), exact("ridge"), nb::arg("threads"));
  m.def("loss_derivatives", &loss_derivatives, exact("slack"), exact("lower"), exact("upper"), exact("ridge"),
        exact("direction"), nb::arg("t"), nb::arg("threads"), nb::arg("sigma") = 0.0);
  m.def("slack_changes", &slack_changes, exact("after"), exact("before"), nb::arg("shift"), exact("change"),
        exact("decrease"), nb::arg("threads"));
  m.def("strictly_between", &strictly_between, exact("values"), exact("lower"), exact("upper"), exact("out"),
        nb::arg("threads"));
  m.def("squared_distance", &squared_distance, exact("left"), exact("right"), nb::arg("threads"));
  m.def("repair_sum", &repair_sum, exact("dual"), exact("lower"), exact("upper"), nb::arg("total"), nb::arg("rounding"),
        nb::arg("threads"));
  m.def("coordinate_descent", &coordinate_descent, nb::arg("columns"), nb::arg("state"), exact("order"));
  m.def("descend_quadratic_model", &descend_quadratic_model, exact("square"), exact("weights"), exact("slope"),
        nb::arg("tolerance"), nb::arg("max_passes"));
}

}  // namespace maxmargin
