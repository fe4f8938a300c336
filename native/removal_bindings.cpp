// Binding of the paths along which samples are removed from an optimum: checks arguments, shares samples among threads.
#include <chrono>
#include <vector>

#include "bindings.hpp"

namespace maxmargin {
namespace {

// The variables of an optimum that may change, as in `RemovalTable`.
struct RemovalTableArguments {
  Table<const double> columns;
  Vector<const double> dual, slack, lower, upper;
  Vector<const std::int32_t> group;
  std::int32_t groups;
  double curvature;

  std::int64_t size() const { return length(dual); }

  void check() const {
    require_length(size(), "the arrays of the table must have one length", slack, lower, upper, group);
    for (std::int64_t k = 0; k < size(); ++k)
      require(group.data()[k] >= -1 && group.data()[k] < groups, "a group is out of range");
    require(groups >= 0 && length(columns) == size() + groups && length(columns, 1) == size() + groups,
            "the table must have a column for every variable and group");
  }

  RemovalTable pointers() const {
    return {columns.data(), dual.data(), slack.data(), lower.data(), upper.data(),
            group.data(),   size(),      groups,       curvature};
  }
};

// The variables that are moved to 0, one at a time, as in `Removal`.
struct RemovalArguments {
  Vector<const std::int64_t> place, twin;
  Table<const double> own_columns;  // of those that are not in the table, in their order
  Vector<const double> response, dual, slack, linear, ridge, gain;
  double margin;
  Table<const double> missing;  // no rows: the totals stay

  std::int64_t count() const { return length(place); }

  void check() const {
    require_length(count(), "the arrays of the samples must have one length", twin, response, dual, slack, linear,
                   ridge, gain);
    require(length(missing) == 0 || length(missing) == count(), "the arrays of the samples must have one length");
  }

  void check_for(const RemovalTableArguments& table) const {
    std::int64_t outside = 0;
    for (std::int64_t k = 0; k < count(); ++k) {
      require(place.data()[k] >= -1 && place.data()[k] < table.size() && twin.data()[k] >= -1 &&
                  twin.data()[k] < table.size(),
              "a place is out of range");
      outside += place.data()[k] < 0;
    }
    require(length(own_columns) == outside && (outside == 0 || length(own_columns, 1) == table.size() + table.groups),
            "there must be a column for every sample that is not in the table");
    require(length(missing) == 0 || length(missing, 1) == table.groups, "there must be a total for every group");
  }
};

struct RemovalResults {
  Table<std::int64_t> outcome;    // a row for each sample: how it ended, −1 if it has not begun; exchanges; unique
  Table<double> numbers;          // value, way, gain, violation, and the changes of the offsets
  Table<double> changes, slacks;  // of the variables of the table; no rows: not wanted

  void check_for(std::int64_t count, const RemovalTableArguments& table) const {
    require(length(outcome) == count && length(outcome, 1) == 3 && length(numbers) == count &&
                length(numbers, 1) == 4 + table.groups,
            "there must be results for every sample");
    require(length(changes) == length(slacks) && (length(changes) == 0 || length(changes) == count) &&
                (length(changes) == 0 || (length(changes, 1) == table.size() && length(slacks, 1) == table.size())),
            "there must be changes for every sample");
  }

  void check() const {}
};

void remove_samples(const RemovalTableArguments& table, const RemovalArguments& samples, const RemovalResults& results,
                    int goal, std::int64_t max_exchanges, double max_seconds, int threads) {
  require(goal >= 0 && goal <= static_cast<int>(RemovalGoal::bound), "unknown goal");
  require(max_exchanges >= 1, "there must be memory for an exchange");
  const std::int64_t count = samples.count();
  samples.check_for(table);
  results.check_for(count, table);
  const RemovalTable pointers = table.pointers();
  const std::int64_t length_of_column = table.size() + table.groups + 1;
  std::vector<std::int64_t> outside(count);  // which own column
  for (std::int64_t k = 0, next = 0; k < count; ++k) outside[k] = samples.place.data()[k] < 0 ? next++ : -1;
  std::vector<std::vector<double>> doubles(threads);
  std::vector<std::vector<std::int64_t>> indices(threads);
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  nb::gil_scoped_release unlocked;
  in_parallel(threads, count, 1, [&](std::int64_t k, std::int64_t, int thread) {
    if (std::chrono::duration<double>(Clock::now() - start).count() > max_seconds) return;
    if (doubles[thread].empty()) {
      doubles[thread].resize((5 + max_exchanges) * length_of_column);
      indices[thread].resize(length_of_column + max_exchanges);
    }
    double* numbers = results.numbers.data() + k * (4 + table.groups);
    const Removal removal{samples.place.data()[k],
                          outside[k] < 0 ? nullptr : samples.own_columns.data() + outside[k] * (length_of_column - 1),
                          samples.response.data()[k],
                          samples.dual.data()[k],
                          samples.slack.data()[k],
                          samples.linear.data()[k],
                          samples.ridge.data()[k],
                          samples.margin,
                          samples.twin.data()[k],
                          length(samples.missing) ? samples.missing.data() + k * table.groups : nullptr,
                          samples.gain.data()[k],
                          numbers + 4};
    const bool wanted = length(results.changes) > 0;
    const RemovalOutcome out = level.solvers->remove(
        pointers, {doubles[thread].data(), indices[thread].data(), max_exchanges}, removal,
        static_cast<RemovalGoal>(goal), wanted ? results.changes.data() + k * table.size() : nullptr,
        wanted ? results.slacks.data() + k * table.size() : nullptr);
    std::int64_t* outcome = results.outcome.data() + 3 * k;
    outcome[0] = static_cast<std::int64_t>(out.end);
    outcome[1] = out.exchanges;
    outcome[2] = out.unique;
    numbers[0] = out.value;
    numbers[1] = out.way;
    numbers[2] = out.gain;
    numbers[3] = out.violation;
  });
}

}  // namespace

void define_removals(nb::module_& m) {
  define_arguments<RemovalTableArguments, Table<const double>, Vector<const double>, Vector<const double>,
                   Vector<const double>, Vector<const double>, Vector<const std::int32_t>, std::int32_t, double>(
      m, "RemovalTable", exact("columns"), exact("dual"), exact("slack"), exact("lower"), exact("upper"),
      exact("group"), nb::arg("groups"), nb::arg("curvature"));
  define_arguments<RemovalArguments, Vector<const std::int64_t>, Vector<const std::int64_t>, Table<const double>,
                   Vector<const double>, Vector<const double>, Vector<const double>, Vector<const double>,
                   Vector<const double>, Vector<const double>, double, Table<const double>>(
      m, "Removals", exact("place"), exact("twin"), exact("own_columns"), exact("response"), exact("dual"),
      exact("slack"), exact("linear"), exact("ridge"), exact("gain"), nb::arg("margin"), exact("missing"));
  define_arguments<RemovalResults, Table<std::int64_t>, Table<double>, Table<double>, Table<double>>(
      m, "RemovalResults", exact("outcome"), exact("numbers"), exact("changes"), exact("slacks"));
  m.def("remove_samples", &remove_samples, nb::arg("table"), nb::arg("samples"), nb::arg("results"), nb::arg("goal"),
        nb::arg("max_exchanges"), nb::arg("max_seconds"), nb::arg("threads"));
}

}  // namespace maxmargin
