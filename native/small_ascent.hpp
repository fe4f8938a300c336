// Dual coordinate ascent on a small problem from start to end: passes until the estimated gap is small, then the
// certificate of the point, which decides. The passes are those of solvers/linear/dual_coordinate_ascent.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "data_rows.hpp"
#include "shuffle.hpp"

namespace maxmargin {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

// The dual vector, the weights with that of the constant feature last, and for each variable its slack and its share of
// the gap; all are computed.
struct SmallLinearArrays {
  Vector<double> dual, weights, slack, residual;

  void check() const { require_length(length(dual), "the arrays must have one length", slack, residual); }

  void add_to(Memory& memory) const {
    memory.writes("dual", dual).writes("weights", weights).writes("slack", slack).writes("residual", residual);
  }
};

struct SmallLinearResult {
  SmallLinearOutcome outcome;
  LinearCertificate certificate;
};

struct SmallAscentOptions {
  double constant;  // the value of one more feature that all rows have
  double relative_gap, gap;
  double max_remaining;  // the most passes that may be left, by the estimate after a pass
  std::int64_t max_passes;

  void check() const { require(max_passes >= 0, "the limit of passes must not be negative"); }
};

// The number of stored values of a row.
template <class T> std::int64_t stored_in(const DenseRows<T>& rows, std::int64_t) { return rows.width; }
template <class T, class I> std::int64_t stored_in(const CompressedRows<T, I>& rows, std::int64_t row) {
  return rows.starts[row + 1] - rows.starts[row];
}

constexpr std::int64_t kPassesBeforeEvaluation = 16;  // as in dual_coordinate_ascent.py, where it is explained

// The passes of one problem without a group, from the start at 0, and the certificate of its point.
template <class Rows> class SmallAscent {
 public:
  SmallAscent(const Rows& rows, const RowLoops<Rows>& loops, const DataRows& features, const BoxProblem& problem,
              const SmallLinearArrays& arrays, const double* squared_norms, const SmallAscentOptions& options)
      : rows_(rows),
        loops_(loops),
        options_(options),
        n_(problem.size()),
        squared_norms_(squared_norms),
        slack_(arrays.slack.data()),
        residual_(arrays.residual.data()),
        order_(n_),
        decisions_(n_),
        state_{arrays.dual.data(),
               arrays.weights.data(),
               problem.linear.data(),
               problem.lower.data(),
               problem.upper.data(),
               problem.ridge.data(),
               squared_norms,
               features.at(),
               nullptr,
               nullptr,
               nullptr,
               nullptr,
               features.width,
               options.constant,
               kUnlimited,
               kUnlimited,
               1.0} {
    active_ = n_;
    std::fill_n(state_.dual, n_, 0.0);
    std::fill_n(state_.weights, state_.width + 1, 0.0);
    for (std::int64_t i = 0; i < n_; ++i) {
      order_[i] = i;
      const std::int64_t row = state_.rows ? state_.rows[i] : i;
      longest_ = std::max(longest_, stored_in(rows, row));
    }
  }

  SmallLinearResult solve() {
    std::int64_t next = kPassesBeforeEvaluation;
    for (;;) {
      const bool limited = out_.outcome.steps >= options_.max_passes;
      if (!limited) take_pass();
      const double left = limited ? 0.0 : remaining();
      const bool abandoned = left > options_.max_remaining;
      if (!limited && !abandoned && out_.outcome.steps < next && !may_have_converged()) continue;
      next = out_.outcome.steps + std::max(kPassesBeforeEvaluation, out_.outcome.steps);
      if (evaluate() || limited || abandoned) return out_;
    }
  }

 private:
  void take_pass() {
    shuffle(order_.data(), active_, static_cast<std::uint64_t>(out_.outcome.steps));
    const AscentResult result = loops_.ascend(rows_, state_, order_.data(), 0, active_);
    active_ = result.remaining;
    state_.shrink_above = result.highest > 0.0 ? result.highest : kUnlimited;
    state_.shrink_below = result.lowest < 0.0 ? -result.lowest : kUnlimited;
    first_ = before_;
    before_ = now_;
    now_ = result.gap;
    ++out_.outcome.steps;
    value_ = 0.0;
    for (std::int64_t i = 0; i < n_; ++i)
      value_ += state_.dual[i] * (state_.linear[i] - 0.5 * state_.ridge[i] * state_.dual[i]);
    for (std::int64_t j = 0; j <= state_.width; ++j) value_ -= 0.5 * state_.weights[j] * state_.weights[j];
  }

  // The passes that are left, extrapolated from the gaps of the last three; 0 as long as there are fewer.
  double remaining() const {
    if (!(first_ < kUnlimited)) return 0.0;
    const double target = std::max(options_.relative_gap * std::fabs(value_ + now_), options_.gap);
    if (now_ <= target) return 0.0;
    if (!(now_ > 0.0 && now_ < first_ && target > 0.0)) return kUnlimited;
    return 2.0 * std::log(target / now_) / std::log(now_ / first_);
  }

  // Whether the gap extrapolated from the last passes is within the tolerance.
  bool may_have_converged() const {
    const double gap = now_ * (before_ > 0.0 && before_ < kUnlimited ? std::min(1.0, now_ / before_) : 1.0);
    return accepts(value_ + gap, value_, gap);
  }

  bool accepts(double primal, double dual, double gap) const {
    const double size = std::max(std::fabs(primal), std::fabs(dual));
    return gap <= options_.relative_gap * size || (gap <= options_.gap && size <= options_.gap);
  }

  // Certify the dual vector with its own weights, computed anew; if the gap is too large, all variables that may move
  // take part again.
  bool evaluate() {
    AscentState& s = state_;
    ++out_.outcome.rounds;
    std::fill_n(s.weights, s.width, 0.0);
    loops_.combine(rows_, s.rows, 0, n_, s.dual, s.weights);
    double sum = 0.0;
    for (std::int64_t i = 0; i < n_; ++i) sum += s.dual[i];
    s.weights[s.width] = s.constant * sum;
    loops_.decisions(rows_, s.rows, 0, n_, s.weights, decisions_.data());
    for (double& value : decisions_) value += s.constant * s.weights[s.width];
    out_.certificate = level.linear->certify({n_, s.width, longest_, s.linear, s.lower, s.upper, s.ridge, s.dual,
                                              s.weights, s.weights, decisions_.data(), decisions_.data(),
                                              squared_norms_, s.constant, false, slack_, residual_, nullptr});
    const LinearCertificate& found = out_.certificate;
    out_.outcome.converged = found.conclusive && accepts(found.primal, found.dual, found.gap);
    if (out_.outcome.converged) return true;
    active_ = 0;
    for (std::int64_t i = 0; i < n_; ++i) {
      const double gradient = s.linear[i] - decisions_[i] - s.ridge[i] * s.dual[i];
      const bool shrunk = (s.dual[i] >= s.upper[i] && gradient > s.shrink_above) ||
                          (s.dual[i] <= s.lower[i] && gradient < -s.shrink_below);
      if (!shrunk) order_[active_++] = i;
    }
    return false;
  }

  const Rows& rows_;
  const RowLoops<Rows>& loops_;
  const SmallAscentOptions& options_;
  const std::int64_t n_;
  const double* squared_norms_;
  double *slack_, *residual_;
  std::vector<std::int64_t> order_;  // the active variables first
  std::vector<double> decisions_;
  AscentState state_;
  std::int64_t active_ = 0, longest_ = 0;
  double first_ = kUnlimited, before_ = kUnlimited, now_ = kUnlimited;  // gaps of the last passes
  double value_ = 0.0;                                                  // the dual objective
  SmallLinearResult out_;
};

}  // namespace maxmargin
