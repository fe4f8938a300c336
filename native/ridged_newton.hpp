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
#include <numeric>
#include <utility>
#include <vector>

#include "linear_loops.hpp"
#include "parallel.hpp"
#include "shuffle.hpp"

namespace maxmargin {

// As in semismooth_newton.py, smoothed_primal.py and newton_equations.py, where they are explained.
constexpr double kAcceptedSlope = 0.25, kShortLength = 0.35, kFinalSlope = 1e-2;
constexpr int kMaxShortLengths = 6, kMaxRidgedSteps = 40, kMaxLengths = 60;
constexpr double kMaxChangedRows = 0.5;
constexpr int kMaxMomentUpdates = 8;

// A sample has a sixteenth of the rows, at least so many and so many for each weight, and is used for so many times
// more.
constexpr std::int64_t kSampledOneIn = 16, kLeastSample = 500, kLeastSamplePerWeight = 10, kLeastSampleRatio = 12;
constexpr double kSampleGap = 1e-2;  // the relative gap to which it is solved

constexpr double kBalanced = 1e-14;  // the sum of responses relative to that of their magnitudes at the best offset

constexpr std::int64_t kRowsInCache = 128;      // for the second product
constexpr std::int64_t kRowsForThreads = 1024;  // fewer are not worth a thread
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct RidgedNewtonOptions {
  double constant;  // the value of one more feature that all rows have
  double relative_gap, gap;
  std::int64_t max_steps;
  double max_seconds;  // after which the problem is returned unfinished
  int threads;
};

// The numbers of a problem. Variable k has row k mod rows_count; `row` has the row of each, null for all in order.
struct RidgedProblem {
  std::int64_t variables, rows_count, width;
  const std::int64_t* row;
  const double *linear, *lower, *upper, *ridge;
  bool grouped;  // whether the variables must have the sum 0
};

template <class T> constexpr bool is_dense(const DenseRows<T>&) { return true; }
template <class T, class I> constexpr bool is_dense(const CompressedRows<T, I>&) { return false; }

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
        counted_sides_(m_),
        origin_(d_),
        moments_(d_),
        square_(d_ * d_),
        matrix_((d_ + 1) * (d_ + 1)),
        shifted_(is_dense(rows) && problem.grouped),
        moment_buffer_(is_dense(rows) ? kMomentRows * (d_ + kMomentPadding) : 0) {
    for (std::vector<double>* of_weights :
         {&weights_, &old_weights_, &dual_weights_, &old_dual_weights_, &gradient_, &direction_, &product_})
      of_weights->resize(d_ + 1);
    unit_ = *std::min_element(p_.ridge, p_.ridge + n_);
    equal_ridges_ = std::all_of(p_.ridge, p_.ridge + n_, [&](double ridge) { return ridge == unit_; });
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
      if (k < count) row[k] = row_of(from);
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

  std::int64_t row_of(std::int64_t i) const { return p_.row ? p_.row[i] : i; }

  // Call add(begin, end, part, sums) with zeros of `size` for each part, and add them up in out.
  template <class Add> void sum_parts(std::int64_t size, double* out, Add add) {
    std::vector<double> others(static_cast<std::size_t>(parts_ - 1) * size);
    std::fill_n(out, size, 0.0);
    in_parts(parts_, m_, [&](std::int64_t begin, std::int64_t end, int part) {
      add(begin, end, part, part ? others.data() + (part - 1) * size : out);
    });
    for (int part = 1; part < parts_; ++part)
      for (std::int64_t j = 0; j < size; ++j) out[j] += others[(part - 1) * size + j];
  }

  // Slacks, responses and sides at the current weights and offset. Decision values are computed, or known already; if
  // `combine`, the weights of the responses are computed as well.
  void respond(bool decide, bool combine = false) {
    std::vector<ResponseSums> sums(parts_);
    std::vector<double> totals(parts_);
    const double shift = o_.constant * weights_[d_] + offset_;
    sum_parts(combine ? d_ : 0, dual_weights_.data(), [&](std::int64_t begin, std::int64_t end, int part, double* own) {
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

  // Variables k + first … k + last of rows first … last. The side has two bits for each variable: off its lower and off
  // its upper bound.
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

  // Call use(rows of the data, numbers, how many) with those of the rows begin … end whose side is not that in the
  // moments and whose number is positive, or not zero if `any`, some at a time.
  template <class Number, class Use>
  void for_changed(std::int64_t begin, std::int64_t end, bool any, Number number, Use use) {
    constexpr std::int64_t kSides = 32;  // are compared at a time
    std::int64_t chosen[kMomentRows], count = 0;
    double numbers[kMomentRows];
    for (std::int64_t first = begin; first < end; first += kSides) {
      const std::int64_t last = std::min(first + kSides, end);
      if (std::equal(sides_.data() + first, sides_.data() + last, counted_sides_.data() + first)) continue;
      for (std::int64_t i = first; i < last; ++i) {
        const double value = sides_[i] != counted_sides_[i] ? number(i) : 0.0;
        chosen[count] = row_of(i);
        numbers[count] = value;
        count += any ? value != 0.0 : value > 0.0;
        if (count < kMomentRows) continue;
        use(chosen, numbers, count);
        count = 0;
      }
    }
    if (count) use(chosen, numbers, count);
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
    update_moments();
    double offset_step = 0.0;
    if (!solve_equations(offset_step)) return false;
    const double initial = slope_along(offset_step);
    if (!(initial < 0.0)) return false;
    multiply_moments(offset_step);
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
      for (std::int64_t k = i, side = counted_sides_[i]; k < n_; k += m_, side >>= 2)
        change -= (side & 3) == 3   ? (p_.linear[k] - decisions_[i]) / p_.ridge[k]
                  : (side & 3) == 1 ? p_.upper[k]
                                    : p_.lower[k];
      return change;
    };
    sum_parts(d_, dual_weights_.data(), [&](std::int64_t begin, std::int64_t end, int, double* own) {
      for_changed(begin, end, true, corrected,
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

  // ---- the equations --------------------------------------------------------------------------------------------

  // The factor of a row with this side: unit / ridge of its free variable, 0 without one.
  double factor_of(std::int64_t i, int side) const {
    if (equal_ridges_) return int{(side & 3) == 3} + int{side >> 2 == 3};
    double factor = 0.0;
    for (std::int64_t k = i; k < n_; k += m_, side >>= 2)
      if ((side & 3) == 3) factor += unit_ / p_.ridge[k];
    return factor;
  }

  // Bring the moments of the rows about the origin up to date with the free variables.
  void update_moments() {
    if (++updates_ > kMaxMomentUpdates && !accurate_) evaluate(false);  // rounding errors accumulate in both
    std::int64_t changed = 0;
    for (std::int64_t i = 0; i < m_; ++i) changed += sides_[i] != counted_sides_[i];
    if (updates_ > kMaxMomentUpdates || static_cast<double>(changed) > kMaxChangedRows * total_) {
      updates_ = 0;
      total_ = 0.0;
      std::fill(moments_.begin(), moments_.end(), 0.0);
      std::fill(square_.begin(), square_.end(), 0.0);
      std::fill(counted_sides_.begin(), counted_sides_.end(), std::uint8_t{0});
      if (shifted_) centre_origin();
    }
    count_rows(1.0);
    count_rows(-1.0);
    counted_sides_ = sides_;
  }

  double grown(std::int64_t i) const { return factor_of(i, sides_[i]) - factor_of(i, counted_sides_[i]); }

  // The origin is the mean of the free rows.
  void centre_origin() {
    std::vector<double> sums(d_ + 1);
    sum_parts(d_ + 1, sums.data(), [&](std::int64_t begin, std::int64_t end, int, double* own) {
      for_changed(
          begin, end, false, [&](std::int64_t i) { return grown(i); },
          [&](const std::int64_t* rows, const double* numbers, std::int64_t count) {
            loops_.combine(rows_, rows, 0, count, numbers, own);
            own[d_] = std::accumulate(numbers, numbers + count, own[d_]);
          });
    });
    for (std::int64_t j = 0; j < d_; ++j) origin_[j] = sums[d_] > 0.0 ? sums[j] / sums[d_] : 0.0;
  }

  // Add the moments of the rows whose factor has grown, or subtract those of the rows whose factor has shrunk.
  void count_rows(double sign) {
    const std::int64_t area = d_ * d_;
    std::vector<double> sums(area + d_ + 1);
    sum_parts(area + d_ + 1, sums.data(), [&](std::int64_t begin, std::int64_t end, int part, double* own) {
      std::vector<double> others(part ? moment_buffer_.size() : 0);
      double* buffer = part ? others.data() : moment_buffer_.data();
      for_changed(
          begin, end, false, [&](std::int64_t i) { return sign * grown(i); },
          [&](const std::int64_t* rows, const double* numbers, std::int64_t count) {
            loops_.add_moments(rows_, rows, 0, count, numbers, shifted_ ? origin_.data() : nullptr, buffer, own + area,
                               own, d_);
            own[area + d_] = std::accumulate(numbers, numbers + count, own[area + d_]);
          });
    });
    if (sums[area + d_] == 0.0) return;
    for (std::int64_t j = 0; j < area; ++j) square_[j] += sign * sums[j];
    for (std::int64_t j = 0; j < d_; ++j) moments_[j] += sign * sums[area + j];
    total_ += sign * sums[area + d_];
  }

  // Solve the equations of newton_equations.py for the direction and the step of the offset.
  bool solve_equations(double& offset_step) {
    const std::int64_t size = d_ + 1;
    const double c = o_.constant;
    const bool moves = p_.grouped && total_ > 0.0;
    if (p_.grouped && !moves && sum_ != 0.0) return false;
    for (std::int64_t j = 0; j < d_; ++j) {
      double* line = matrix_.data() + j * size;
      const double mean = moves ? moments_[j] / total_ : 0.0;
      for (std::int64_t k = 0; k <= j; ++k) line[k] = (square_[j * d_ + k] - mean * moments_[k]) / unit_;
      line[j] += 1.0;
      matrix_[d_ * size + j] = moves ? 0.0 : c * moments_[j] / unit_;
      direction_[j] = -gradient_[j] - (moves ? (origin_[j] + mean) * sum_ : 0.0);
    }
    matrix_[d_ * size + d_] = 1.0 + (moves ? 0.0 : c * c * total_ / unit_);
    direction_[d_] = -gradient_[d_] - (moves ? c * sum_ : 0.0);
    if (!linear_.solve_positive_definite(matrix_.data(), size, direction_.data())) return false;
    if (moves) {
      offset_step = sum_ * unit_ / total_ - c * direction_[d_];
      for (std::int64_t j = 0; j < d_; ++j) offset_step -= (origin_[j] + moments_[j] / total_) * direction_[j];
    }
    return true;
  }

  // product = FᵀD (F d + e), without that of the constant feature
  void multiply_moments(double offset_step) {
    double shift = offset_step + o_.constant * direction_[d_], along = 0.0;
    for (std::int64_t j = 0; j < d_; ++j) {
      shift += origin_[j] * direction_[j];
      along += moments_[j] * direction_[j];
    }
    const double sum = along + total_ * shift;
    for (std::int64_t j = 0; j < d_; ++j) product_[j] = moments_[j] * shift + origin_[j] * sum;
    for (std::int64_t j = 0; j < d_; ++j) {
      const double* line = square_.data() + j * d_;
      double own = line[j] * direction_[j];
      for (std::int64_t k = 0; k < j; ++k) {
        own += line[k] * direction_[k];
        product_[k] += line[k] * direction_[j];
      }
      product_[j] += own;
    }
    for (std::int64_t j = 0; j < d_; ++j) product_[j] /= unit_;
  }

  const Rows& rows_;
  const RowLoops<Rows>& loops_;
  const LinearLoops& linear_;
  const RidgedProblem p_;
  const RidgedNewtonOptions o_;
  const std::int64_t n_, m_, d_;
  const int parts_;  // of sums over rows
  const std::chrono::steady_clock::time_point begun_;
  double *const response_, *const slack_;                   // of variables
  double* const change_;                                    // of rows: of their decision values in a step
  std::vector<double> decisions_, old_decisions_;           // of rows, with the offset
  std::vector<double> sums_of_rows_;                        // of responses, where a row has two variables
  const double* const sums_;                                // of the responses of each row
  std::vector<std::uint8_t> sides_, counted_sides_;         // of rows: now, and in the moments
  std::vector<double> origin_, moments_, square_, matrix_;  // of the free rows about the origin
  const bool shifted_;                                      // whether the origin is the mean of the free rows
  std::vector<double> moment_buffer_;                       // for dense rows
  std::vector<double> weights_, old_weights_, dual_weights_, old_dual_weights_, gradient_, direction_, product_;
  double unit_ = 1.0;  // the least ridge; moments are in units of its inverse
  bool equal_ridges_ = true;
  double offset_ = 0.0, sum_ = 0.0, total_ = 0.0, primal_ = 0.0, dual_ = 0.0;  // the sum of responses, of factors
  ResponseSums of_responses_;
  int short_steps_ = 0, updates_ = kMaxMomentUpdates;  // the first moments are computed from all rows
  bool fresh_decisions_ = false;                       // whether decision values are products, not interpolated
  bool accurate_ = true;                               // whether the weights of the responses are
  SmallLinearOutcome out_;
};

}  // namespace maxmargin
