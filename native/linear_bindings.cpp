// What solvers of linear machines call that go along rows: products, sums, steps along dual variables and along
// samples.
#include <tuple>

#include "row_arrays.hpp"

namespace maxmargin {
namespace {

void row_decisions(Any values, Any starts, Any features, Vector<const std::int64_t> picks, bool all,
                   Vector<const double> weights, Vector<double> out, int threads) {
  const std::int64_t width = weights.shape(0);
  with_rows({values, starts, features, width}, [&](auto rows, const auto& loops, std::int64_t count) {
    const Picks some = picks_of(picks, all, count);
    require(static_cast<std::int64_t>(out.shape(0)) == some.count, "the output has the wrong length");
    nb::gil_scoped_release unlocked;
    in_parallel(threads, some.count, kChunk, [&](std::int64_t begin, std::int64_t end, int) {
      loops.decisions(rows, some.at, begin, end, weights.data(), out.data());
    });
  });
}

void combine_rows(Any values, Any starts, Any features, Vector<const std::int64_t> picks, bool all,
                  Vector<const double> dual, Vector<double> out, int threads) {
  const std::int64_t width = out.shape(0);
  with_rows({values, starts, features, width}, [&](auto rows, const auto& loops, std::int64_t count) {
    const Picks some = picks_of(picks, all, count);
    require(static_cast<std::int64_t>(dual.shape(0)) == some.count, "there must be one factor for every row");
    const int parts = some.count < 2 * kChunk ? 1 : std::max(1, threads);
    std::vector<double> others(static_cast<std::size_t>(parts - 1) * width, 0.0);
    std::fill_n(out.data(), width, 0.0);
    nb::gil_scoped_release unlocked;
    in_parts(parts, some.count, [&](std::int64_t begin, std::int64_t end, int part) {
      loops.combine(rows, some.at, begin, end, dual.data(), part ? others.data() + (part - 1) * width : out.data());
    });
    for (int part = 1; part < parts; ++part)
      for (std::int64_t k = 0; k < width; ++k) out.data()[k] += others[(part - 1) * width + k];
  });
}

void row_squared_norms(Any values, Any starts, Any features, std::int64_t width, Vector<const std::int64_t> picks,
                       bool all, Vector<double> out, int threads) {
  with_rows({values, starts, features, width}, [&](auto rows, const auto& loops, std::int64_t count) {
    const Picks some = picks_of(picks, all, count);
    require(static_cast<std::int64_t>(out.shape(0)) == some.count, "the output has the wrong length");
    nb::gil_scoped_release unlocked;
    in_parallel(threads, some.count, kChunk, [&](std::int64_t begin, std::int64_t end, int) {
      loops.squared_norms(rows, some.at, begin, end, out.data());
    });
  });
}

// square = Σ_k factors[k] (row k − origin)(row k − origin)ᵀ, the lower triangle only, and sums = Σ_k factors[k] (row k
// − origin). Compressed rows are counted from zero.
void sum_squares(Any values, Any starts, Any features, Vector<const std::int64_t> picks, bool all,
                 Vector<const double> factors, Vector<const double> origin, Vector<double> sums, Table<double> square,
                 int threads) {
  const std::int64_t width = square.shape(0), area = width * width;
  require(static_cast<std::int64_t>(square.shape(1)) == width && static_cast<std::int64_t>(sums.shape(0)) == width,
          "the output must be square, with as many sums");
  const bool shifted = origin.shape(0) > 0, dense = values.ndim() == 2;
  require(!shifted || (dense && static_cast<std::int64_t>(origin.shape(0)) == width),
          "the origin has the wrong length");
  for (std::size_t k = 0; k < factors.shape(0); ++k) require(factors.data()[k] >= 0.0, "factors must not be negative");
  with_rows({values, starts, features, width}, [&](auto rows, const auto& loops, std::int64_t count) {
    const Picks some = picks_of(picks, all, count);
    require(static_cast<std::int64_t>(factors.shape(0)) == some.count, "there must be one factor for every row");
    const int parts = some.count < 2 * kChunk ? 1 : std::max(1, threads);
    std::vector<double> others(static_cast<std::size_t>(parts - 1) * (area + width), 0.0);
    const std::size_t room_size = dense ? kSquareRows * (width + kSquarePadding) : 0;
    std::vector<double> room(parts * room_size);
    std::fill_n(square.data(), area, 0.0);
    std::fill_n(sums.data(), width, 0.0);
    nb::gil_scoped_release unlocked;
    in_parts(parts, some.count, [&](std::int64_t begin, std::int64_t end, int part) {
      double* own = part ? others.data() + (part - 1) * (area + width) : nullptr;
      loops.add_squares(rows, some.at, begin, end, factors.data(), shifted ? origin.data() : nullptr,
                        room.data() + part * room_size, part ? own + area : sums.data(), part ? own : square.data(),
                        width);
    });
    for (int part = 1; part < parts; ++part) {
      const double* own = others.data() + (part - 1) * (area + width);
      for (std::int64_t k = 0; k < area; ++k) square.data()[k] += own[k];
      for (std::int64_t k = 0; k < width; ++k) sums.data()[k] += own[area + k];
    }
  });
}

// Put an array into random order (Fisher and Yates), which depends on the seed alone; random numbers are Steele, Lea
// and Flood's.
void shuffle(Vector<std::int64_t> order, std::uint64_t seed) {
  nb::gil_scoped_release unlocked;
  std::int64_t* at = order.data();
  for (std::uint64_t k = order.shape(0); k > 1; --k) {
    std::uint64_t x = seed += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    std::swap(at[k - 1], at[static_cast<std::uint64_t>((static_cast<unsigned __int128>(x) * k) >> 64)]);
  }
}

// Coordinate steps along order[begin … end). With several threads each has its own part of the order and its own copy
// of the weights; the changes are added up. Returns steps, how many of the order are left, highest and lowest projected
// gradient, and the sum of the samples' gaps.
std::tuple<std::int64_t, std::int64_t, double, double, double> ascend(
    Any values, Any starts, Any features, Vector<const std::int64_t> of, bool all, Vector<double> dual,
    Vector<double> weights, Vector<const double> linear, Vector<const double> lower, Vector<const double> upper,
    Vector<const double> ridge, Vector<const double> squared_norm, Vector<const std::int32_t> group,
    Vector<double> offset, Vector<double> excess, Vector<const double> stiffness, double constant,
    Vector<std::int64_t> order, std::int64_t begin, std::int64_t end, double leave_above, double leave_below,
    double damping, int threads) {
  const std::int64_t width = static_cast<std::int64_t>(weights.shape(0)) - 1, n = dual.shape(0),
                     groups = offset.shape(0);
  require(width >= 0, "weights must have room for the constant feature");
  for (const auto& array : {linear, lower, upper, ridge, squared_norm})
    require(static_cast<std::int64_t>(array.shape(0)) == n, "the arrays of a dual state must have one length");
  require(static_cast<std::int64_t>(group.shape(0)) == n && static_cast<std::int64_t>(excess.shape(0)) == groups &&
              static_cast<std::int64_t>(stiffness.shape(0)) == groups,
          "the groups are malformed");
  for (std::int64_t k = 0; k < n; ++k)
    require(group.data()[k] >= -1 && group.data()[k] < groups, "the groups are malformed");
  require(0 <= begin && begin <= end && end <= static_cast<std::int64_t>(order.shape(0)), "the order is malformed");
  for (std::int64_t k = begin; k < end; ++k)
    require(order.data()[k] >= 0 && order.data()[k] < n, "the order is malformed");
  return with_rows({values, starts, features, width}, [&](auto rows, const auto& loops, std::int64_t count) {
    require(all ? n <= count : static_cast<std::int64_t>(of.shape(0)) == n, "there must be a row for every variable");
    if (!all) require_within(of, count);
    AscentState state{dual.data(),
                      weights.data(),
                      linear.data(),
                      lower.data(),
                      upper.data(),
                      ridge.data(),
                      squared_norm.data(),
                      all ? nullptr : of.data(),
                      groups ? group.data() : nullptr,
                      offset.data(),
                      excess.data(),
                      stiffness.data(),
                      width,
                      constant,
                      leave_above,
                      leave_below,
                      damping};
    if (threads <= 1) {
      nb::gil_scoped_release unlocked;
      const AscentOutcome out = loops.ascend(rows, state, order.data(), begin, end);
      return std::make_tuple(out.steps, out.left, out.highest, out.lowest, out.gap);
    }
    std::vector<std::vector<double>> copies(threads), sums(threads);
    for (int t = 0; t < threads; ++t) {
      copies[t].assign(weights.data(), weights.data() + width + 1);
      sums[t].assign(excess.data(), excess.data() + groups);
    }
    std::vector<AscentOutcome> outcomes(threads);
    nb::gil_scoped_release unlocked;
    in_parts(threads, end - begin, [&](std::int64_t first, std::int64_t last, int part) {
      AscentState own = state;
      own.weights = copies[part].data();
      own.excess = sums[part].data();
      outcomes[part] = loops.ascend(rows, own, order.data(), begin + first, begin + last);
    });
    for (std::int64_t k = 0; k <= width; ++k) {
      const double before = weights.data()[k];
      double change = 0.0;
      for (const auto& copy : copies) change += copy[k] - before;
      weights.data()[k] = before + change / damping;
    }
    for (std::int64_t g = 0; g < groups; ++g) {
      const double before = excess.data()[g];
      for (const auto& sum : sums) excess.data()[g] += (sum[g] - before) / damping;
    }
    // What left is put behind what is left, part by part.
    AscentOutcome total;
    std::vector<std::int64_t> gone;
    std::int64_t* at = order.data() + begin;
    for (int part = 0; part < threads; ++part) {
      const AscentOutcome& out = outcomes[part];
      const std::int64_t first = begin + (end - begin) * part / threads,
                         last = begin + (end - begin) * (part + 1) / threads;
      for (std::int64_t k = out.left; k < last; ++k) gone.push_back(order.data()[k]);
      for (std::int64_t k = first; k < out.left; ++k) *at++ = order.data()[k];
      total.steps += out.steps;
      total.highest = std::max(total.highest, out.highest);
      total.lowest = std::min(total.lowest, out.lowest);
      total.gap += out.gap;
    }
    const std::int64_t left = at - order.data();
    std::copy(gone.begin(), gone.end(), at);
    return std::make_tuple(total.steps, left, total.highest, total.lowest, total.gap);
  });
}

// Steps of the stochastic subgradient method along order[begin … end). `numbers` are the scalars of the state that
// change: scale, factor, squared length, weight, weights; returns the number of steps so far. Empty sums or answers are
// not kept.
std::int64_t descend(Any values, Any starts, Any features, Vector<const std::int64_t> of, bool all,
                     Vector<double> direction, Vector<double> sums, Vector<double> offset, Vector<double> offset_sums,
                     Vector<double> numbers, std::int64_t steps, Vector<const double> linear,
                     Vector<const double> lower, Vector<const double> upper, Vector<const double> ridge,
                     Vector<const std::int32_t> group, Vector<const double> share, Vector<double> answers,
                     Vector<double> visits, Vector<const std::int64_t> order, std::int64_t begin, std::int64_t end,
                     std::int64_t batch, double constant, double samples, double numerator, double growth, double delay,
                     double offset_rate, double radius, bool growing) {
  const std::int64_t width = static_cast<std::int64_t>(direction.shape(0)) - 1, n = linear.shape(0),
                     groups = offset.shape(0);
  require(width >= 0 && (sums.shape(0) == 0 || sums.shape(0) == direction.shape(0)) && numbers.shape(0) == 5,
          "the state of the weights is malformed");
  for (const auto& array : {lower, upper, ridge})
    require(static_cast<std::int64_t>(array.shape(0)) == n, "the arrays of a problem must have one length");
  for (const auto& array : {answers, visits})
    require(
        array.shape(0) == 0 || (static_cast<std::int64_t>(array.shape(0)) == n && answers.shape(0) == visits.shape(0)),
        "the arrays of a problem must have one length");
  require(static_cast<std::int64_t>(group.shape(0)) == n && static_cast<std::int64_t>(offset_sums.shape(0)) == groups &&
              static_cast<std::int64_t>(share.shape(0)) == groups,
          "the groups are malformed");
  for (std::int64_t k = 0; k < n; ++k)
    require(group.data()[k] >= -1 && group.data()[k] < groups, "the groups are malformed");
  require(0 <= begin && begin <= end && end <= static_cast<std::int64_t>(order.shape(0)) && batch >= 1,
          "the order is malformed");
  for (std::int64_t k = begin; k < end; ++k)
    require(order.data()[k] >= 0 && order.data()[k] < n, "the order is malformed");
  return with_rows({values, starts, features, width}, [&](auto rows, const auto& loops, std::int64_t count) {
    require(all ? n <= count : static_cast<std::int64_t>(of.shape(0)) == n, "there must be a row for every variable");
    if (!all) require_within(of, count);
    std::vector<double> room(std::min(batch, end - begin));
    double* number = numbers.data();
    DescentState state{direction.data(),
                       sums.shape(0) ? sums.data() : nullptr,
                       offset.data(),
                       offset_sums.data(),
                       linear.data(),
                       lower.data(),
                       upper.data(),
                       ridge.data(),
                       all ? nullptr : of.data(),
                       group.data(),
                       share.data(),
                       answers.shape(0) ? answers.data() : nullptr,
                       visits.data(),
                       room.data(),
                       width,
                       groups,
                       constant,
                       samples,
                       numerator,
                       growth,
                       delay,
                       offset_rate,
                       radius,
                       growing,
                       number[0],
                       number[1],
                       number[2],
                       number[3],
                       number[4],
                       steps};
    nb::gil_scoped_release unlocked;
    loops.descend(rows, state, order.data(), begin, end, batch);
    number[0] = state.scale;
    number[1] = state.factor;
    number[2] = state.squared_length;
    number[3] = state.weight;
    number[4] = state.weights;
    return state.steps;
  });
}

}  // namespace

void define_linear(nb::module_& m) {
  const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
  m.def("row_decisions", &row_decisions, exact("values"), exact("starts"), exact("features"), exact("picks"),
        nb::arg("all"), exact("weights"), exact("out"), nb::arg("threads"));
  m.def("combine_rows", &combine_rows, exact("values"), exact("starts"), exact("features"), exact("picks"),
        nb::arg("all"), exact("dual"), exact("out"), nb::arg("threads"));
  m.def("row_squared_norms", &row_squared_norms, exact("values"), exact("starts"), exact("features"), nb::arg("width"),
        exact("picks"), nb::arg("all"), exact("out"), nb::arg("threads"));
  m.def("sum_squares", &sum_squares, exact("values"), exact("starts"), exact("features"), exact("picks"),
        nb::arg("all"), exact("factors"), exact("origin"), exact("sums"), exact("square"), nb::arg("threads"));
  m.def("shuffle", &shuffle, exact("order"), nb::arg("seed"));
  m.def("ascend", &ascend, exact("values"), exact("starts"), exact("features"), exact("of"), nb::arg("all"),
        exact("dual"), exact("weights"), exact("linear"), exact("lower"), exact("upper"), exact("ridge"),
        exact("squared_norm"), exact("group"), exact("offset"), exact("excess"), exact("stiffness"),
        nb::arg("constant"), exact("order"), nb::arg("begin"), nb::arg("end"), nb::arg("leave_above"),
        nb::arg("leave_below"), nb::arg("damping"), nb::arg("threads"));
  m.def("descend", &descend, exact("values"), exact("starts"), exact("features"), exact("of"), nb::arg("all"),
        exact("direction"), exact("sums"), exact("offset"), exact("offset_sums"), exact("numbers"), nb::arg("steps"),
        exact("linear"), exact("lower"), exact("upper"), exact("ridge"), exact("group"), exact("share"),
        exact("answers"), exact("visits"), exact("order"), nb::arg("begin"), nb::arg("end"), nb::arg("batch"),
        nb::arg("constant"), nb::arg("samples"), nb::arg("numerator"), nb::arg("growth"), nb::arg("delay"),
        nb::arg("offset_rate"), nb::arg("radius"), nb::arg("growing"));
}

}  // namespace maxmargin
