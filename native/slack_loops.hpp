// What a sample answers to its slack z: response(z) = argmax over [lower, upper] of βz − ½ ridge β², and sums over samples.
#pragma once

#include <cstdint>

#include "linear_rows.hpp"
#include "loops.hpp"
#include "vectors.hpp"

namespace maxmargin::MAXMARGIN_LEVEL {

MAXMARGIN_INLINE double clipped(double value, double lower, double upper) {
  const double above = value < lower ? lower : value;
  return above > upper ? upper : above;
}

// For samples [begin, end): the slack z = linear − image − ρ, the rounded slack z + σ c, the response to it with ridge + σ > 0,
// and sums: the loss of the slack z itself, and what the dual value of the responses takes.
static void respond(const Rounded& r, const double* image, std::int64_t begin, std::int64_t end, SlackSums& sums, double* group_sums) {
  for (std::int64_t k = begin; k < end; ++k) {
    const std::int32_t g = r.group ? r.group[k] : -1;
    const double z = r.linear[k] - image[k] - (g >= 0 ? r.offset[g] : 0.0);
    const double lower = r.lower[k], upper = r.upper[k], ridge = r.ridge[k];
    const double rounded = z + r.sigma * r.centre[k];
    const double answer = clipped(rounded / (ridge + r.sigma), lower, upper);
    r.slack[k] = rounded;
    r.response[k] = answer;
    if (g >= 0) group_sums[g] += answer;
    const double wish = ridge > 0.0 ? clipped(z / ridge, lower, upper) : z > 0.0 ? upper : z < 0.0 ? lower : 0.0;
    sums.loss += z == 0.0 ? 0.0 : wish * z - (ridge > 0.0 ? 0.5 * ridge * wish * wish : 0.0);  // an infinite wish has no ridge
    sums.linear += r.linear[k] * answer;
    sums.ridge += ridge * answer * answer;
    sums.size += answer < 0.0 ? -answer : answer;
  }
}

// The same at weights w, and a shift that all images have: computes the images too, and adds the rows times their responses to
// `own`. Rows are taken a few at a time, so that they are still at hand the second time.
template <class Rows>
void respond_rows(const Rows& rows, const std::int64_t* picks, const Rounded& r, const double* w, double shift, double* image,
                  double* own, std::int64_t begin, std::int64_t end, SlackSums& sums, double* group_sums) {
  constexpr std::int64_t kFew = 64;
  for (std::int64_t first = begin; first < end; first += kFew) {
    const std::int64_t last = first + kFew < end ? first + kFew : end;
    decisions(rows, picks, first, last, w, image);
    for (std::int64_t k = first; k < last; ++k) image[k] += shift;
    respond(r, image, first, last, sums, group_sums);
    combine_rows(rows, picks, first, last, r.response, own);
  }
}

// One sample, or several side by side: response(z − t d) d, and d²/ridge where it lies strictly between its bounds. A ridge of 0
// makes the wish infinite, and the response the bound on the slack's side.
template <class V> MAXMARGIN_INLINE void add_slope(V slack, V lower, V upper, V ridge, V d, double t, V& sum, V& bend) {
  const V z = slack - t * d;
  V wish = z / ridge;
  wish = wish == wish ? wish : V{};  // 0/0
  V answer = wish < lower ? lower : wish;
  answer = answer > upper ? upper : answer;
  sum += answer * d;
  bend += ((answer == wish) & (ridge > 0)) ? d * d / ridge : V{};
}

// Σ response(z − t d) d and Σ over those strictly between their bounds of d²/ridge: the slope of the loss along d and how it bends.
static Slope slope(const SlackArrays& s, const double* direction, double t, std::int64_t begin, std::int64_t end) {
  constexpr int step = kWidth<double>;
  Vec<double> sums{}, bends{};
  const Vec<double> ones = repeat(1.0);
  std::int64_t k = begin;
  for (; k + step <= end; k += step)
    add_slope<Vec<double>>(load_vector(s.slack + k), load_vector(s.lower + k), load_vector(s.upper + k), load_vector(s.ridge + k),
                           direction ? load_vector(direction + k) : ones, t, sums, bends);
  Slope out;
  for (int l = 0; l < step; ++l) out.sum += sums[l], out.bend += bends[l];
  for (; k < end; ++k)
    add_slope<double>(s.slack[k], s.lower[k], s.upper[k], s.ridge[k], direction ? direction[k] : 1.0, t, out.sum, out.bend);
  return out;
}

}  // namespace maxmargin::MAXMARGIN_LEVEL
