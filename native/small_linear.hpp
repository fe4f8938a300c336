// The solver of a small problem with the linear kernel, from start to end in one call: the semismooth Newton method of
// solvers/linear/semismooth_newton.py, for few samples and features, where Python between two steps takes
// longer than the steps. It takes the two kinds of problem that linear estimators pose:
//
//   a ridge for every variable (squared losses): Newton steps on the primal, whose loss has one kink a sample;
//   no ridge and finite bounds (hinge, ε-insensitive): the primal smoothed by −½ σ‖b − c‖² in the dual, σ reduced from
//   one smoothed problem to the next.
//
// A problem that takes many steps is returned unfinished. The group, if there is one, has all variables and the sum 0.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "linear_loops.hpp"
#include "loss_offset.hpp"
#include "row_products.hpp"
#include "small_newton_equations.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// As in semismooth_newton.py and smoothed_primal.py, where they are explained.
constexpr double kSolvedFraction = 0.05, kSigmaReduction = 0.2, kMinSigmaRatio = 1e-5, kMinRelativeSigma = 1e-13;
constexpr double kDefaultRelativeSigma = 0.02;
constexpr double kFullStepSlope = 0.25, kShortStep = 0.35, kSlopeTolerance = 1e-2, kObjectiveTolerance = 1e-14;
constexpr int kMaxStepsPerProblem = 40, kMaxShortSteps = 6, kMaxLineSearchSteps = 60;

template <class Rows> class SmallLinearSolver {
 public:
  SmallLinearSolver(const SmallLinearProblem& problem, const Rows& rows, double* memory, std::int64_t* indices)
      : p_(problem),
        rows_(rows),
        ridged_(problem.ridge[0] > 0.0),
        equations_(rows, problem.rows_count, problem.width, memory, indices) {
    memory += SmallNewtonEquations<Rows>::memory(problem.rows_count, problem.width);
    const auto take = [&](std::int64_t count) {
      double* begin = memory;
      memory += count;
      return begin;
    };
    const std::int64_t n = p_.variables, m = p_.rows_count, d = p_.width;
    for (double** of_variables : {&slack_, &response_, &centre_, &trial_, &before_, &plain_}) *of_variables = take(n);
    for (double** of_rows : {&decisions_, &change_, &sums_of_rows_, &factors_, &old_decisions_}) *of_rows = take(m);
    for (double** of_weights : {&weights_, &gradient_, &dual_weights_, &direction_, &old_weights_})
      *of_weights = take(d);
  }

  // The best weights and the best dual vector are written to the outcome's arrays.
  SmallLinearOutcome solve(double* dual, double* weights) {
    start(dual, weights);
    for (;;) {
      ++out_.rounds;
      const std::int64_t before = out_.steps;
      solve_smoothed();
      if (ended_) return out_;
      const double* centre = sigma_ > 0.0 ? response_ : best_dual_;
      for (std::int64_t k = 0; k < p_.variables; ++k) centre_[k] = centre[k];
      if (sigma_ > 0.0)
        reduce_sigma(out_.steps - before);
      else  // many short steps: a small ridge needs smoothing
        sigma_ = kDefaultRelativeSigma * row_norm_;
    }
  }

 private:
  SlackArrays slacks(const double* slack) const { return {slack, p_.lower, p_.upper, p_.ridge}; }

  // The primal value of the current weights with their best offset, near a guess.
  double primal_with_best_offset(double guess) {
    double norm = 0.0;
    for (std::int64_t j = 0; j < p_.width; ++j) norm += weights_[j] * weights_[j];
    for (std::int64_t first = 0; first < p_.variables; first += p_.rows_count)
      for (std::int64_t i = 0; i < p_.rows_count; ++i) plain_[first + i] = p_.linear[first + i] - decisions_[i];
    best_ = p_.grouped ? best_offset(slacks(plain_), p_.variables, guess) : 0.0;
    for (std::int64_t k = 0; k < p_.variables; ++k) plain_[k] -= best_;
    return 0.5 * norm + loss(slacks(plain_), 0, p_.variables);
  }

  // By more if the last problem was easy; to 0 if the ridge smooths the loss enough. A problem that took many steps has
  // too many kinks; then σ is increased.
  void reduce_sigma(std::int64_t steps) {
    sigma_ *= steps <= 1 ? kSigmaReduction * kSigmaReduction
                         : (steps >= kMaxStepsPerProblem ? 1.0 / kSigmaReduction : kSigmaReduction);
    if (sigma_ <= least_ridge_)
      sigma_ = 0.0;
    else if (sigma_ < min_sigma_)
      sigma_ = min_sigma_;
  }

  void start(double* dual, double* weights) {
    best_dual_ = dual;
    best_weights_ = weights;
    double norms = 0.0;
    for (std::int64_t i = 0; i < p_.rows_count; ++i) {
      decisions_[i] = 0.0;
      norms += squared_norm(rows_, i);
    }
    for (std::int64_t j = 0; j < p_.width; ++j) weights_[j] = best_weights_[j] = 0.0;
    out_.primal = primal_with_best_offset(0.0);
    offset_ = best_;
    double distance = 0.0, range = 0.0;
    least_ridge_ = p_.ridge[0];
    for (std::int64_t k = 0; k < p_.variables; ++k) {
      centre_[k] = best_dual_[k] = 0.0;
      distance += std::fabs(p_.linear[k] - offset_);
      range += p_.upper[k] - p_.lower[k];
      least_ridge_ = p_.ridge[k] < least_ridge_ ? p_.ridge[k] : least_ridge_;
      equal_ridges_ = equal_ridges_ && p_.ridge[k] == p_.ridge[0];
    }
    row_norm_ = norms > 0.0 ? norms / static_cast<double>(p_.rows_count) : 1.0;
    sigma_ = ridged_ ? 0.0 : 2.0 * distance / range;
    min_sigma_ = kMinRelativeSigma * row_norm_;
    if (kMinSigmaRatio * sigma_ > min_sigma_) min_sigma_ = kMinSigmaRatio * sigma_;
    if (!ridged_ && sigma_ < min_sigma_) sigma_ = min_sigma_;
  }

  // Solve the problem with the current σ and centre, until it is nearly solved or the run has ended.
  void solve_smoothed() {
    short_steps_ = 0;
    evaluate(true);
    for (int steps = 0;; ++steps) {
      if (converged() || out_.steps >= p_.max_steps) {
        ended_ = true;
        return;
      }
      if (steps >= kMaxStepsPerProblem || (sigma_ > 0.0 ? steps > 0 && solved() : short_steps_ >= kMaxShortSteps))
        return;
      if (!step()) {
        ended_ = true;
        return;
      }
    }
  }

  template <class V> struct Sums {
    SumsOf<V> of_loss;
    V sum{}, moved{};  // Σ β and ‖β − c‖² of the responses β
  };

  // Slack, smoothed slack and response of variable k with row i, or of several from there on.
  template <class V> MAXMARGIN_INLINE void respond(std::int64_t k, std::int64_t i, Sums<V>& sums) {
    const V lower = get<V>(p_.lower + k), upper = get<V>(p_.upper + k), ridge = get<V>(p_.ridge + k);
    const V linear = get<V>(p_.linear + k), centre = get<V>(centre_ + k);
    const V z = linear - get<V>(decisions_ + i) - offset_, smoothed = z + sigma_ * centre;
    const V response = respond_to<V>(z, smoothed, linear, lower, upper, ridge, sigma_, sums.of_loss);
    put<V>(slack_ + k, smoothed);
    put<V>(response_ + k, response);
    put<V>(sums_of_rows_ + i, get<V>(sums_of_rows_ + i) + response);
    const V factor = ((response > lower) & (response < upper)) ? V(1.0 / (ridge + sigma_)) : V{};
    put<V>(factors_ + i, get<V>(factors_ + i) + factor);
    sums.sum += response;
    sums.moved += (response - centre) * (response - centre);
  }

  // Slacks, responses, gradient and objective values at the current weights and offset.
  void evaluate(bool known_decisions) {
    const std::int64_t m = p_.rows_count;
    if (!known_decisions) decisions(rows_, nullptr, 0, m, weights_, decisions_);
    for (std::int64_t i = 0; i < m; ++i) sums_of_rows_[i] = factors_[i] = 0.0;
    Sums<Vec<double>> several;
    Sums<double> single;
    for (std::int64_t first = 0; first < p_.variables; first += m) {
      std::int64_t i = 0;
      for (; i + kWidth<double> <= m; i += kWidth<double>) respond(first + i, i, several);
      for (; i < m; ++i) respond(first + i, i, single);
    }
    const double value = sum_of(several.of_loss.linear - 0.5 * several.of_loss.ridge) + single.of_loss.linear -
                         0.5 * single.of_loss.ridge;
    const double moved = sum_of(several.moved) + single.moved;
    for (std::int64_t j = 0; j < p_.width; ++j) dual_weights_[j] = 0.0;
    combine_rows(rows_, nullptr, 0, m, sums_of_rows_, dual_weights_);
    double norm = 0.0, dual_norm = 0.0, squared_gradient = 0.0;
    for (std::int64_t j = 0; j < p_.width; ++j) {
      gradient_[j] = weights_[j] - dual_weights_[j];
      norm += weights_[j] * weights_[j];
      dual_norm += dual_weights_[j] * dual_weights_[j];
      squared_gradient += gradient_[j] * gradient_[j];
    }
    sum_ = p_.grouped ? sum_of(several.sum) + single.sum : 0.0;
    absolute_sum_ = sum_of(several.of_loss.absolute) + single.of_loss.absolute;
    primal_ = 0.5 * norm + sum_of(several.of_loss.loss) + single.of_loss.loss;
    const double repair_cost = std::fabs(sum_ * offset_);
    dual_estimate_ = value - 0.5 * dual_norm - repair_cost;
    half_squared_gradient_ = 0.5 * squared_gradient;
    const double gap = primal_ - dual_estimate_ - repair_cost;
    proximal_gap_ = gap < sigma_ * moved ? gap : sigma_ * moved;
  }

  // Whether the smoothed problem is solved to a fraction of the duality gap.
  bool solved() const {
    const double gap = kSolvedFraction * proximal_gap_;
    return std::fabs(sum_) <= 1e-2 * absolute_sum_ &&
           half_squared_gradient_ <= (gap > 0.0 ? gap : 0.0) + kObjectiveTolerance * std::fabs(dual_estimate_);
  }

  bool accepts(double primal, double dual) const {
    const double a = std::fabs(primal), b = std::fabs(dual), size = a > b ? a : b, gap = primal - dual;
    return gap <= p_.relative_gap * size || (gap <= p_.gap && size <= p_.gap);
  }

  // Keep the best weights and the best dual vector; return whether their gap is within the tolerance.
  bool converged() {
    keep_weights(primal_);
    const double halfway = dual_estimate_ + 0.5 * (out_.primal - dual_estimate_);
    if (dual_estimate_ > out_.dual && (accepts(halfway, dual_estimate_) || (sigma_ > 0.0 && solved()))) keep_dual();
    out_.converged = accepts(out_.primal, out_.dual);
    return out_.converged;
  }

  void keep_weights(double primal) {
    if (!(primal < out_.primal)) return;
    out_.primal = primal;
    for (std::int64_t j = 0; j < p_.width; ++j) best_weights_[j] = weights_[j];
  }

  // Keep the responses with a repaired sum, and the weights with their best offset.
  void keep_dual() {
    for (std::int64_t k = 0; k < p_.variables; ++k) trial_[k] = response_[k];
    if (p_.grouped) {
      keep_weights(primal_with_best_offset(offset_));
      repair_sum();
    }
    const std::int64_t m = p_.rows_count;
    double value = 0.0;
    for (std::int64_t i = 0; i < m; ++i) change_[i] = 0.0;
    for (std::int64_t first = 0; first < p_.variables; first += m)
      for (std::int64_t i = 0; i < m; ++i) {
        const double b = trial_[first + i];
        change_[i] += b;
        value += b * (p_.linear[first + i] - 0.5 * p_.ridge[first + i] * b);
      }
    for (std::int64_t j = 0; j < p_.width; ++j) dual_weights_[j] = 0.0;
    combine_rows(rows_, nullptr, 0, m, change_, dual_weights_);
    for (std::int64_t j = 0; j < p_.width; ++j) value -= 0.5 * dual_weights_[j] * dual_weights_[j];
    if (!(value > out_.dual)) return;
    out_.dual = value;
    for (std::int64_t k = 0; k < p_.variables; ++k) best_dual_[k] = trial_[k];
  }

  // Make the sum of the dual vector 0: by free variables in proportion to their distance from the bound ahead or, if
  // they have not room enough, by all.
  void repair_sum() {
    for (int everywhere = 0; everywhere < 2; ++everywhere) {
      double sum = 0.0, room = 0.0, unlimited = 0.0;
      for (std::int64_t k = 0; k < p_.variables; ++k) sum += trial_[k];
      const auto room_of = [&](std::int64_t k) {
        const bool movable = everywhere || (trial_[k] > p_.lower[k] && trial_[k] < p_.upper[k]);
        return !movable ? 0.0 : sum < 0.0 ? p_.upper[k] - trial_[k] : trial_[k] - p_.lower[k];
      };
      for (std::int64_t k = 0; k < p_.variables; ++k) {
        const double own = room_of(k);
        (own < kInfinite ? room : unlimited) += own < kInfinite ? own : 1.0;
      }
      if (sum == 0.0) return;
      if (unlimited == 0.0 && !(room > (everywhere ? 1.0 : 2.0) * std::fabs(sum))) continue;
      const double share = -sum / (unlimited > 0.0 ? unlimited : room);
      for (std::int64_t k = 0; k < p_.variables; ++k) {
        const double own = room_of(k);
        const double moved = unlimited > 0.0 ? (own < kInfinite ? 0.0 : share) : share * own;
        before_[k] = moved;
      }
      for (std::int64_t k = 0; k < p_.variables; ++k)
        trial_[k] = clipped(trial_[k] + before_[k], p_.lower[k], p_.upper[k]);
      return;
    }
  }

  // A Newton step with a line search; false if rounding errors prevent it.
  bool step() {
    const std::int64_t m = p_.rows_count, d = p_.width;
    double offset_step = 0.0;
    ++out_.steps;
    const double total = equations_.update(factors_, least_ridge_ + sigma_, equal_ridges_);
    if (!equations_.solve(gradient_, sum_, p_.grouped ? total : 0.0, direction_, offset_step)) return false;
    if (p_.grouped && offset_step == 0.0 && sum_ != 0.0) return move_offset();
    const double initial = slope_along(offset_step);
    if (!(initial < 0.0)) return false;
    const double old_offset = offset_;
    for (std::int64_t k = 0; k < p_.variables; ++k) before_[k] = slack_[k];
    for (std::int64_t i = 0; i < m; ++i) old_decisions_[i] = decisions_[i];
    for (std::int64_t j = 0; j < d; ++j) {
      old_weights_[j] = weights_[j];
      weights_[j] += direction_[j];
    }
    offset_ += offset_step;
    evaluate(false);
    if (std::fabs(slope_along(offset_step)) <= kFullStepSlope * -initial) return true;
    for (std::int64_t i = 0; i < m; ++i) change_[i] = decisions_[i] - old_decisions_[i] + offset_step;
    const double length = line_search();
    short_steps_ += length < kShortStep;
    for (std::int64_t j = 0; j < d; ++j) weights_[j] = old_weights_[j] + length * direction_[j];
    for (std::int64_t i = 0; i < m; ++i)
      decisions_[i] = old_decisions_[i] + length * (decisions_[i] - old_decisions_[i]);
    offset_ = old_offset + length * offset_step;
    evaluate(true);
    return true;
  }

  // Minimise over the offset alone, where no variable is free: a Newton step would not move it.
  bool move_offset() {
    for (std::int64_t k = 0; k < p_.variables; ++k) {
      trial_[k] = slack_[k] + offset_;
      plain_[k] = p_.ridge[k] + sigma_;
    }
    offset_ = best_offset({trial_, p_.lower, p_.upper, plain_}, p_.variables, offset_);
    evaluate(true);
    return true;
  }

  double slope_along(double offset_step) const {
    double slope = -sum_ * offset_step;
    for (std::int64_t j = 0; j < p_.width; ++j) slope += gradient_[j] * direction_[j];
    return slope;
  }

  // The step length at which the directional derivative is nearly 0, by safeguarded Newton steps.
  double line_search() {
    double initial = 0.0, norm = 0.0;
    for (std::int64_t j = 0; j < p_.width; ++j) {
      initial += old_weights_[j] * direction_[j];
      norm += direction_[j] * direction_[j];
    }
    for (std::int64_t k = 0; k < p_.variables; ++k) plain_[k] = p_.ridge[k] + sigma_;
    const auto derivatives_at = [&](double length, double& curvature) {
      double slope = initial + length * norm;
      curvature = norm;
      for (std::int64_t k = 0; k < p_.variables; k += p_.rows_count) {
        const SlackArrays smoothed{before_ + k, p_.lower + k, p_.upper + k, plain_ + k};
        const Derivatives of_loss = derivatives(smoothed, change_, length, 0, p_.rows_count);
        slope -= of_loss.slope;
        curvature += of_loss.curvature;
      }
      return slope;
    };
    double curvature = 0.0, low = 0.0, high = kInfinite, length = 1.0;
    const double steepest = -derivatives_at(0.0, curvature);
    if (!(steepest > 0.0)) return 0.0;
    for (int k = 0; k < kMaxLineSearchSteps; ++k) {
      const double slope = derivatives_at(length, curvature);
      if (std::fabs(slope) <= kSlopeTolerance * steepest) break;
      (slope < 0.0 ? low : high) = length;
      const double newton = curvature > 0.0 ? length - slope / curvature : kInfinite;
      const double most = 16.0 * (length > 1e-3 ? length : 1e-3);
      if (newton > low && newton < (high < most ? high : most) && k % 4 != 3)
        length = newton;
      else
        length = high < kInfinite ? 0.5 * (low + high) : 4.0 * length;
    }
    return length;
  }

  const SmallLinearProblem& p_;
  const Rows rows_;
  const bool ridged_;
  SmallNewtonEquations<Rows> equations_;
  double *slack_, *response_, *centre_, *trial_, *before_, *plain_;          // of variables
  double *decisions_, *change_, *sums_of_rows_, *factors_, *old_decisions_;  // of rows
  double *weights_, *gradient_, *dual_weights_, *direction_, *old_weights_;  // of features
  double *best_dual_ = nullptr, *best_weights_ = nullptr;
  double sigma_ = 0.0, min_sigma_ = 0.0, row_norm_ = 1.0, least_ridge_ = 0.0;
  double offset_ = 0.0, best_ = 0.0, sum_ = 0.0, absolute_sum_ = 0.0;  // `best_` is the best offset of the weights
  double primal_ = 0.0, dual_estimate_ = 0.0, half_squared_gradient_ = 0.0, proximal_gap_ = 0.0;
  int short_steps_ = 0;
  bool ended_ = false, equal_ridges_ = true;
  SmallLinearOutcome out_;
};

inline std::int64_t small_memory(const SmallLinearProblem& p) {
  return 6 * p.variables + 5 * (p.rows_count + p.width) +
         SmallNewtonEquations<DenseRows<double>>::memory(p.rows_count, p.width);
}

inline SmallLinearOutcome solve_small(const SmallLinearProblem& p, double* memory, std::int64_t* indices, double* dual,
                                      double* weights) {
  if (p.starts) {
    const CompressedRows<double, std::int32_t> rows{p.starts, p.features, p.rows, p.width};
    return SmallLinearSolver(p, rows, memory, indices).solve(dual, weights);
  }
  return SmallLinearSolver(p, DenseRows<double>{p.rows, p.width}, memory, indices).solve(dual, weights);
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
