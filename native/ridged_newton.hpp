// The semismooth Newton method of solvers/linear/semismooth_newton.py for squared losses, from start to end in one
// call: every variable has a ridge, so that the primal is piecewise quadratic and needs no smoothing.
//
// A step costs one product of the rows with the weights, by whose sign changes everything else is updated: with H =
// FᵀDF of the free variables, the weights Fᵀβ of the responses change by −H d and by the rows whose side of a kink has
// changed. The same rows change H. All products are computed anew before a point is accepted. With many rows the method
// starts at the optimum of a sample of them, itself found so.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "linear_loops.hpp"
#include "parallel.hpp"
#include "ridged_moments.hpp"
#include "shuffle.hpp"

namespace maxmargin {

// As in semismooth_newton.py and smoothed_primal.py, where they are explained.
constexpr double kAcceptedSlope = 0.25, kShortLength = 0.35, kFinalSlope = 1e-2;
constexpr int kMaxShortLengths = 6, kMaxRidgedSteps = 40, kMaxLengths = 60;
// A sample has a sixteenth of the rows, at least so many and so many for each weight, and is used for so many times
// more.
constexpr std::int64_t kSampledOneIn = 16, kLeastSample = 500, kLeastSamplePerWeight = 10, kLeastSampleRatio = 12;
constexpr double kSampleGap = 1e-2;  // the relative gap to which it is solved
constexpr double kBalanced = 1e-14;  // the sum of responses relative to that of their magnitudes at the best offset
constexpr std::int64_t kRowsInCache = 128;  // for the second product
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct RidgedNewtonOptions {
  double constant;  // the value of one more feature that all rows have
  double relative_gap, gap;
  std::int64_t max_steps;
  double max_seconds;  // after which the problem is returned unfinished
  int threads;
};

template <class Rows> class RidgedNewton {
 public:
  // `dual` is for the responses, `slack` for the slacks of the variables, `buffer` for numbers of each row.
  RidgedNewton(const Rows& rows, const RowLoops<Rows>& loops, const LinearLoops& linear, const RidgedProblem& problem,
               const RidgedNewtonOptions& options, double* dual, double* slack, double* buffer)
      : rows_(rows),
        loops_(loops),
        linear_(linear),
        p_(problem),
        o_(options),
        n_(problem.variables),
        m_(problem.rows_count),
        d_(problem.width),
        parts_(m_ < kRowsForThreads ? 1 : options.threads),
        begun_(std::chrono::steady_clock::now()),
        response_(dual),
        slack_(slack),
        change_(buffer),
        decisions_(m_),
        old_decisions_(m_),
        sums_of_rows_(n_ > m_ ? m_ : 0),
        sums_(n_ > m_ ? sums_of_rows_.data() : dual),
        sides_(m_),
        moments_(rows, loops, p_, options.constant, parts_) {
    for (std::vector<double>* of_weights :
         {&weights_, &old_weights_, &dual_weights_, &old_dual_weights_, &gradient_, &direction_, &product_})
      of_weights->resize(d_ + 1);
  }

  // Not converged: after many or short steps, or the limits. Then the dual vector is feasible, and no worse than 0.
  SmallLinearOutcome solve() {
    out_.rounds = 1;
    evaluate(start());
    int steps = 0;
    while (!converged()) {
      const bool limited = out_.steps >= o_.max_steps || late();
      if (!limited && short_steps_ < kMaxShortLengths && steps++ < kMaxRidgedSteps && step()) continue;
      if (p_.grouped) move_to_best_offset();
      evaluate(false);
      if (dual_ < 0.0) {
        std::fill_n(response_, n_, 0.0);
        std::fill(dual_weights_.begin(), dual_weights_.end(), 0.0);
      }
      break;
    }
    return out_;
  }

  const std::vector<double>& weights() const { return weights_; }
  const std::vector<double>& dual_weights() const { return dual_weights_; }

  // The decision values of the weights without the offset, and those of the weights of the dual vector, of each row.
  std::pair<const double*, const double*> products() {
    if (p_.grouped || !fresh_decisions_) decide(weights_, decisions_);
    decide(dual_weights_, old_decisions_);
    return {decisions_.data(), old_decisions_.data()};
  }

 private:
  bool late() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count() > o_.max_seconds;
  }

  // ---- the start ------------------------------------------------------------------------------------------------

  // Set the first weights and offset; returns whether decision values are to be computed.
  bool start() {
    const std::int64_t least = std::max(kLeastSample, kLeastSamplePerWeight * (d_ + 1));
    if (m_ >= kLeastSampleRatio * least && o_.max_steps > 0) {
      start_at_sample(std::max(least, m_ / kSampledOneIn));
      return true;
    }
    if (p_.grouped) {
      respond(false);
      move_to_best_offset();
    }
    return false;
  }

  // One row of each of so many runs of equal length, at a random place in it.
  std::vector<std::int64_t> sampled(std::int64_t count) const {
    std::vector<std::int64_t> chosen(count);
    std::uint64_t state = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t begin = m_ * k / count, end = m_ * (k + 1) / count;
      chosen[k] = begin + static_cast<std::int64_t>(random_below(state, static_cast<std::uint64_t>(end - begin)));
    }
    return chosen;
  }

  void start_at_sample(std::int64_t count) {
    const std::vector<std::int64_t> chosen = sampled(count);
    const double scale = static_cast<double>(m_) / static_cast<double>(count);
    const std::int64_t copies = n_ / m_, variables = copies * count;
    std::vector<std::int64_t> row(count);
    std::vector<double> numbers(7 * variables);
    double *linear = numbers.data(), *lower = linear + variables, *upper = lower + variables,
           *ridge = upper + variables, *dual = ridge + variables, *slack = dual + variables,
           *buffer = slack + variables;
    for (std::int64_t k = 0; k < variables; ++k) {
      const std::int64_t from = k / count * m_ + chosen[k % count];
      if (k < count) row[k] = p_.row_of(from);
      linear[k] = p_.linear[from];
      lower[k] = scale * p_.lower[from];
      upper[k] = scale * p_.upper[from];
      ridge[k] = p_.ridge[from] / scale;
    }
    RidgedNewtonOptions options = o_;
    options.relative_gap = std::max(kSampleGap, o_.relative_gap);
    options.gap = 0.0;
    RidgedNewton of_sample(rows_, loops_, linear_,
                           {variables, count, d_, row.data(), linear, lower, upper, ridge, p_.grouped}, options, dual,
                           slack, buffer);
    out_.steps = of_sample.solve().steps;
    weights_ = of_sample.weights_;
    offset_ = of_sample.offset_;
  }

  // ---- passes over the rows -------------------------------------------------------------------------------------

  // Slacks, responses and sides at the current weights and offset. Decision values are computed, or known already; if
  // `combine`, the weights of the responses are computed as well.
  void respond(bool decide, bool combine = false) {
    std::vector<ResponseSums> sums(parts_);
    std::vector<double> totals(parts_);
    const double shift = o_.constant * weights_[d_] + offset_;
    sum_parts(parts_, m_, combine ? d_ : 0, dual_weights_.data(),
              [&](std::int64_t begin, std::int64_t end, int part, double* own) {
                double total = 0.0;
                for (std::int64_t first = begin; first < end; first += kRowsInCache) {
                  const std::int64_t last = std::min(first + kRowsInCache, end);
                  if (decide) {
                    loops_.decisions(rows_, p_.row, first, last, weights_.data(), decisions_.data());
                    for (std::int64_t i = first; i < last; ++i) decisions_[i] += shift;
                  }
                  for (std::int64_t k = 0; k < n_; k += m_) respond_block(k, first, last, sums[part]);
                  for (std::int64_t i = first; i < last; ++i) total += sums_[i];
                  if (combine) loops_.combine(rows_, p_.row, first, last, sums_, own);
                }
                totals[part] = total;
              });
    of_responses_ = {};
    sum_ = 0.0;
    for (int part = 0; part < parts_; ++part) {
      of_responses_.loss += sums[part].loss;
      of_responses_.linear += sums[part].linear;
      of_responses_.ridge += sums[part].ridge;
      of_responses_.absolute_sum += sums[part].absolute_sum;
      sum_ += totals[part];
    }
    if (decide) fresh_decisions_ = true;
  }

  // Variables k + first … k + last of rows first … last.
  void respond_block(std::int64_t k, std::int64_t first, std::int64_t last, ResponseSums& sums) {
    const double *linear = p_.linear + k, *lower = p_.lower + k, *upper = p_.upper + k;
    double* response = response_ + k;
    linear_.respond({linear, lower, upper, p_.ridge + k, linear, nullptr, nullptr, 0.0, slack_ + k, response},
                    decisions_.data(), first, last, sums, nullptr);
    for (std::int64_t i = first; i < last; ++i) {
      const int side = int{response[i] > lower[i]} | int{response[i] < upper[i]} << 1;
      sides_[i] = static_cast<std::uint8_t>(k ? sides_[i] | side << 2 : side);
    }
    if (n_ == m_) return;
    for (std::int64_t i = first; i < last; ++i) sums_of_rows_[i] = (k ? sums_of_rows_[i] : 0.0) + response[i];
  }

  // out = F w of each row
  void decide(const std::vector<double>& weights, std::vector<double>& out) {
    in_parts(parts_, m_, [&](std::int64_t begin, std::int64_t end, int) {
      loops_.decisions(rows_, p_.row, begin, end, weights.data(), out.data());
      for (std::int64_t i = begin; i < end; ++i) out[i] += o_.constant * weights[d_];
    });
  }

  // ---- objective values -----------------------------------------------------------------------------------------

  // Responses, gradient and objective values at the current weights and offset, all computed anew.
  void evaluate(bool decide) {
    respond(decide, true);
    accurate_ = true;
    finish_evaluation();
  }

  void finish_evaluation() {
    double norm = 0.0, dual_norm = 0.0;
    dual_weights_[d_] = o_.constant * sum_;
    for (std::int64_t j = 0; j <= d_; ++j) {
      gradient_[j] = weights_[j] - dual_weights_[j];
      norm += weights_[j] * weights_[j];
      dual_norm += dual_weights_[j] * dual_weights_[j];
    }
    primal_ = 0.5 * norm + of_responses_.loss;
    const double repair_cost = p_.grouped ? std::fabs(sum_ * offset_) : 0.0;
    dual_ = of_responses_.linear - 0.5 * of_responses_.ridge - 0.5 * dual_norm - repair_cost;
  }

  bool accepts(double primal, double dual) const {
    const double size = std::max(std::fabs(primal), std::fabs(dual)), gap = primal - dual;
    return gap <= o_.relative_gap * size || (gap <= o_.gap && size <= o_.gap);
  }

  // Whether the gap is within the tolerance with products computed anew and, in a group, at the best offset.
  bool converged() {
    if (!accepts(dual_ + 0.5 * (primal_ - dual_), dual_)) return false;
    if (p_.grouped) move_to_best_offset();
    if (p_.grouped || !accurate_) evaluate(false);
    out_.converged = accepts(primal_, dual_);
    return out_.converged;
  }

  // ---- steps ----------------------------------------------------------------------------------------------------

  // A Newton step with a line search; false if rounding errors prevent it.
  bool step() {
    ++out_.steps;
    if (moments_.due() && !accurate_) evaluate(false);  // rounding errors accumulate in both
    moments_.update(sides_);
    double offset_step = 0.0;
    if (!moments_.solve(linear_, gradient_, sum_, direction_, offset_step)) return false;
    const double initial = slope_along(offset_step);
    if (!(initial < 0.0)) return false;
    moments_.multiply(direction_, offset_step, product_);
    decisions_.swap(old_decisions_);
    weights_.swap(old_weights_);
    dual_weights_.swap(old_dual_weights_);
    const double old_offset = offset_;
    offset_ += offset_step;
    for (std::int64_t j = 0; j <= d_; ++j) weights_[j] = old_weights_[j] + direction_[j];
    respond(true);
    correct_dual_weights(1.0);
    if (std::fabs(slope_along(offset_step)) <= -kAcceptedSlope * initial) return true;
    for (std::int64_t i = 0; i < m_; ++i) change_[i] = decisions_[i] - old_decisions_[i];
    for (std::int64_t k = 0; k < n_; ++k) slack_[k] += change_[k < m_ ? k : k - m_];
    double along = 0.0, norm = 0.0;
    for (std::int64_t j = 0; j <= d_; ++j) {
      along += old_weights_[j] * direction_[j];
      norm += direction_[j] * direction_[j];
    }
    const double length = minimise_along(change_, along, norm, kFinalSlope);
    short_steps_ += length < kShortLength;
    for (std::int64_t j = 0; j <= d_; ++j) weights_[j] = old_weights_[j] + length * direction_[j];
    for (std::int64_t i = 0; i < m_; ++i) decisions_[i] = old_decisions_[i] + length * change_[i];
    offset_ = old_offset + length * offset_step;
    respond(false);
    correct_dual_weights(length);
    fresh_decisions_ = false;
    return true;
  }

  double slope_along(double offset_step) const {
    double slope = -sum_ * offset_step;
    for (std::int64_t j = 0; j <= d_; ++j) slope += gradient_[j] * direction_[j];
    return slope;
  }

  // The weights of the responses after a step of this length: by the moments for variables that stay free or at their
  // bound, and by their rows for the others.
  void correct_dual_weights(double length) {
    const auto corrected = [&](std::int64_t i) {
      double change = sums_[i];
      for (std::int64_t k = i, side = moments_.side(i); k < n_; k += m_, side >>= 2)
        change -= (side & 3) == 3   ? (p_.linear[k] - decisions_[i]) / p_.ridge[k]
                  : (side & 3) == 1 ? p_.upper[k]
                                    : p_.lower[k];
      return change;
    };
    sum_parts(parts_, m_, d_, dual_weights_.data(), [&](std::int64_t begin, std::int64_t end, int, double* own) {
      moments_.for_changed(sides_, begin, end, true, corrected,
                           [&](const std::int64_t* rows, const double* numbers, std::int64_t count) {
                             loops_.combine(rows_, rows, 0, count, numbers, own);
                           });
    });
    for (std::int64_t j = 0; j < d_; ++j) dual_weights_[j] += old_dual_weights_[j] - length * product_[j];
    accurate_ = false;
    finish_evaluation();
  }

  // The length of a step from the slacks at which the slope is nearly 0, by safeguarded Newton steps. A change of null
  // is 1 everywhere; then the length may be negative.
  double minimise_along(const double* change, double along, double norm, double tolerance) {
    const auto derivatives_at = [&](double t, double& curvature) {
      std::vector<Derivatives> found(parts_);
      in_parts(parts_, m_, [&](std::int64_t begin, std::int64_t end, int part) {
        for (std::int64_t k = 0; k < n_; k += m_) {
          const SlackArrays variables{slack_ + k, p_.lower + k, p_.upper + k, p_.ridge + k};
          const Derivatives some = linear_.derivatives(variables, change, t, begin, end);
          found[part].slope += some.slope;
          found[part].curvature += some.curvature;
        }
      });
      double slope = along + t * norm;
      curvature = norm;
      for (const Derivatives& some : found) {
        slope -= some.slope;
        curvature += some.curvature;
      }
      return slope;
    };
    double curvature = 0.0, low = change ? 0.0 : -kNoLimit, high = kNoLimit, length = 1.0;
    const double at_start = derivatives_at(0.0, curvature), target = tolerance * std::fabs(at_start);
    if (change ? !(at_start < 0.0) : at_start == 0.0) return 0.0;
    if (!change) length = curvature > 0.0 ? -at_start / curvature : 0.0;
    for (int k = 0; k < kMaxLengths; ++k) {
      const double slope = derivatives_at(length, curvature);
      if (std::fabs(slope) <= target) break;
      (slope < 0.0 ? low : high) = length;
      const double newton = curvature > 0.0 ? length - slope / curvature : kNoLimit;
      const double most = std::min(high, change ? 16.0 * std::max(length, 1e-3) : kNoLimit);
      const bool bracketed = low > -kNoLimit && high < kNoLimit;
      if (newton == length) break;
      if (newton > low && newton < most && (k % 4 != 3 || (!change && !bracketed)))
        length = newton;
      else if (bracketed)
        length = 0.5 * (low + high);
      else
        length = 4.0 * length;
    }
    return length;
  }

  // The offset of least loss for the weights: the responses then have the sum 0.
  void move_to_best_offset() {
    if (!(std::fabs(sum_) > kBalanced * of_responses_.absolute_sum)) return;
    const double tolerance = kBalanced * of_responses_.absolute_sum / std::fabs(sum_);
    const double change = minimise_along(nullptr, 0.0, 0.0, tolerance);
    offset_ += change;
    for (double& value : decisions_) value += change;
    fresh_decisions_ = false;
  }

  const Rows& rows_;
  const RowLoops<Rows>& loops_;
  const LinearLoops& linear_;
  const RidgedProblem p_;
  const RidgedNewtonOptions o_;
  const std::int64_t n_, m_, d_;
  const int parts_;  // of sums over rows
  const std::chrono::steady_clock::time_point begun_;
  double *const response_, *const slack_;          // of variables
  double* const change_;                           // of rows: of their decision values in a step
  std::vector<double> decisions_, old_decisions_;  // of rows, with the offset
  std::vector<double> sums_of_rows_;               // of responses, where a row has two variables
  const double* const sums_;                       // of the responses of each row
  Sides sides_;
  RidgedMoments<Rows> moments_;
  std::vector<double> weights_, old_weights_, dual_weights_, old_dual_weights_, gradient_, direction_, product_;
  double offset_ = 0.0, sum_ = 0.0, primal_ = 0.0, dual_ = 0.0;  // the sum of the responses
  ResponseSums of_responses_;
  int short_steps_ = 0;
  bool fresh_decisions_ = false;  // whether decision values are products, not interpolated
  bool accurate_ = true;          // whether the weights of the responses are
  SmallLinearOutcome out_;
};

}  // namespace maxmargin
