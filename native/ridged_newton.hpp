// The semismooth Newton method of solvers/linear/semismooth_newton.py for squared losses, from start to end in one call:
// every variable has a ridge, so that the primal is piecewise quadratic and needs no smoothing.
//
// A step costs one product of the rows with the weights, by whose sign changes everything else is updated: with H = FᵀDF
// of the free variables, the weights Fᵀβ of the responses change by −H d and by the rows whose side of a kink has
// changed. The same rows change H. All products are computed anew before a point is accepted. With many rows the method
// starts at the optimum of a sample of them, itself found so.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "data_rows.hpp"
#include "small_ascent.hpp"

namespace maxmargin {

// As in semismooth_newton.py, smoothed_primal.py and newton_equations.py, where they are explained.
constexpr double kAcceptedSlope = 0.25, kShortLength = 0.35, kFinalSlope = 1e-2;
constexpr int kMaxShortLengths = 6, kMaxRidgedSteps = 40, kMaxLengths = 60;
constexpr double kMaxChangedRows = 0.5;
constexpr int kMaxMomentUpdates = 8;

// A sample has a sixteenth of the rows, at least so many and so many for each weight, and is used for so many times
// more.
constexpr std::int64_t kSampledOneIn = 16, kLeastSample = 500, kLeastSamplePerWeight = 10, kLeastSampleRatio = 4;
constexpr double kSampleGap = 1e-2;  // the relative gap to which it is solved

constexpr double kBalanced = 1e-14;  // the sum of responses relative to that of their magnitudes at the best offset

constexpr std::int64_t kRowsAtOnce = 128;  // are in the cache for the second product

struct RidgedNewtonOptions {
  double constant;  // the value of one more feature that all rows have
  double relative_gap, gap;
  std::int64_t max_steps;
  double max_seconds;  // after which the problem is returned unfinished
  int threads;

  void check() const { require(max_steps >= 0 && threads >= 1, "a limit is malformed"); }
};

// The numbers of a problem. Variable k has row k mod rows_count; `row` has the row of each, null for all in order.
struct RidgedProblem {
  std::int64_t variables, rows_count, width;
  const std::int64_t* row;
  const double *linear, *lower, *upper, *ridge;
  bool grouped;  // whether the variables must have the sum 0
};

template <class Rows> class RidgedNewton {
 public:
  RidgedNewton(const Rows& rows, const RowLoops<Rows>& loops, bool dense, const RidgedProblem& problem,
               const RidgedNewtonOptions& options)
      : rows_(rows),
        loops_(loops),
        dense_(dense),
        p_(problem),
        o_(options),
        n_(problem.variables),
        m_(problem.rows_count),
        d_(problem.width),
        parts_(m_ < 2 * kRowsPerChunk ? 1 : options.threads),
        deadline_(std::chrono::steady_clock::now()) {
    for (std::vector<double>* of_variables : {&slack_, &old_slack_, &response_}) of_variables->resize(n_);
    for (std::vector<double>* of_rows : {&decisions_, &old_decisions_, &sums_, &old_sums_, &counted_, &factors_, &centre_})
      of_rows->resize(m_);
    for (std::vector<double>* of_weights : {&weights_, &old_weights_, &dual_weights_, &old_dual_weights_, &gradient_,
                                            &direction_, &product_})
      of_weights->resize(d_ + 1);
    sides_.resize(m_);
    old_sides_.resize(m_);
    changed_.reserve(m_);
    origin_.resize(d_);
    moments_.resize(d_);
    square_.resize(d_ * d_);
    matrix_.resize((d_ + 1) * (d_ + 1));
    unit_ = *std::min_element(p_.ridge, p_.ridge + n_);
    equal_ridges_ = std::all_of(p_.ridge, p_.ridge + n_, [&](double ridge) { return ridge == unit_; });
  }

  // The responses are written to `dual`. Not converged: after many or short steps, or the limits.
  SmallLinearOutcome solve(double* dual) {
    std::fill_n(dual, n_, 0.0);
    out_.rounds = 1;
    evaluate(start());
    int steps = 0;
    while (!converged(dual)) {
      const bool limited = out_.steps >= o_.max_steps || late();
      if (!limited && short_steps_ < kMaxShortLengths && steps++ < kMaxRidgedSteps && step()) continue;
      if (p_.grouped) {  // a feasible dual vector
        move_to_best_offset();
        evaluate(false);
        std::copy(response_.begin(), response_.end(), dual);
      }
      return out_;
    }
    return out_;
  }

  const std::vector<double>& weights() const { return weights_; }
  double offset() const { return offset_; }

  // The weights of the dual vector, and of each variable the decision values of the weights without the offset, and of
  // the weights of the dual vector: all computed from the rows, not updated.
  void products(const double* dual, double* dual_weights, double* of_weights, double* of_dual) {
    if (out_.converged)
      std::copy(dual_weights_.begin(), dual_weights_.end(), dual_weights);
    else
      combine(dual, dual_weights);
    if (fresh_decisions_ && !p_.grouped)
      copy_to_variables(decisions_.data(), of_weights);
    else
      decide(weights_.data(), of_weights);
    decide(dual_weights, of_dual);
  }

 private:
  bool late() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - deadline_).count() > o_.max_seconds;
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
    std::vector<double> numbers(4 * variables), dual(variables);
    double *linear = numbers.data(), *lower = linear + variables, *upper = lower + variables,
           *ridge = upper + variables;
    for (std::int64_t k = 0; k < variables; ++k) {
      const std::int64_t from = k / count * m_ + chosen[k % count];
      if (k < count) row[k] = p_.row ? p_.row[from] : from;
      linear[k] = p_.linear[from];
      lower[k] = scale * p_.lower[from];
      upper[k] = scale * p_.upper[from];
      ridge[k] = p_.ridge[from] / scale;
    }
    RidgedNewtonOptions options = o_;
    options.relative_gap = std::max(kSampleGap, o_.relative_gap);
    options.gap = 0.0;
    RidgedNewton of_sample(rows_, loops_, dense_,
                           {variables, count, d_, row.data(), linear, lower, upper, ridge, p_.grouped}, options);
    out_.steps = of_sample.solve(dual.data()).steps;
    weights_ = of_sample.weights_;
    offset_ = of_sample.offset_;
  }

  // ---- passes over the rows -------------------------------------------------------------------------------------

  const std::int64_t* row() const { return p_.row; }

  // Slacks, responses and sides at the current weights and offset. Decision values are computed, or known already; if
  // `combine`, the weights of the responses are computed as well.
  void respond(bool decide, bool combine = false) {
    std::vector<ResponseSums> sums(parts_);
    std::vector<double> totals(parts_), others(combine ? static_cast<std::size_t>(parts_ - 1) * d_ : 0);
    if (combine) std::fill_n(dual_weights_.data(), d_ + 1, 0.0);
    const double shift = o_.constant * weights_[d_] + offset_;
    in_parts(parts_, m_, [&](std::int64_t begin, std::int64_t end, int part) {
      double* own = part ? others.data() + (part - 1) * d_ : dual_weights_.data();
      for (std::int64_t first = begin; first < end; first += kRowsAtOnce) {
        const std::int64_t last = std::min(first + kRowsAtOnce, end);
        if (decide) {
          loops_.decisions(rows_, row(), first, last, weights_.data(), decisions_.data());
          for (std::int64_t i = first; i < last; ++i) decisions_[i] += shift;
        }
        for (std::int64_t k = 0; k < n_; k += m_) respond_block(k, first, last, sums[part]);
        for (std::int64_t i = first; i < last; ++i) totals[part] += sums_[i];
        if (combine) loops_.combine(rows_, row(), first, last, sums_.data(), own);
      }
    });
    for (int part = 1; part < parts_ && combine; ++part)
      for (std::int64_t j = 0; j < d_; ++j) dual_weights_[j] += others[(part - 1) * d_ + j];
    of_responses_ = {};
    sum_ = 0.0;
    for (int part = 0; part < parts_; ++part) {
      of_responses_.loss += sums[part].loss;
      of_responses_.linear += sums[part].linear;
      of_responses_.ridge += sums[part].ridge;
      of_responses_.absolute_sum += sums[part].absolute_sum;
      sum_ += totals[part];
    }
    dual_weights_[d_] = o_.constant * sum_;
    if (decide) fresh_decisions_ = true;
  }

  // Variables k + first … k + last of rows first … last. The side has two bits for each variable: off its lower and off
  // its upper bound.
  void respond_block(std::int64_t k, std::int64_t first, std::int64_t last, ResponseSums& sums) {
    const SmoothedProblem variables{p_.linear + k, p_.lower + k,    p_.upper + k,      p_.ridge + k,
                                    centre_.data(), nullptr,         nullptr,           0.0,
                                    slack_.data() + k, response_.data() + k};
    level.linear->respond(variables, decisions_.data(), first, last, sums, nullptr);
    const double *beta = response_.data() + k, *lower = p_.lower + k, *upper = p_.upper + k;
    const int place = k ? 2 : 0;
    for (std::int64_t i = first; i < last; ++i) {
      const int side = (int{beta[i] > lower[i]} | int{beta[i] < upper[i]} << 1) << place;
      sums_[i] = (k ? sums_[i] : 0.0) + beta[i];
      sides_[i] = static_cast<std::uint8_t>((k ? sides_[i] : 0) | side);
    }
  }

  // out = Fᵀb, computed anew.
  void combine(const double* dual, double* out) {
    std::vector<double> others(static_cast<std::size_t>(parts_ - 1) * d_), totals(parts_);
    std::fill_n(out, d_ + 1, 0.0);
    in_parts(parts_, m_, [&](std::int64_t begin, std::int64_t end, int part) {
      for (std::int64_t i = begin; i < end; ++i) {
        sums_[i] = dual[i] + (n_ > m_ ? dual[m_ + i] : 0.0);
        totals[part] += sums_[i];
      }
      loops_.combine(rows_, row(), begin, end, sums_.data(), part ? others.data() + (part - 1) * d_ : out);
    });
    for (int part = 0; part < parts_; ++part) {
      for (std::int64_t j = 0; j < d_ && part; ++j) out[j] += others[(part - 1) * d_ + j];
      out[d_] += o_.constant * totals[part];
    }
  }

  // out = F w of each variable
  void decide(const double* weights, double* out) {
    in_parts(parts_, m_, [&](std::int64_t begin, std::int64_t end, int) {
      loops_.decisions(rows_, row(), begin, end, weights, out);
      for (std::int64_t i = begin; i < end; ++i) out[i] += o_.constant * weights[d_];
    });
    if (n_ > m_) std::copy_n(out, m_, out + m_);
  }

  void copy_to_variables(const double* of_rows, double* out) const {
    for (std::int64_t k = 0; k < n_; k += m_) std::copy_n(of_rows, m_, out + k);
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

  // Whether the gap is within the tolerance with products computed anew and, in a group, at the best offset. Keeps the
  // responses if their dual value is the best so far.
  bool converged(double* dual) {
    if (accepts(dual_ + 0.5 * (primal_ - dual_), dual_)) {
      if (p_.grouped) move_to_best_offset();
      if (p_.grouped || !accurate_) evaluate(false);
      out_.converged = accepts(primal_, dual_);
    }
    if (out_.converged || dual_ > out_.dual) {
      out_.dual = dual_;
      std::copy(response_.begin(), response_.end(), dual);
    }
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
    for (const auto& [now, old] : {std::pair{&decisions_, &old_decisions_}, std::pair{&slack_, &old_slack_},
                                   std::pair{&sums_, &old_sums_}, std::pair{&weights_, &old_weights_}})
      now->swap(*old);
    sides_.swap(old_sides_);
    old_dual_weights_ = dual_weights_;
    const double old_offset = offset_;
    offset_ += offset_step;
    for (std::int64_t j = 0; j <= d_; ++j) weights_[j] = old_weights_[j] + direction_[j];
    respond(true);
    correct_dual_weights(1.0);
    if (std::fabs(slope_along(offset_step)) <= -kAcceptedSlope * initial) return true;
    for (std::int64_t i = 0; i < m_; ++i) factors_[i] = decisions_[i] - old_decisions_[i];
    double along = 0.0, norm = 0.0;
    for (std::int64_t j = 0; j <= d_; ++j) {
      along += old_weights_[j] * direction_[j];
      norm += direction_[j] * direction_[j];
    }
    const double length = minimise_along(old_slack_.data(), factors_.data(), along, norm, 1.0, kFinalSlope);
    short_steps_ += length < kShortLength;
    for (std::int64_t j = 0; j <= d_; ++j) weights_[j] = old_weights_[j] + length * direction_[j];
    for (std::int64_t i = 0; i < m_; ++i) decisions_[i] = old_decisions_[i] + length * factors_[i];
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
    dual_weights_ = old_dual_weights_;
    for (std::int64_t j = 0; j < d_; ++j) dual_weights_[j] -= length * product_[j];
    changed_.clear();
    grown_.clear();
    for (std::int64_t i = 0; i < m_; ++i) {
      if (sides_[i] == old_sides_[i]) continue;
      const double predicted = old_sums_[i] - counted_[i] / unit_ * (decisions_[i] - old_decisions_[i]);
      changed_.push_back(p_.row ? p_.row[i] : i);
      grown_.push_back(sums_[i] - predicted);
    }
    loops_.combine(rows_, changed_.data(), 0, static_cast<std::int64_t>(changed_.size()), grown_.data(),
                   dual_weights_.data());
    dual_weights_[d_] = o_.constant * sum_;
    accurate_ = false;
    finish_evaluation();
  }

  // The step length at which the slope is nearly 0, by safeguarded Newton steps. A change of null is 1 everywhere.
  double minimise_along(const double* slack, const double* change, double along, double norm, double length,
                        double tolerance) {
    const auto derivatives_at = [&](double t, double& curvature) {
      std::vector<Derivatives> found(parts_);
      in_parts(parts_, m_, [&](std::int64_t begin, std::int64_t end, int part) {
        for (std::int64_t k = 0; k < n_; k += m_) {
          const SlackArrays variables{slack + k, p_.lower + k, p_.upper + k, p_.ridge + k};
          const Derivatives some = level.linear->derivatives(variables, change, t, begin, end);
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
    double curvature = 0.0, low = -kUnlimited, high = kUnlimited;
    const double at_start = derivatives_at(0.0, curvature), target = tolerance * std::fabs(at_start);
    if (change) low = 0.0;
    if (change ? !(at_start < 0.0) : at_start == 0.0) return 0.0;
    if (!change) length = curvature > 0.0 ? -at_start / curvature : 0.0;
    for (int k = 0; k < kMaxLengths; ++k) {
      const double slope = derivatives_at(length, curvature);
      if (std::fabs(slope) <= target) break;
      (slope < 0.0 ? low : high) = length;
      const double newton = curvature > 0.0 ? length - slope / curvature : kUnlimited;
      const double most = std::min(high, change ? 16.0 * std::max(length, 1e-3) : kUnlimited);
      const bool bracketed = low > -kUnlimited && high < kUnlimited;
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
    const double change = minimise_along(slack_.data(), nullptr, 0.0, 0.0, 0.0, tolerance);
    offset_ += change;
    for (double& value : decisions_) value += change;
    fresh_decisions_ = false;
  }

  // ---- the equations --------------------------------------------------------------------------------------------

  // The factor of a row: unit / ridge of its free variable, 0 without one.
  double factor_of(std::int64_t i) const {
    double factor = 0.0;
    for (std::int64_t k = i, side = sides_[i]; k < n_; k += m_, side >>= 2)
      if ((side & 3) == 3) factor += equal_ridges_ ? 1.0 : unit_ / p_.ridge[k];
    return factor;
  }

  // Bring the moments of the rows about the origin up to date with the free variables.
  void update_moments() {
    double free = 0.0, changed = 0.0;
    for (std::int64_t i = 0; i < m_; ++i) {
      factors_[i] = factor_of(i);
      free += factors_[i] > 0.0;
      changed += factors_[i] != counted_[i];
    }
    const bool many = changed > kMaxChangedRows * free;
    if (many || ++updates_ > kMaxMomentUpdates) {
      if (!many && !accurate_) evaluate(false);  // rounding errors accumulate in both
      updates_ = 0;
      total_ = 0.0;
      std::fill(moments_.begin(), moments_.end(), 0.0);
      std::fill(square_.begin(), square_.end(), 0.0);
      std::fill(counted_.begin(), counted_.end(), 0.0);
      if (p_.grouped && dense_) centre_origin();
    }
    count_rows(1.0);
    count_rows(-1.0);
    counted_.swap(factors_);
  }

  // The origin is the mean of the free rows.
  void centre_origin() {
    double total = 0.0;
    for (std::int64_t i = 0; i < m_; ++i) total += factors_[i];
    std::fill(origin_.begin(), origin_.end(), 0.0);
    if (!(total > 0.0)) return;
    loops_.combine(rows_, row(), 0, m_, factors_.data(), origin_.data());
    for (double& value : origin_) value /= total;
  }

  // Add the moments of the rows whose factor has grown, or subtract those of the rows whose factor has shrunk.
  void count_rows(double sign) {
    changed_.clear();
    grown_.clear();
    for (std::int64_t i = 0; i < m_; ++i) {
      const double grown = sign * (factors_[i] - counted_[i]);
      if (!(grown > 0.0)) continue;
      changed_.push_back(p_.row ? p_.row[i] : i);
      grown_.push_back(grown);
      total_ += sign * grown;
    }
    const auto count = static_cast<std::int64_t>(changed_.size());
    if (!count) return;
    const int parts = count < kRowsPerChunk ? 1 : parts_;
    const std::int64_t area = d_ * d_, own_size = area + d_ + (dense_ ? kMomentRows * (d_ + kMomentPadding) : 0);
    std::vector<double> own(static_cast<std::size_t>(parts) * own_size);
    in_parts(parts, count, [&](std::int64_t begin, std::int64_t end, int part) {
      double* square = own.data() + part * own_size;
      loops_.add_moments(rows_, changed_.data(), begin, end, grown_.data(), p_.grouped && dense_ ? origin_.data() : nullptr,
                         square + area + d_, square + area, square, d_);
    });
    for (int part = 0; part < parts; ++part) {
      const double* square = own.data() + part * own_size;
      for (std::int64_t j = 0; j < area; ++j) square_[j] += sign * square[j];
      for (std::int64_t j = 0; j < d_; ++j) moments_[j] += sign * square[area + j];
    }
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
    if (!level.linear->solve_positive_definite(matrix_.data(), size, direction_.data())) return false;
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
  const bool dense_;
  const RidgedProblem p_;
  const RidgedNewtonOptions o_;
  const std::int64_t n_, m_, d_;
  const int parts_;  // of sums over rows
  const std::chrono::steady_clock::time_point deadline_;
  double unit_;  // the least ridge; moments are in units of its inverse
  bool equal_ridges_;
  std::vector<double> slack_, old_slack_, response_;                                 // of variables
  std::vector<double> decisions_, old_decisions_, sums_, old_sums_;                  // of rows: with the offset; Σ β
  std::vector<double> counted_, factors_;                                            // in the moments, and to be there
  std::vector<double> centre_;                                                       // zeros
  std::vector<std::uint8_t> sides_, old_sides_;
  std::vector<double> weights_, old_weights_, dual_weights_, old_dual_weights_, gradient_, direction_, product_;
  std::vector<double> origin_, moments_, square_, matrix_;
  std::vector<std::int64_t> changed_;  // rows
  std::vector<double> grown_;
  double offset_ = 0.0, sum_ = 0.0, total_ = 0.0, primal_ = 0.0, dual_ = 0.0;
  ResponseSums of_responses_;
  int short_steps_ = 0, updates_ = kMaxMomentUpdates;  // the first moments are computed from all rows
  bool fresh_decisions_ = false, accurate_ = true;
  SmallLinearOutcome out_;
};

}  // namespace maxmargin
