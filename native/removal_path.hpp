// The solution of a dual problem while the variable of one sample moves to 0: piecewise linear, followed from break
// point to break point.
//
// Let F be the free variables of the optimum and N those at a bound. The optimality conditions are linear equations
// between the dual variables b and the slacks s = linear − M b − ridge∘b − ρ:
//   (b_F, ρ, s_N) = const + W (s_F, totals, b_N).
// While b_i moves, s_F = 0 and the other b_N stay, so all values on the left move along the column of i. At a break
// point a free variable reaches a bound, or the slack of a variable at a bound becomes 0; the two values of that
// variable change sides (an exchange step of Gauss and Jordan). Only the columns of variables that have changed sides
// are needed, so k break points cost k²/2 additions of a column. Stated and derived in docs/mathematics.md; in plain
// Python, tests/reference/removal_path.py.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "pairwise.hpp"
#include "solver_loops.hpp"
#include "vector_argmax.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

class RemovalPath {
 public:
  RemovalPath(const RemovalTable& table, const RemovalWorkspace& workspace)
      : t_(table),
        length_(table.size + table.groups + 1),
        own_(table.size + table.groups),
        value_(workspace.doubles),
        rate_(value_ + length_),
        low_(rate_ + length_),
        high_(low_ + length_),
        bound_(high_ + length_),
        columns_(bound_ + length_),
        last_(workspace.indices),
        exchanged_(last_ + length_),
        most_(workspace.max_exchanges) {}

  RemovalOutcome follow(const Removal& removal, RemovalGoal goal) {
    begin(removal);
    if (!start()) return finished(RemovalEnd::failed);
    for (;;) {
      const double crossing = value_rate_ * beyond_ > 0.0 ? (beyond_ - of_value_) / value_rate_ : kEndless;
      const double last = goal == RemovalGoal::bound ? kEndless : 1.0 - out_.way;
      std::int64_t at = -1;
      const double event = first_event(at);
      const bool crosses = goal != RemovalGoal::value && crossing <= event && crossing <= last;
      const double step = crosses ? crossing : event < last ? event : last;
      if (!(step < kEndless)) return finished(RemovalEnd::failed);
      move(step);
      if (goal == RemovalGoal::bound && out_.gain > removal.gain) return finished(RemovalEnd::proved);
      if (crosses) return finished(goal == RemovalGoal::bound ? RemovalEnd::unproved : RemovalEnd::crossed);
      if (step == last) return finished(RemovalEnd::reached);
      if (!change_side(at)) return finished(RemovalEnd::failed);
    }
  }

  // The changes of the dual variables of the table, and their slacks (of free ones 0).
  void write(double* changes, double* slacks) const {
    for (std::int64_t k = 0; k < t_.size; ++k) {
      const bool is_free = free(k) && k != at_;
      const double dual = k == at_ ? (1.0 - out_.way) * t_.dual[k] : is_free ? value_[k] : bound_[k];
      changes[k] = dual - t_.dual[k];
      slacks[k] = is_free ? 0.0 : value_[k];
    }
  }

 private:
  static constexpr double kEndless = std::numeric_limits<double>::infinity();
  static constexpr double kSmallestPivot = 1e-9;  // relative
  static constexpr double kRounding = 1e-8;       // of a dual variable, relative to the distance of its bounds

  bool was_free(std::int64_t k) const { return k < t_.size && t_.dual[k] > t_.lower[k] && t_.dual[k] < t_.upper[k]; }
  bool free(std::int64_t k) const { return side_of(k) == 0; }
  // 0: free; −1, 1: at the lower, the upper bound
  int side_of(std::int64_t k) const { return low_[k] == -kEndless ? -1 : high_[k] == kEndless ? 1 : 0; }

  void set_limits(std::int64_t k, int side) {
    low_[k] = side < 0 ? -kEndless : side > 0 ? 0.0 : t_.lower[k];
    high_[k] = side < 0 ? 0.0 : side > 0 ? kEndless : t_.upper[k];
  }
  void ignore(std::int64_t k) {
    low_[k] = -kEndless;
    high_[k] = kEndless;
  }

  void begin(const Removal& removal) {
    removal_ = &removal;
    at_ = removal.place >= 0 ? removal.place : own_;
    out_ = {};
    for (std::int64_t k = 0; k < t_.size; ++k) {
      const bool is_free = was_free(k);
      value_[k] = is_free ? t_.dual[k] : t_.slack[k];
      bound_[k] = t_.dual[k];
      set_limits(k, is_free ? 0 : t_.dual[k] == t_.lower[k] ? -1 : 1);
      if (t_.lower[k] == t_.upper[k]) ignore(k);
      last_[k] = -1;
    }
    for (std::int64_t k = t_.size; k < length_; ++k) {
      value_[k] = 0.0;
      last_[k] = -1;
      ignore(k);
    }
    if (removal.place < 0) value_[own_] = removal.slack;
    if (removal.twin >= 0) ignore(removal.twin);
    of_value_ = removal.linear - removal.ridge * removal.dual - removal.slack;
    beyond_ = of_value_ > 0.0 ? -removal.margin : removal.margin;
  }

  // The rates of all values per unit of the way.
  bool start() {
    for (std::int64_t k = 0; k < length_; ++k) rate_[k] = 0.0;
    for (std::int32_t g = 0; g < t_.groups; ++g)
      if (removal_->missing && removal_->missing[g] != 0.0) add_base_column(rate_, t_.size + g, removal_->missing[g]);
    const double change = -removal_->dual;
    if (removal_->place < 0) {
      add_row(rate_, removal_->column, change, own_);
      rate_[own_] += change * removal_->response;
    } else if (!was_free(at_)) {
      add_base_column(rate_, at_, change);
    } else if (!exchange(at_, change)) {
      return false;
    }
    if (was_free(at_)) value_[at_] = removal_->slack;
    ignore(at_);
    find_value_rate();
    return true;
  }

  void find_value_rate() { value_rate_ = removal_->ridge * removal_->dual - rate_[at_]; }

  void add_base_column(double* to, std::int64_t k, double factor) const {
    add_row(to, t_.columns + k * own_, factor, own_);
    to[own_] += factor * own_value(k);
  }

  // The value of the sample in the column of a variable: W is symmetric but for the signs between F and the others.
  double own_value(std::int64_t k) const {
    if (removal_->place >= 0) return 0.0;
    return was_free(k) ? -removal_->column[k] : removal_->column[k];
  }

  // The length of the step until the first value reaches a limit, and which.
  double first_event(std::int64_t& at) const {
    LaneArgmax best{repeat(-kEndless), ~IndexLanes{}};
    const Lanes zero = repeat(0.0);
    IndexLanes here = lane_indices();
    std::int64_t k = 0;
    for (; k + kLanes <= t_.size; k += kLanes) {
      const Lanes rate = load(rate_ + k), value = load(value_ + k);
      const Lanes limit = rate > zero ? load(high_ + k) : load(low_ + k);
      best.update((value - limit) / rate, rate != zero, here);
      here += kLanes;
    }
    double found = -kEndless;
    at = -1;
    best.reduce(found, at);
    for (; k < t_.size; ++k) {
      if (rate_[k] == 0.0) continue;
      const double limit = rate_[k] > 0.0 ? high_[k] : low_[k], before = (value_[k] - limit) / rate_[k];
      if (before > found) {
        found = before;
        at = k;
      }
    }
    return found < 0.0 ? -found : 0.0;  // rounding errors may have moved it beyond the limit
  }

  void move(double step) {
    const double before = of_value_;
    if (step > 0.0) add_row(value_, rate_, step, length_);
    of_value_ += step * value_rate_;
    out_.way += step;
    out_.gain += 0.5 * (before + of_value_) * step * removal_->dual;
  }

  bool change_side(std::int64_t k) {
    if (out_.exchanges == most_) return false;
    const int side = side_of(k);
    const double bound = rate_[k] > 0.0 ? t_.upper[k] : t_.lower[k];
    if (!exchange(k, 0.0)) {
      if (side == 0) return false;  // no other variable of its group is free
      ignore(k);                    // it depends on the free ones: its slack stays 0
      return true;
    }
    if (side == 0) {
      bound_[k] = bound;
      value_[k] = 0.0;
      set_limits(k, bound == t_.upper[k] ? 1 : -1);
    } else {
      value_[k] = bound_[k];
      set_limits(k, 0);
    }
    find_value_rate();
    return true;
  }

  // Let the values of a variable change sides; what was on the left moves at the rate `own` from now on. False if
  // the pivot is close to 0.
  bool exchange(std::int64_t k, double own) {
    double* column = columns_ + out_.exchanges * length_;
    find_column(k, column);
    const double least = free(k) ? kSmallestPivot / t_.curvature : kSmallestPivot * t_.curvature;
    if (!(std::fabs(column[k]) > least)) return false;
    const double factor = (rate_[k] - own) / column[k];
    add_row(rate_, column, -factor, length_);
    rate_[k] = -factor;
    exchanged_[out_.exchanges] = k;
    last_[k] = out_.exchanges++;
    return true;
  }

  // The present column of a variable.
  void find_column(std::int64_t k, double* column) const {
    std::int64_t from = last_[k];
    if (from < 0) {
      const double* base = t_.columns + k * own_;
      for (std::int64_t r = 0; r < own_; ++r) column[r] = base[r];
      column[own_] = own_value(k);
    } else {
      const double* before = columns_ + from * length_;
      const double scale = 1.0 / before[k];
      for (std::int64_t r = 0; r < length_; ++r) column[r] = scale * before[r];
      column[k] = scale;
    }
    for (++from; from < out_.exchanges; ++from) {
      const double* other = columns_ + from * length_;
      const std::int64_t v = exchanged_[from];
      const double factor = column[v] / other[v];
      add_row(column, other, -factor, length_);
      column[v] = -factor;
    }
  }

  RemovalOutcome finished(RemovalEnd end) {
    out_.end = end;
    out_.value = of_value_;
    for (std::int32_t g = 0; g < t_.groups; ++g) removal_->offsets[g] = value_[t_.size + g];
    check_end();
    return out_;
  }

  // Variables that are ignored may violate optimality; a free one that is at a bound is none.
  void check_end() {
    for (std::int32_t g = 0; g < t_.groups; ++g) last_[t_.size + g] = -1;
    for (std::int64_t k = 0; k < t_.size; ++k) {
      if (k == at_ || k == removal_->twin) continue;
      if (free(k)) {
        const double room = kRounding * (t_.upper[k] - t_.lower[k]);
        const bool inside = value_[k] - t_.lower[k] > room && t_.upper[k] - value_[k] > room;
        if (inside && t_.group[k] >= 0) last_[t_.size + t_.group[k]] = k;
        continue;
      }
      if (bound_[k] < t_.upper[k]) out_.violation = larger(out_.violation, value_[k]);
      if (bound_[k] > t_.lower[k]) out_.violation = larger(out_.violation, -value_[k]);
    }
    for (std::int32_t g = 0; g < t_.groups; ++g) out_.unique &= last_[t_.size + g] >= 0;
  }

  const RemovalTable& t_;
  const std::int64_t length_, own_;
  double *value_, *rate_;  // of all values on the left: dual variables, changes of offsets, slacks; the last is own
  double *low_, *high_;    // between which they stay
  double* bound_;          // where the variables at a bound are
  double* columns_;        // of the exchanged variables, before their exchange
  std::int64_t *last_, *exchanged_;
  const std::int64_t most_;
  const Removal* removal_ = nullptr;
  std::int64_t at_ = 0;
  double of_value_ = 0.0, value_rate_ = 0.0;
  double beyond_ = 0.0;  // the value that has another sign
  RemovalOutcome out_;
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
