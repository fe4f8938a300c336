// Responses of samples to their slacks, and sums over samples.
//
//   response(z) = argmax over β in [lower, upper] of βz − ½ ridge β²,  conjugate(z) = that maximum, the loss of the
//   sample
//
// Without a ridge the unclipped response z / ridge is infinite, and the response is the bound on the side of the slack.
#pragma once

#include <cstdint>

#include "linear_loops.hpp"
#include "row_products.hpp"
#include "simd.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

// V is a number, or a vector of them for several samples.
template <class V> MAXMARGIN_INLINE V clipped(V value, V lower, V upper) {
  const V above = value < lower ? lower : value;
  return above > upper ? upper : above;
}

template <class V> struct SumsOf {
  V loss{}, linear{}, ridge{}, absolute{};
};

// The response to the smoothed slack z + σ c with ridge + σ > 0. Adds to the sums: the loss of the slack z itself, and
// the terms of the dual objective of the responses.
template <class V>
MAXMARGIN_INLINE V respond_to(V z, V smoothed, V linear, V lower, V upper, V ridge, double sigma, SumsOf<V>& sums) {
  V exact = z / ridge;
  exact = clipped<V>(exact == exact ? exact : V{}, lower, upper);  // 0/0
  const V response = sigma == 0.0 ? exact : clipped<V>(smoothed / (ridge + sigma), lower, upper);
  const V quadratic = ridge > 0 ? V(0.5 * ridge * exact * exact) : V{}, loss = exact * z - quadratic;
  sums.loss += z == 0 ? V{} : loss;
  sums.linear += linear * response;
  sums.ridge += ridge * response * response;
  sums.absolute += response < 0 ? V(-response) : response;
  return response;
}

// For samples [begin, end): the slack z = linear − decision value − ρ, the smoothed slack z + σ c, the response to it,
// and the sums.
static void respond(const SmoothedProblem& p, const double* decisions, std::int64_t begin, std::int64_t end,
                    ResponseSums& sums, double* group_sums) {
  constexpr int step = kWidth<double>;
  const auto offset = [&](std::int64_t k) { return p.group && p.group[k] >= 0 ? p.offset[p.group[k]] : 0.0; };
  SumsOf<Vec<double>> several;
  SumsOf<double> single;
  std::int64_t k = begin;
  for (; k + step <= end; k += step) {
    Vec<double> offsets{};
    if (p.group)
      for (int l = 0; l < step; ++l) offsets[l] = offset(k + l);
    const Vec<double> linear = load_vector(p.linear + k), z = linear - load_vector(decisions + k) - offsets;
    const Vec<double> smoothed = z + p.sigma * load_vector(p.centre + k);
    store_vector(p.slack + k, smoothed);
    store_vector(p.response + k,
                 respond_to<Vec<double>>(z, smoothed, linear, load_vector(p.lower + k), load_vector(p.upper + k),
                                         load_vector(p.ridge + k), p.sigma, several));
  }
  for (; k < end; ++k) {
    const double z = p.linear[k] - decisions[k] - offset(k), smoothed = z + p.sigma * p.centre[k];
    p.slack[k] = smoothed;
    p.response[k] = respond_to<double>(z, smoothed, p.linear[k], p.lower[k], p.upper[k], p.ridge[k], p.sigma, single);
  }
  if (p.group)
    for (k = begin; k < end; ++k)
      if (p.group[k] >= 0) group_sums[p.group[k]] += p.response[k];
  sums.loss += sum_of(several.loss) + single.loss;
  sums.linear += sum_of(several.linear) + single.linear;
  sums.ridge += sum_of(several.ridge) + single.ridge;
  sums.absolute_sum += sum_of(several.absolute) + single.absolute;
}

// The same at weights w and a shift of all decision values, which are computed, too; adds the rows times their
// responses to `dual_weights`. A few rows are processed at a time, so that they are still in the cache for the second
// product.
template <class Rows>
void respond_rows(const Rows& rows, const std::int64_t* indices, const SmoothedProblem& p, const double* w,
                  double shift, double* decision_values, double* dual_weights, std::int64_t begin, std::int64_t end,
                  ResponseSums& sums, double* group_sums) {
  constexpr std::int64_t kRowsAtOnce = 64;
  for (std::int64_t first = begin; first < end; first += kRowsAtOnce) {
    const std::int64_t last = first + kRowsAtOnce < end ? first + kRowsAtOnce : end;
    decisions(rows, indices, first, last, w, decision_values);
    for (std::int64_t k = first; k < last; ++k) decision_values[k] += shift;
    respond(p, decision_values, first, last, sums, group_sums);
    combine_rows(rows, indices, first, last, p.response, dual_weights);
  }
}

// Σ conjugate(z)
static double loss(const SlackArrays& s, std::int64_t begin, std::int64_t end) {
  constexpr int step = kWidth<double>;
  SumsOf<Vec<double>> several;
  SumsOf<double> single;
  std::int64_t k = begin;
  for (; k + step <= end; k += step) {
    const Vec<double> z = load_vector(s.slack + k);
    respond_to<Vec<double>>(z, z, z, load_vector(s.lower + k), load_vector(s.upper + k), load_vector(s.ridge + k), 0.0,
                            several);
  }
  for (; k < end; ++k) respond_to<double>(s.slack[k], s.slack[k], 0.0, s.lower[k], s.upper[k], s.ridge[k], 0.0, single);
  return sum_of(several.loss) + single.loss;
}

// Adds response(z) d at z = slack − t d, and d²/ridge if the response is strictly between its bounds.
template <class V>
MAXMARGIN_INLINE void add_derivatives(V slack, V lower, V upper, V ridge, V d, double t, V& slope, V& curvature) {
  const V z = slack - t * d;
  V unclipped = z / ridge;
  unclipped = unclipped == unclipped ? unclipped : V{};  // 0/0
  const V response = clipped<V>(unclipped, lower, upper);
  slope += response * d;
  curvature += ((response == unclipped) & (ridge > 0)) ? d * d / ridge : V{};
}

// The first derivative of the loss along −d at slack − t d, and the second.
static Derivatives derivatives(const SlackArrays& s, const double* direction, double t, std::int64_t begin,
                               std::int64_t end) {
  constexpr int step = kWidth<double>;
  Vec<double> slopes{}, curvatures{};
  const Vec<double> ones = repeat(1.0);
  std::int64_t k = begin;
  for (; k + step <= end; k += step)
    add_derivatives<Vec<double>>(load_vector(s.slack + k), load_vector(s.lower + k), load_vector(s.upper + k),
                                 load_vector(s.ridge + k) + s.sigma, direction ? load_vector(direction + k) : ones, t,
                                 slopes, curvatures);
  Derivatives out{sum_of(slopes), sum_of(curvatures)};
  for (; k < end; ++k)
    add_derivatives<double>(s.slack[k], s.lower[k], s.upper[k], s.ridge[k] + s.sigma, direction ? direction[k] : 1.0, t,
                            out.slope, out.curvature);
  return out;
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
