// Bindings of passes over blocks of rows.
#include "data_rows.hpp"

namespace maxmargin {
namespace {

// A problem of the samples of a block, or of one sample of each kind, and what is computed for each sample.
struct PassArrays {
  Vector<const double> linear, lower, upper, ridge, kink;  // the last is empty if there is none
  Vector<const std::int32_t> kinds;                        // absent: each sample is a kind of its own
  Vector<const float> centre;                              // absent: 0
  Vector<double> response;
  Vector<bool> free;

  void check() const {
    require_length(length(linear), "the arrays of a pass must have one length", lower, upper, ridge);
    require(!given(kink) || length(kink) == length(linear), "the arrays of a pass must have one length");
    const std::int64_t samples = length(response);
    require(kinds.is_valid() ? length(kinds) == samples : length(linear) == samples, "there must be a kind per sample");
    require(length(free) == samples && (!centre.is_valid() || length(centre) == samples),
            "the arrays of the samples must have one length");
  }

  void require_kinds() const {
    if (!kinds.is_valid()) return;
    for (std::int64_t k = 0; k < length(kinds); ++k)
      require(kinds.data()[k] >= 0 && kinds.data()[k] < length(linear), "a kind is out of range");
  }

  void add_to(Memory& memory) const {
    memory.reads("linear", linear).reads("lower", lower).reads("upper", upper).reads("ridge", ridge);
    memory.reads("kink", kink).reads("kinds", kinds).reads("centre", centre);
    memory.writes("response", response).writes("free", free);
  }
};

// The sums over all samples at weights w, the last of which belongs to a feature that is `constant` in all rows.
// `dual_weights` becomes Fᵀβ of the positive and of the negative responses, with the constant feature last.
PassTotals pass_sums(const DataRows& features, const PassArrays& arrays, Vector<const double> weights, double constant,
                     double offset, double sigma, double slack_error, Table<double> dual_weights, int threads) {
  const std::int64_t width = length(weights) - 1, n = length(arrays.response);
  require(width >= 0 && length(dual_weights) == 2 && length(dual_weights, 1) == width + 1,
          "weights must include the constant feature");
  require(width == features.width, "the rows have another width");
  require(features.count() == n, "there must be a row for every sample");
  arrays.require_kinds();
  Memory().of(features, arrays).reads("weights", weights).writes("dual_weights", dual_weights).require_disjoint();
  return with_rows(features, [&](auto rows, const auto& loops) {
    const PassProblem problem{arrays.linear.data(),
                              arrays.lower.data(),
                              arrays.upper.data(),
                              arrays.ridge.data(),
                              given(arrays.kink) ? arrays.kink.data() : nullptr,
                              arrays.kinds.is_valid() ? arrays.kinds.data() : nullptr,
                              arrays.centre.is_valid() ? arrays.centre.data() : nullptr,
                              constant * weights.data()[width],
                              offset,
                              sigma,
                              slack_error,
                              arrays.response.data(),
                              arrays.free.data()};
    const int parts = n < 2 * kRowsPerChunk ? 1 : std::max(1, threads);
    std::vector<PassTotals> totals(parts);
    std::vector<double> sums(static_cast<std::size_t>(parts) * 2 * width, 0.0);
    nb::gil_scoped_release unlocked;
    in_parts(parts, n, [&](std::int64_t begin, std::int64_t end, int part) {
      loops.sum_pass(rows, features.at(), problem, weights.data(), begin, end, totals[part],
                     sums.data() + part * 2 * width);
    });
    PassTotals all;
    for (const PassTotals& part : totals) {
      all.loss += part.loss;
      all.slack_square += part.slack_square;
      all.size += part.size;
      all.free += part.free;
      for (int sign = 0; sign < 2; ++sign) {
        all.linear[sign] += part.linear[sign];
        all.ridge[sign] += part.ridge[sign];
        all.total[sign] += part.total[sign];
      }
    }
    for (int sign = 0; sign < 2; ++sign) {
      double* out = dual_weights.data() + sign * (width + 1);
      std::fill_n(out, width, 0.0);
      for (int part = 0; part < parts; ++part)
        for (std::int64_t k = 0; k < width; ++k) out[k] += sums[(2 * part + sign) * width + k];
      out[width] = constant * all.total[sign];
    }
    return all;
  });
}

}  // namespace

void define_passes(nb::module_& m) {
  define_arguments<PassArrays, Vector<const double>, Vector<const double>, Vector<const double>, Vector<const double>,
                   Vector<const double>, Vector<const std::int32_t>, Vector<const float>, Vector<double>, Vector<bool>>(
      m, "PassArrays", exact("linear"), exact("lower"), exact("upper"), exact("ridge"), exact("kink"),
      optional("kinds"), optional("centre"), exact("response"), exact("free"));
  nb::class_<PassTotals>(m, "PassTotals")
      .def_ro("loss", &PassTotals::loss)
      .def_ro("slack_square", &PassTotals::slack_square)
      .def_ro("size", &PassTotals::size)
      .def_ro("free", &PassTotals::free)
      .def_prop_ro("linear", [](const PassTotals& t) { return std::pair(t.linear[0], t.linear[1]); })
      .def_prop_ro("ridge", [](const PassTotals& t) { return std::pair(t.ridge[0], t.ridge[1]); })
      .def_prop_ro("total", [](const PassTotals& t) { return std::pair(t.total[0], t.total[1]); });
  m.def("pass_sums", &pass_sums, nb::arg("rows"), nb::arg("arrays"), exact("weights"), nb::arg("constant"),
        nb::arg("offset"), nb::arg("sigma"), nb::arg("slack_error"), exact("dual_weights"), nb::arg("threads"));
}

}  // namespace maxmargin
