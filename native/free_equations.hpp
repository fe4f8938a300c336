// The linear equations of the free variables, with variables that would leave their bounds fixed at them, all at a
// time, and with a factorisation that serves many solutions.
//
// The active-set method (active_set.hpp) fixes one variable after the other, so that every step is an ascent. Where
// hundreds leave their bounds, as after a change of C, that takes hundreds of updates of the factor. Here all of them
// are fixed, and the equations of the others are solved again, until none leaves its bounds. That point need not
// be better, but on the way to it the objective may rise first: the step is as long as it does.
//
// Equations of a base of variables are factored, RᵀR = M. From one solution to the next few variables become free or
// reach a bound, and the factorisation of the base serves all of these sets. With variables of the base that are fixed
// at a change d, free variables P outside of it, and the sum of all as it is,
//
//   M x + E λ + M_P x_P = r,  Eᵀx = d,  M_Pᵀ x + M_PP x_P = r_P,
//
// where E has a unit vector for each fixed variable, whose λ is its slack, and a column of ones, whose λ is the offset
// (it has an element for each of P, too). With columns X of R⁻ᵀE and R⁻ᵀM_P and z = R⁻ᵀr these are
//
//   ( X_EᵀX_E      X_EᵀX_P     ) ( λ )   ( X_Eᵀz − d   )
//   (−X_PᵀX_E  M_PP − X_PᵀX_P  ) (x_P) = ( r_P − X_Pᵀz ),  x = R⁻¹(z − X_E λ − X_P x_P),
//
// solved by two Cholesky factorisations. Each column is computed once, in a fraction of the time of another
// factorisation; where there would be too many, the active variables become the base.
#pragma once

#include <cmath>
#include <cstdint>

#include "active_set_finish.hpp"
#include "blocked_cholesky.hpp"
#include "factored_base.hpp"
#include "solver_loops.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

constexpr int kMaxEquations = 12, kMaxReleases = 8;
// The most variables that are free but not in the base, or the reverse, relative to the free ones.
constexpr double kMaxDifferent = 0.35;

// Free variables of a part of a problem.
struct FreeValues {
  std::int64_t count;
  const std::int64_t* in_part;  // the number of each in the part
  const std::int64_t* members;  // the variables of the problem in the part
  const double *lower, *upper;
  double *dual, *gradient;  // are updated

  std::int64_t variable(std::int64_t k) const { return members[in_part[k]]; }
};

class FreeEquations {
 public:
  // Of a problem with one group of all variables, or none; `ridge` of all its variables.
  FreeEquations(const FoldPath& path, const DualState& all, const FoldWorkspace& w)
      : groups_(all.groups),
        most_columns_(padded_columns(w.max_free)),
        usable_(has_one_group(all) || all.groups == 0),
        base_(path, all.ridge, all.size, groups_, w, w.free_doubles + w.max_free * (w.max_free + 4),
              w.free_indices + w.max_free),
        ridge_(all.ridge),
        z_(w.free_doubles + w.max_free * (2 * w.max_free + 4 + most_columns_) + most_columns_ * most_columns_),
        solution_(z_ + w.max_free),
        step_(solution_ + w.max_free),
        slack_(step_ + w.max_free),
        small_(slack_ + w.max_free),
        values_(small_ + most_columns_ * most_columns_),
        z_products_(values_ + 2 * most_columns_),
        in_free_(w.free_indices + 2 * w.max_free + 2 * most_columns_),
        active_(in_free_ + w.max_free),
        added_(active_ + w.max_free),
        away_(added_ + w.max_free),
        fixed_(away_ + w.max_free),
        zeros_(fixed_ + most_columns_) {
    for (std::int64_t c = 0; c < most_columns_; ++c) zeros_[c] = 0;
  }

  void forget() { base_.forget(); }

  // Whether a factorisation serves most of the free variables.
  bool has_factor_of(const std::int64_t* free, const std::int64_t* members, std::int64_t count) const {
    std::int64_t common = 0;
    for (std::int64_t k = 0; k < count; ++k) common += base_.place(members[free[k]]) >= 0;
    return static_cast<double>(base_.size() + count - 2 * common) <= kMaxDifferent * static_cast<double>(count);
  }

  // Change v.dual and v.gradient. False, with both unchanged and the factorisation forgotten, if there is no ascent:
  // the matrix is singular, there are several groups, or all variables leave their bounds.
  template <class Rows> bool solve(const FreeValues& v, Rows& rows) {
    if (!usable_) return false;
    v_ = &v;
    begin();
    for (int round = 0; round < kMaxEquations && active_count_ > 0; ++round) {
      if (!add_columns() && !factor(rows)) break;
      if (!solve_equations()) break;
      if (!change_active(round < kMaxReleases)) {
        if (move()) return true;
        break;
      }
    }
    forget();
    return false;
  }

 private:
  enum : std::int64_t { kFrozen = -1, kFixed = 0, kActive = 1 };

  // All free variables are active.
  void begin() {
    for (std::int64_t a = 0; a < base_.size(); ++a) in_free_[a] = -1;
    for (std::int64_t k = 0; k < v_->count; ++k) {
      const std::int64_t place = base_.place(v_->variable(k));
      if (place >= 0) in_free_[place] = k;
      active_[k] = kActive;
      step_[k] = 0.0;
    }
    active_count_ = v_->count;
    find_z();
  }

  // z, and its products with the columns. The slack of variables that are not free is of no interest: as if their
  // gradient was 0.
  void find_z() {
    for (std::int64_t a = 0; a < base_.size(); ++a) z_[a] = in_free_[a] < 0 ? 0.0 : v_->gradient[in_free_[a]];
    for (std::int64_t k = 0; k < v_->count && base_.size(); ++k) {
      if (active_[k] != kFrozen || step_[k] == 0.0) continue;
      for (std::int64_t a = 0; a < base_.size(); ++a)
        z_[a] -= step_[k] * base_.value(v_->variable(k), base_.variable(a));
    }
    base_.substitute(z_);
    find_z_products(0);
  }

  void find_z_products(std::int64_t first) {
    for (std::int64_t c = first; c < base_.width(); ++c) z_products_[c] = 0.0;
    for (std::int64_t a = 0; a < base_.size(); ++a)
      add_row(z_products_ + first, base_.columns(a) + first, z_[a], base_.width() - first);
  }

  // Factor the equations of the active variables. The others remain where they are.
  template <class Rows> bool factor(Rows& rows) {
    base_.forget();
    for (std::int64_t k = 0; k < v_->count; ++k) {
      if (active_[k] != kActive) {
        active_[k] = kFrozen;
        continue;
      }
      in_free_[base_.size()] = k;
      base_.append(v_->variable(k));
    }
    const auto row_of = [&](std::int64_t a) { return find(rows, v_->in_part[in_free_[a]], 0); };
    const auto at = [&](const auto* row, std::int64_t a) { return rows.at(row, v_->in_part[in_free_[a]]); };
    if (!base_.factor(row_of, at)) return false;
    find_z();
    return true;
  }

  // Columns of active variables outside of the base, and of variables of the base that are not active, as far as there
  // are none. False if they are too many.
  bool add_columns() {
    if (base_.size() == 0) return false;
    std::int64_t outside = 0, inside = 0;
    for (std::int64_t k = 0; k < v_->count; ++k) {
      const std::int64_t i = v_->variable(k);
      if (active_[k] == kActive && base_.place(i) < 0 && base_.column(i) < 0) added_[outside++] = i;
    }
    for (std::int64_t a = 0; a < base_.size(); ++a)
      if (!is_active(a) && base_.column(base_.variable(a)) < 0) away_[inside++] = a;
    if (!base_.has_room(outside + inside)) return false;
    const std::int64_t known = base_.width();
    base_.add_columns(added_, outside, away_, inside);
    find_z_products(known);
    return true;
  }

  bool is_active(std::int64_t a) const { return in_free_[a] >= 0 && active_[in_free_[a]] == kActive; }

  // Which columns the equations have: of the fixed variables of the base, and of the active ones outside of it; then
  // those outside that are fixed. What the base and the active variables must add to.
  void find_lists() {
    missing_ = 0.0;
    fixed_count_ = groups_;
    added_count_ = away_count_ = 0;
    for (std::int64_t i = 0; i < groups_; ++i) fixed_[i] = i;
    for (std::int64_t a = 0; a < base_.size(); ++a)
      if (!is_active(a)) fixed_[fixed_count_++] = base_.column(base_.variable(a));
    for (std::int64_t k = 0; k < v_->count; ++k) {
      if (base_.place(v_->variable(k)) >= 0) continue;
      if (active_[k] == kFrozen) missing_ -= step_[k];
      if (active_[k] == kActive) added_[added_count_++] = k;
      if (active_[k] == kFixed) away_[away_count_++] = k;
    }
  }

  std::int64_t column_of(std::int64_t k) const { return base_.column(v_->variable(k)); }

  // The right-hand side of the equations of λ, less the part of the variables that are fixed outside of the base;
  // that of x_P is the gradient minus this.
  double right(std::int64_t column) const {
    double sum = z_products_[column];
    const double* row = base_.complement(column);
    for (std::int64_t f = 0; f < away_count_; ++f) sum += step_[away_[f]] * row[column_of(away_[f])];
    return sum;
  }

  // The steps of the active variables, and the slacks of the fixed ones. False if the variables depend on each other,
  // up to rounding.
  bool solve_equations() {
    find_lists();
    const std::int64_t e = fixed_count_, p = added_count_, stride = p + kTileWidth;
    double *own = small_, *cross = own + e * e, *rest = cross + e * stride;
    double *lambda = values_, *x = lambda + e;
    for (std::int64_t i = 0; i < e; ++i) {
      const double* row = base_.complement(fixed_[i]);
      for (std::int64_t j = i; j < e; ++j) own[i * e + j] = -row[fixed_[j]];
      for (std::int64_t j = 0; j < p; ++j) cross[i * stride + j] = -row[column_of(added_[j])];
      for (std::int64_t j = p; j < stride; ++j) cross[i * stride + j] = 0.0;
      lambda[i] = right(fixed_[i]) - (i < groups_ ? missing_ : step_of(base_.owner(fixed_[i])));
    }
    if (!factor_blocks(own, e, e, 0.0)) return false;
    substitute(own, e, e, lambda);
    if (p) {
      if (!factor_rest({own, e}, {cross, stride}, {rest, stride})) return false;
      for (std::int64_t j = 0; j < p; ++j) x[j] = v_->gradient[added_[j]] - right(column_of(added_[j]));
      for (std::int64_t i = 0; i < e; ++i) add_row(x, cross + i * stride, lambda[i], p);
      solve_factored(rest, p, stride, x);
      for (std::int64_t i = 0; i < e; ++i) lambda[i] -= ordered_dot(cross + i * stride, x, p);
    }
    solve_transposed(own, e, e, lambda);
    write_steps(lambda, x);
    return true;
  }

  // The factor of M_PP − X_PᵀX_P + TᵀT with T = R⁻ᵀ cross.
  bool factor_rest(Strided own, Strided cross, Strided rest) const {
    const std::int64_t e = fixed_count_, p = added_count_;
    for (std::int64_t i = 0; i < p; ++i) {
      const double* row = base_.complement(column_of(added_[i]));
      for (std::int64_t j = 0; j < p; ++j) rest.row(i)[j] = -row[column_of(added_[j])];
      for (std::int64_t j = p; j < rest.stride; ++j) rest.row(i)[j] = 0.0;
    }
    solve_columns(own, e, cross, 0, p, zeros_);
    for (std::int64_t j = 0; j < p; j += kTileWidth) subtract_products(rest, cross, cross, 0, e, 0, p, j);
    for (std::int64_t i = 0; i < p; ++i)
      for (std::int64_t j = i; j < p; ++j) rest.row(i)[j] = -rest.row(i)[j];
    return factor_blocks(rest.values, p, rest.stride, base_.least_pivot());
  }

  double step_of(std::int64_t variable) const {
    const std::int64_t k = in_free_[base_.place(variable)];
    return k < 0 ? 0.0 : step_[k];
  }

  void write_steps(const double* lambda, const double* x) {
    offset_ = groups_ ? lambda[0] : 0.0;
    for (std::int64_t a = 0; a < base_.size(); ++a) {
      const double* row = base_.columns(a);
      double sum = z_[a];
      for (std::int64_t f = 0; f < away_count_; ++f) sum -= row[column_of(away_[f])] * step_[away_[f]];
      for (std::int64_t i = 0; i < fixed_count_; ++i) sum -= row[fixed_[i]] * lambda[i];
      for (std::int64_t j = 0; j < added_count_; ++j) sum -= row[column_of(added_[j])] * x[j];
      solution_[a] = sum;
    }
    base_.solve_transposed(solution_);
    std::int64_t next = groups_;
    for (std::int64_t a = 0; a < base_.size(); ++a) {
      const std::int64_t k = in_free_[a];
      if (is_active(a)) {
        step_[k] = solution_[a];
        slack_[k] = 0.0;
      } else {
        if (k >= 0) slack_[k] = lambda[next];
        ++next;
      }
    }
    for (std::int64_t j = 0; j < added_count_; ++j) {
      step_[added_[j]] = x[j];
      slack_[added_[j]] = 0.0;
    }
    for (std::int64_t f = 0; f < away_count_; ++f) {
      const std::int64_t k = away_[f], column = column_of(k);
      const double* row = base_.complement(column);
      double slack = v_->gradient[k] - right(column);
      for (std::int64_t i = 0; i < fixed_count_; ++i) slack -= row[fixed_[i]] * lambda[i];
      for (std::int64_t j = 0; j < added_count_; ++j) slack -= row[column_of(added_[j])] * x[j];
      slack_[k] = slack;
    }
  }

  // Fix the active variables that leave their bounds, and release fixed ones that would move inwards. Returns whether
  // there are any.
  bool change_active(bool releases) {
    bool changes = false;
    for (std::int64_t k = 0; k < v_->count; ++k) {
      if (active_[k] == kActive) {
        const double value = v_->dual[k] + step_[k];
        const bool below = value<v_->lower[k], above = value> v_->upper[k];
        if (!below && !above) continue;
        step_[k] = (below ? v_->lower[k] : v_->upper[k]) - v_->dual[k];
        active_[k] = kFixed;
        --active_count_;
        changes = true;
      } else if (releases && active_[k] == kFixed && (step_[k] > 0.0 ? slack_[k] < 0.0 : slack_[k] > 0.0)) {
        active_[k] = kActive;
        ++active_count_;
        changes = true;
      }
    }
    return changes;
  }

  // Move towards the solution as far as the objective rises; false if it does not. The equations say what the product
  // of the matrix and the steps is: gradient − offset − slack.
  bool move() {
    for (std::int64_t k = 0; k < v_->count; ++k) {
      if (active_[k] != kFrozen) continue;
      slack_[k] = v_->gradient[k] - offset_ - ridge_[v_->variable(k)] * step_[k];
      for (std::int64_t j = 0; j < v_->count; ++j)
        slack_[k] -= base_.value(v_->variable(k), v_->variable(j)) * step_[j];
    }
    double slope = 0.0, curvature = 0.0;
    for (std::int64_t k = 0; k < v_->count; ++k) {
      slack_[k] = v_->gradient[k] - offset_ - slack_[k];  // now the product
      slope += step_[k] * v_->gradient[k];
      curvature += step_[k] * slack_[k];
    }
    if (!(slope > 0.0)) return false;
    const double length = curvature > slope ? slope / curvature : 1.0;
    for (std::int64_t k = 0; k < v_->count; ++k) {
      v_->dual[k] += length * step_[k];
      v_->gradient[k] -= length * slack_[k];
    }
    return true;
  }

  const std::int64_t groups_, most_columns_;
  const bool usable_;
  FactoredBase base_;
  const double* ridge_;
  const FreeValues* v_ = nullptr;
  double *z_, *solution_;         // of the variables of the base
  double *step_, *slack_;         // of the free variables
  double *small_, *values_;       // the equations of λ and x_P
  double* z_products_;            // Xᵀz
  std::int64_t* in_free_;         // where the variables of the base are among the free ones, or −1
  std::int64_t* active_;          // whether a free variable is active, fixed, or remains where it is
  std::int64_t *added_, *away_;   // active and fixed variables outside of the base
  std::int64_t *fixed_, *zeros_;  // the columns of ones and of the base's variables that are not active
  std::int64_t fixed_count_ = 0, added_count_ = 0, away_count_ = 0, active_count_ = 0;
  double offset_ = 0.0, missing_ = 0.0;
};

}  // namespace maxmargin::MAXMARGIN_LEVEL
