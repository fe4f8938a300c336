// Bindings of sums over the pairs of a ranking, listed or by the order of scores.
#include <nanobind/stl/optional.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <tuple>

#include "bindings.hpp"
#include "ranking.hpp"

namespace maxmargin {
namespace {

constexpr std::int64_t kPairsPerPart = 1 << 16;  // sums over parts do not depend on the number of threads

struct PairArrays {
  Vector<const std::int64_t> first, second;
  Vector<const double> centre, upper;
  double stiffness;

  void check() const {
    require_length(length(first), "the arrays of the pairs must have one length", second, centre, upper);
    require(stiffness > 0, "stiffness must be above 0");
  }
  void add_to(Memory& memory) const {
    memory.reads("first", first).reads("second", second).reads("centre", centre).reads("upper", upper);
  }
  ListedPairs of(std::int64_t samples) const {
    require_within(first, samples);
    require_within(second, samples);
    return {first.data(), second.data(), centre.data(), upper.data(), stiffness};
  }
};

void pair_responses(const PairArrays& arrays, Vector<const double> scores, Vector<double> responses,
                    Vector<double> coefficients) {
  const ListedPairs pairs = arrays.of(length(scores));
  require(length(responses) == length(arrays.first), "there must be a response for every pair");
  require(length(coefficients) == length(scores), "there must be a coefficient for every sample");
  Memory()
      .of(arrays)
      .reads("scores", scores)
      .writes("responses", responses)
      .writes("coefficients", coefficients)
      .require_disjoint();
  nb::gil_scoped_release unlocked;
  std::fill_n(coefficients.data(), length(coefficients), 0.0);
  respond_to_pairs(pairs, length(responses), scores.data(), responses.data(), coefficients.data());
}

double pair_slope(const PairArrays& arrays, Vector<const double> scores, Vector<const double> direction, double t,
                  int threads) {
  const ListedPairs pairs = arrays.of(length(scores));
  require(length(direction) == length(scores), "there must be a direction for every score");
  const std::int64_t count = length(arrays.first), parts = (count + kPairsPerPart - 1) / kPairsPerPart;
  std::vector<double> slopes(parts);
  nb::gil_scoped_release unlocked;
  in_parallel(threads, parts, 1, [&](std::int64_t part, std::int64_t, int) {
    const std::int64_t begin = part * kPairsPerPart;
    slopes[part] =
        slope_of_pairs(pairs, begin, std::min(count, begin + kPairsPerPart), scores.data(), direction.data(), t);
  });
  return std::accumulate(slopes.begin(), slopes.end(), 0.0);
}

struct OrderArrays {
  Vector<const std::int64_t> order, starts;
  Vector<const std::int32_t> level;
  Vector<const double> scores;

  void check() const {
    require_length(length(order), "the arrays of the samples must have one length", level, scores);
    require(length(starts) > 0, "starts must end with the number of samples");
  }
  void add_to(Memory& memory) const {
    memory.reads("order", order).reads("starts", starts).reads("level", level).reads("scores", scores);
  }
  RankedSamples of() const {
    const std::int64_t n = length(order), queries = length(starts) - 1;
    require_within(order, n);
    const std::int64_t* p = starts.data();
    require(p[0] == 0 && p[queries] == n, "starts must begin with 0 and end with the number of samples");
    for (std::int64_t q = 0; q < queries; ++q) {
      require(p[q] <= p[q + 1] && p[q + 1] <= n, "starts must not decrease");
      for (std::int64_t k = p[q]; k < p[q + 1]; ++k) {
        const std::int32_t own = level.data()[order.data()[k]];
        require(own >= 0 && own < p[q + 1] - p[q], "a level is out of range");
      }
    }
    return {order.data(), p, queries, level.data(), scores.data()};
  }
};

void partner_sums(const OrderArrays& arrays, Table<const double> values, double low, double high, bool as_first,
                  bool compensated, std::optional<Table<double>> inner, Table<double> window) {
  const RankedSamples samples = arrays.of();
  const std::int64_t n = length(arrays.order), columns = length(values, 1);
  require(low <= high, "low must not be above high");
  require(length(values) == n && length(window) == n && length(window, 1) == columns,
          "there must be a row for every sample");
  require(!inner || (length(*inner) == n && length(*inner, 1) == columns), "there must be a row for every sample");
  Memory memory = Memory().of(arrays).reads("values", values).writes("window", window);
  if (inner) memory.writes("inner", *inner);
  memory.require_disjoint();
  nb::gil_scoped_release unlocked;
  const PartnerSums out{inner ? inner->data() : nullptr, window.data()};
  if (compensated)
    sum_partners<CompensatedSum>(samples, values.data(), columns, low, high, as_first, out);
  else
    sum_partners<PlainSum>(samples, values.data(), columns, low, high, as_first, out);
}

std::tuple<double, double> pair_extremes(const OrderArrays& arrays, Vector<const double> values, double low,
                                         double high) {
  const RankedSamples samples = arrays.of();
  require(length(values) == length(arrays.order), "there must be a value for every sample");
  nb::gil_scoped_release unlocked;
  const PairExtremes found = extremes_of_pairs(samples, values.data(), low, high);
  return {found.least_lead, found.most_lead};
}

}  // namespace

void define_ranking(nb::module_& m) {
  define_arguments<PairArrays, Vector<const std::int64_t>, Vector<const std::int64_t>, Vector<const double>,
                   Vector<const double>, double>(m, "PairArrays", exact("first"), exact("second"), exact("centre"),
                                                 exact("upper"), nb::arg("stiffness"));
  define_arguments<OrderArrays, Vector<const std::int64_t>, Vector<const std::int64_t>, Vector<const std::int32_t>,
                   Vector<const double>>(m, "OrderArrays", exact("order"), exact("starts"), exact("level"),
                                         exact("scores"));
  m.def("pair_responses", &pair_responses, nb::arg("pairs"), exact("scores"), exact("responses"),
        exact("coefficients"));
  m.def("pair_slope", &pair_slope, nb::arg("pairs"), exact("scores"), exact("direction"), nb::arg("t"),
        nb::arg("threads"));
  m.def("partner_sums", &partner_sums, nb::arg("samples"), exact("values"), nb::arg("low"), nb::arg("high"),
        nb::arg("as_first"), nb::arg("compensated"), nb::arg("inner").noconvert().none(), exact("window"));
  m.def("pair_extremes", &pair_extremes, nb::arg("samples"), exact("values"), nb::arg("low"), nb::arg("high"));
}

}  // namespace maxmargin
