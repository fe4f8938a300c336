// Binding of online learning: checks arguments, releases the interpreter lock, calls the loop.
#include "bindings.hpp"

namespace maxmargin {
namespace {

// Arrays over slots, each of which holds a sample.
struct OnlineState {
  Vector<double> dual, gradient, lower, upper;
  Vector<const double> diagonal;

  void check() const {
    require_length(length(dual), "the arrays of an online state must have one length", gradient, lower, upper,
                   diagonal);
  }

  void add_to(Memory& memory) const {
    memory.writes("dual", dual).writes("gradient", gradient).writes("lower", lower).writes("upper", upper);
    memory.reads("diagonal", diagonal);
  }
};

// The samples to process: their slots (−1: no sample, only a step on the slots that exist), what they add to the
// problem, and the start values of their dual variables.
struct ArrivalArrays {
  Vector<const std::int64_t> slot;
  Vector<const double> linear, lower, upper, start;

  void check() const {
    require_length(length(slot), "there must be one entry for every arrival", linear, lower, upper, start);
  }

  void add_to(Memory& memory) const {
    memory.reads("slot of the arrivals", slot).reads("linear of the arrivals", linear);
    memory.reads("lower of the arrivals", lower).reads("upper of the arrivals", upper).reads("start", start);
  }
};

struct OnlineOptions {
  int rule;
  bool grouped;    // whether the sum of the dual variables is fixed
  bool selective;  // whether samples are removed that cannot become support vectors soon

  void check() const { require(rule == 0 || rule == 1, "unknown working-set rule"); }
};

struct OnlineResult {
  int reason;  // a number of StopReason
  std::int64_t steps;
  std::int64_t row;  // with needs_row: the slot
  double violation, gain;
  std::int64_t clock;  // of the row cache
};

// Process samples. `progress` holds the next arrival, its phase and the number of slots with gradients; it is updated,
// so that a call that returns for lack of a row can be repeated.
OnlineResult online_steps(const OnlineState& arrays, const CachedRows& cache, const ArrivalArrays& arrivals,
                          const OnlineOptions& options, Vector<std::int64_t> progress, double tolerance,
                          double max_seconds) {
  const std::int64_t n = length(arrays.dual), count = length(arrivals.slot), slots = length(cache.storage);
  require(length(cache.slot) == n, "online state and row cache must have one length");
  cache.check_slots();
  require(length(progress) == 3, "progress must hold the next arrival, its phase and the number of slots");
  std::int64_t* p = progress.data();
  require(p[0] >= 0 && p[0] <= count && p[1] >= 0 && p[1] <= 2 && p[2] >= 0 && p[2] <= n, "progress is out of range");
  std::int64_t next_slot = p[2];
  for (std::int64_t a = p[0]; a < count; ++a) {
    const std::int64_t k = arrivals.slot.data()[a];
    require(k >= -1 && k < n && k <= next_slot, "an arrival is out of range");
    next_slot += k == next_slot;
  }
  require(p[1] != 1 || (p[0] < count && arrivals.slot.data()[p[0]] >= 0 && arrivals.slot.data()[p[0]] < p[2]),
          "progress is out of range");
  Memory().of(arrays, cache, arrivals).writes("progress", progress).require_disjoint();
  const std::vector<std::int64_t> whole(slots, n);
  const std::vector<double> no_ridge(n, 0.0);
  const std::vector<std::int32_t> group(n, options.grouped ? 0 : -1);
  const auto run = [&](auto value, auto loop) -> OnlineResult {
    using Value = decltype(value);
    RowCache<Value> rows{as<Value>(cache.storage),
                         length(cache.storage, 1),
                         cache.slot.data(),
                         whole.data(),
                         cache.last_use.data(),
                         cache.clock,
                         0};
    nb::gil_scoped_release unlocked;
    const OnlineArrays state{arrays.dual.data(),  arrays.gradient.data(), arrays.lower.data(),
                             arrays.upper.data(), arrays.diagonal.data(), no_ridge.data(),
                             group.data(),        options.grouped,        options.selective};
    const Arrivals stream{arrivals.slot.data(),  arrivals.linear.data(), arrivals.lower.data(),
                          arrivals.upper.data(), arrivals.start.data(),  count};
    OnlineProgress at{p[0], p[1], p[2]};
    const Outcome out = loop(state, rows, stream, static_cast<Rule>(options.rule), at, tolerance, max_seconds);
    p[0] = at.next;
    p[1] = at.phase;
    p[2] = at.length;
    return {static_cast<int>(out.reason), out.steps, out.row, out.violation, out.gain, rows.clock};
  };
  return has_type<float>(cache.storage.dtype()) ? run(float{}, level.solvers->online_single)
                                                : run(double{}, level.solvers->online);
}

}  // namespace

void define_online(nb::module_& m) {
  define_arguments<OnlineState, Vector<double>, Vector<double>, Vector<double>, Vector<double>, Vector<const double>>(
      m, "OnlineState", exact("dual"), exact("gradient"), exact("lower"), exact("upper"), exact("diagonal"));
  define_arguments<ArrivalArrays, Vector<const std::int64_t>, Vector<const double>, Vector<const double>,
                   Vector<const double>, Vector<const double>>(m, "Arrivals", exact("slot"), exact("linear"),
                                                               exact("lower"), exact("upper"), exact("start"));
  define_arguments<OnlineOptions, int, bool, bool>(m, "OnlineOptions", nb::arg("rule"), nb::arg("grouped"),
                                                   nb::arg("selective"));
  nb::class_<OnlineResult>(m, "OnlineResult")
      .def_ro("reason", &OnlineResult::reason)
      .def_ro("steps", &OnlineResult::steps)
      .def_ro("row", &OnlineResult::row)
      .def_ro("violation", &OnlineResult::violation)
      .def_ro("gain", &OnlineResult::gain)
      .def_ro("clock", &OnlineResult::clock);
  m.def("online_steps", &online_steps, nb::arg("state"), nb::arg("rows"), nb::arg("arrivals"), nb::arg("options"),
        exact("progress"), nb::arg("tolerance"), nb::arg("max_seconds"));
}

}  // namespace maxmargin
