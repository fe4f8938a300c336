// What solvers of the primal of linear machines call: responses to slacks, slopes along a step, and steps along
// weights.
#include <numeric>
#include <tuple>

#include "row_arrays.hpp"

namespace maxmargin {
namespace {

// What a rounded problem gives, as arrays of Python's.
struct RoundedArrays {
  Vector<const double> linear, lower, upper, ridge, centre;
  Vector<const std::int32_t> group;
  Vector<const double> offset;
  double sigma;
  Vector<double> slack, response;

  Rounded checked() const {
    const std::int64_t n = linear.shape(0), groups = offset.shape(0);
    for (const auto& array : {lower, upper, ridge, centre})
      require(static_cast<std::int64_t>(array.shape(0)) == n, "the arrays must have one length");
    require(static_cast<std::int64_t>(slack.shape(0)) == n && static_cast<std::int64_t>(response.shape(0)) == n &&
                static_cast<std::int64_t>(group.shape(0)) == n,
            "the arrays must have one length");
    for (std::int64_t k = 0; k < n; ++k)
      require(group.data()[k] >= -1 && group.data()[k] < groups, "the groups are malformed");
    return {linear.data(), lower.data(), upper.data(), ridge.data(),   centre.data(), groups ? group.data() : nullptr,
            offset.data(), sigma,        slack.data(), response.data()};
  }
};

using Sums = std::tuple<double, double, double, double>;

// Call work(begin, end, part, sums, sums by group) for every part, and add up the sums of the parts.
template <class Work> Sums sum_responses(int parts, std::int64_t n, Vector<double> group_sums, Work work) {
  const std::int64_t groups = group_sums.shape(0);
  std::vector<SlackSums> sums(parts);
  std::vector<double> by_group(static_cast<std::size_t>(parts) * groups, 0.0);
  in_parts(parts, n, [&](std::int64_t begin, std::int64_t end, int part) {
    work(begin, end, part, sums[part], by_group.data() + part * groups);
  });
  SlackSums all;
  std::fill_n(group_sums.data(), groups, 0.0);
  for (int part = 0; part < parts; ++part) {
    all.loss += sums[part].loss;
    all.linear += sums[part].linear;
    all.ridge += sums[part].ridge;
    all.size += sums[part].size;
    for (std::int64_t g = 0; g < groups; ++g) group_sums.data()[g] += by_group[part * groups + g];
  }
  return {all.loss, all.linear, all.ridge, all.size};
}

// The slacks and responses of samples with known images, and the sums of the responses by group; returns the loss at
// the true slacks, and of the responses β linear·β, Σ ridge β² and Σ |β|.
Sums respond(Vector<const double> linear, Vector<const double> lower, Vector<const double> upper,
             Vector<const double> ridge, Vector<const double> centre, Vector<const std::int32_t> group,
             Vector<const double> offset, double sigma, Vector<double> slack, Vector<double> response,
             Vector<double> group_sums, Vector<const double> image, int threads) {
  const Rounded rounded =
      RoundedArrays{linear, lower, upper, ridge, centre, group, offset, sigma, slack, response}.checked();
  const std::int64_t n = linear.shape(0);
  require(static_cast<std::int64_t>(image.shape(0)) == n && group_sums.shape(0) == offset.shape(0),
          "the arrays must have one length");
  nb::gil_scoped_release unlocked;
  return sum_responses(n < 8 * kChunk ? 1 : std::max(1, threads), n, group_sums,
                       [&](std::int64_t begin, std::int64_t end, int, SlackSums& sums, double* by_group) {
                         level.linear->respond(rounded, image.data(), begin, end, sums, by_group);
                       });
}

// The same at given weights, the last of which belongs to a constant feature: computes the images F w too, and own = Fᵀ
// β.
Sums respond_rows(Any values, Any starts, Any features, Vector<const std::int64_t> picks, bool all,
                  Vector<const double> linear, Vector<const double> lower, Vector<const double> upper,
                  Vector<const double> ridge, Vector<const double> centre, Vector<const std::int32_t> group,
                  Vector<const double> offset, double sigma, Vector<double> slack, Vector<double> response,
                  Vector<double> group_sums, Vector<const double> weights, double constant, Vector<double> image,
                  Vector<double> own, int threads) {
  const Rounded rounded =
      RoundedArrays{linear, lower, upper, ridge, centre, group, offset, sigma, slack, response}.checked();
  const std::int64_t n = linear.shape(0), width = static_cast<std::int64_t>(weights.shape(0)) - 1;
  require(width >= 0 && own.shape(0) == weights.shape(0), "weights must have room for the constant feature");
  require(static_cast<std::int64_t>(image.shape(0)) == n && group_sums.shape(0) == offset.shape(0),
          "the arrays must have one length");
  return with_rows({values, starts, features, width}, [&](auto rows, const auto& loops, std::int64_t count) {
    const Picks some = picks_of(picks, all, count);
    require(some.count == n, "there must be a row for every variable");
    const int parts = n < 2 * kChunk ? 1 : std::max(1, threads);
    std::vector<double> others(static_cast<std::size_t>(parts - 1) * width, 0.0);
    std::fill_n(own.data(), width + 1, 0.0);
    nb::gil_scoped_release unlocked;
    const Sums all_sums = sum_responses(
        parts, n, group_sums, [&](std::int64_t begin, std::int64_t end, int part, SlackSums& sums, double* by_group) {
          loops.respond(rows, some.at, rounded, weights.data(), constant * weights.data()[width], image.data(),
                        part ? others.data() + (part - 1) * width : own.data(), begin, end, sums, by_group);
        });
    for (int part = 1; part < parts; ++part)
      for (std::int64_t k = 0; k < width; ++k) own.data()[k] += others[(part - 1) * width + k];
    double total = 0.0;
    if (constant != 0.0)
      for (std::int64_t k = 0; k < n; ++k) total += response.data()[k];
    own.data()[width] = constant * total;
    return all_sums;
  });
}

// Σ conjugate(slack)
double total_loss(Vector<const double> slack, Vector<const double> lower, Vector<const double> upper,
                  Vector<const double> ridge, int threads) {
  const std::int64_t n = slack.shape(0);
  for (const auto& array : {lower, upper, ridge})
    require(static_cast<std::int64_t>(array.shape(0)) == n, "the arrays must have one length");
  const int parts = n < 8 * kChunk ? 1 : std::max(1, threads);
  std::vector<double> losses(parts);
  nb::gil_scoped_release unlocked;
  const SlackArrays arrays{slack.data(), lower.data(), upper.data(), ridge.data()};
  in_parts(parts, n, [&](std::int64_t begin, std::int64_t end, int part) {
    losses[part] = level.linear->loss(arrays, begin, end);
  });
  return std::accumulate(losses.begin(), losses.end(), 0.0);
}

// Σ response(slack − t direction) direction, and how much it bends there; an empty direction is 1 everywhere.
std::tuple<double, double> loss_slope(Vector<const double> slack, Vector<const double> lower,
                                      Vector<const double> upper, Vector<const double> ridge,
                                      Vector<const double> direction, double t, int threads) {
  const std::int64_t n = slack.shape(0);
  for (const auto& array : {lower, upper, ridge})
    require(static_cast<std::int64_t>(array.shape(0)) == n, "the arrays must have one length");
  require(direction.shape(0) == 0 || static_cast<std::int64_t>(direction.shape(0)) == n,
          "the arrays must have one length");
  const int parts = n < 8 * kChunk ? 1 : std::max(1, threads);
  std::vector<Slope> slopes(parts);
  nb::gil_scoped_release unlocked;
  const SlackArrays arrays{slack.data(), lower.data(), upper.data(), ridge.data()};
  in_parts(parts, n, [&](std::int64_t begin, std::int64_t end, int part) {
    slopes[part] = level.linear->slope(arrays, direction.shape(0) ? direction.data() : nullptr, t, begin, end);
  });
  Slope all;
  for (const Slope& slope : slopes) {
    all.sum += slope.sum;
    all.bend += slope.bend;
  }
  return {all.sum, all.bend};
}

// Steps along the weights order[begin … end) for the penalty Σ |w_j|; the rows are the columns of the data. Returns the
// largest violation that was met.
double descend_columns(Any values, Any starts, Any samples, Vector<double> weights, Vector<double> slack,
                       Vector<const double> inverse, Vector<const double> lower, Vector<const double> upper,
                       Vector<const double> curvature, Vector<const std::int64_t> order, std::int64_t begin,
                       std::int64_t end) {
  const std::int64_t n = slack.shape(0), count = weights.shape(0);
  for (const auto& array : {inverse, lower, upper})
    require(static_cast<std::int64_t>(array.shape(0)) == n, "the arrays of a problem must have one length");
  require(static_cast<std::int64_t>(curvature.shape(0)) == count, "there must be a curvature for every weight");
  require(0 <= begin && begin <= end && end <= static_cast<std::int64_t>(order.shape(0)), "the order is malformed");
  for (std::int64_t k = begin; k < end; ++k)
    require(order.data()[k] >= 0 && order.data()[k] < count, "the order is malformed");
  return with_rows({values, starts, samples, n}, [&](auto columns, const auto& loops, std::int64_t there) {
    require(there == count, "there must be a weight for every column");
    ColumnState state{weights.data(), slack.data(), inverse.data(), lower.data(), upper.data(), curvature.data()};
    nb::gil_scoped_release unlocked;
    return loops.descend_columns(columns, state, order.data(), begin, end);
  });
}

// Passes over the weights of a quadratic model; returns the largest violation of the last.
double descend_model(Table<const double> square, Vector<double> weights, Vector<double> slope, double tolerance,
                     std::int64_t passes) {
  const std::int64_t count = weights.shape(0);
  require(static_cast<std::int64_t>(square.shape(0)) == count && static_cast<std::int64_t>(square.shape(1)) == count &&
              static_cast<std::int64_t>(slope.shape(0)) == count,
          "the model is malformed");
  nb::gil_scoped_release unlocked;
  return level.linear->descend_model(square.data(), count, weights.data(), slope.data(), tolerance, passes);
}

}  // namespace

void define_primal(nb::module_& m) {
  const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
  m.def("respond", &respond, exact("linear"), exact("lower"), exact("upper"), exact("ridge"), exact("centre"),
        exact("group"), exact("offset"), nb::arg("sigma"), exact("slack"), exact("response"), exact("group_sums"),
        exact("image"), nb::arg("threads"));
  m.def("respond_rows", &respond_rows, exact("values"), exact("starts"), exact("features"), exact("picks"),
        nb::arg("all"), exact("linear"), exact("lower"), exact("upper"), exact("ridge"), exact("centre"),
        exact("group"), exact("offset"), nb::arg("sigma"), exact("slack"), exact("response"), exact("group_sums"),
        exact("weights"), nb::arg("constant"), exact("image"), exact("own"), nb::arg("threads"));
  m.def("total_loss", &total_loss, exact("slack"), exact("lower"), exact("upper"), exact("ridge"), nb::arg("threads"));
  m.def("loss_slope", &loss_slope, exact("slack"), exact("lower"), exact("upper"), exact("ridge"), exact("direction"),
        nb::arg("t"), nb::arg("threads"));
  m.def("descend_columns", &descend_columns, exact("values"), exact("starts"), exact("samples"), exact("weights"),
        exact("slack"), exact("inverse"), exact("lower"), exact("upper"), exact("curvature"), exact("order"),
        nb::arg("begin"), nb::arg("end"));
  m.def("descend_model", &descend_model, exact("square"), exact("weights"), exact("slope"), nb::arg("tolerance"),
        nb::arg("passes"));
}

}  // namespace maxmargin
