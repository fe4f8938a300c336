// What learning from streams calls: checks shapes, releases the interpreter lock, calls the loop.
#include <tuple>

#include "bindings.hpp"

namespace maxmargin {
namespace {

// Show samples to one machine. `storage` holds rows of kernel values, valid as far as there are slots; slot[k] is where
// the row of slot k is, −1 if nowhere. `progress` (next, phase, length) is where the machine stands, and is brought up
// to date. Returns reason, steps, the slot whose row is wanted, the last violation, the gain, and the clock.
template <class Value>
std::tuple<int, std::int64_t, std::int64_t, double, double, std::int64_t> online_steps(
    Vector<double> dual, Vector<double> gradient, Vector<double> lower, Vector<double> upper,
    Vector<const double> diagonal, bool grouped, bool selective, Table<const Value> storage,
    Vector<const std::int64_t> slot, Vector<std::int64_t> last_use, std::int64_t clock,
    Vector<const std::int64_t> arrivals, Vector<const double> new_linear, Vector<const double> new_lower,
    Vector<const double> new_upper, Vector<const double> start, int rule, Vector<std::int64_t> progress,
    double tolerance, double max_seconds) {
  const std::int64_t n = dual.shape(0), count = arrivals.shape(0), rows_held = storage.shape(0);
  for (const auto& array : {gradient, lower, upper})
    require(static_cast<std::int64_t>(array.shape(0)) == n, "the arrays of a machine must have one length");
  require(static_cast<std::int64_t>(diagonal.shape(0)) == n && static_cast<std::int64_t>(slot.shape(0)) == n &&
              static_cast<std::int64_t>(storage.shape(1)) >= n,
          "the arrays of a machine must have one length");
  require(static_cast<std::int64_t>(last_use.shape(0)) == rows_held, "the row store is malformed");
  for (std::int64_t k = 0; k < n; ++k)
    require(slot.data()[k] >= -1 && slot.data()[k] < rows_held, "a slot is out of range");
  for (const auto& array : {new_linear, new_lower, new_upper, start})
    require(static_cast<std::int64_t>(array.shape(0)) == count, "there must be one entry for every arrival");
  require(progress.shape(0) == 3, "progress is where a machine stands: next, phase, length");
  std::int64_t* p = progress.data();
  require(p[0] >= 0 && p[0] <= count && p[1] >= 0 && p[1] <= 2 && p[2] >= 0 && p[2] <= n, "progress is out of range");
  std::int64_t next_slot = p[2];
  for (std::int64_t a = p[0]; a < count; ++a) {
    const std::int64_t k = arrivals.data()[a];
    require(k >= -1 && k < n && k <= next_slot, "an arrival is out of range");
    next_slot += k == next_slot;
  }
  require(p[1] != 1 || (p[0] < count && arrivals.data()[p[0]] >= 0 && arrivals.data()[p[0]] < p[2]),
          "progress is out of range");
  require(rule == 0 || rule == 1, "unknown working-set rule");
  Outcome out;
  RowStore<Value> rows{
      storage.data(), static_cast<std::int64_t>(storage.shape(1)), slot.data(), nullptr, last_use.data(), clock, 0};
  const std::vector<std::int64_t> whole(rows_held, n);
  const std::vector<double> no_ridge(n, 0.0);
  const std::vector<std::int32_t> group(n, grouped ? 0 : -1);
  rows.length = whole.data();
  {
    nb::gil_scoped_release unlocked;
    const OnlineArrays machine{dual.data(),     gradient.data(), lower.data(), upper.data(), diagonal.data(),
                               no_ridge.data(), group.data(),    grouped,      selective};
    const Arrivals stream{arrivals.data(), new_linear.data(), new_lower.data(), new_upper.data(), start.data(), count};
    OnlineProgress at{p[0], p[1], p[2]};
    if constexpr (sizeof(Value) == 4)
      out = level.solvers->online_single(machine, rows, stream, static_cast<Rule>(rule), at, tolerance, max_seconds);
    else
      out = level.solvers->online(machine, rows, stream, static_cast<Rule>(rule), at, tolerance, max_seconds);
    p[0] = at.next;
    p[1] = at.phase;
    p[2] = at.length;
  }
  return {static_cast<int>(out.reason), out.steps, out.row, out.violation, out.gain, rows.clock};
}

}  // namespace

void define_online(nb::module_& m) {
  const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
  const auto define = [&](auto steps) {
    m.def("online_steps", steps, exact("dual"), exact("gradient"), exact("lower"), exact("upper"), exact("diagonal"),
          nb::arg("grouped"), nb::arg("selective"), exact("storage"), exact("slot"), exact("last_use"),
          nb::arg("clock"), exact("arrivals"), exact("new_linear"), exact("new_lower"), exact("new_upper"),
          exact("start"), nb::arg("rule"), exact("progress"), nb::arg("tolerance"), nb::arg("max_seconds"));
  };
  define(&online_steps<float>);
  define(&online_steps<double>);
}

}  // namespace maxmargin
