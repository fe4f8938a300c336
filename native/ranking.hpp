// Sums over the pairs of a ranking: of two samples of one query, the one with the higher level should score higher.
//
// Pairs that are listed one by one are summed in one pass over the list. Otherwise pairs are never listed: all pairs of
// one query whose scores differ by less than a threshold are summed in O(n log n) by a pass over the samples in the
// order of their scores, with a Fenwick tree over the levels (Joachims 2006; Lee & Lin 2014).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace maxmargin {

// ---- listed pairs -----------------------------------------------------------------------------------------------

struct ListedPairs {
  const std::int64_t *first, *second;
  const double *centre, *upper;
  double stiffness;  // responses grow with the slack at the rate `stiffness` · upper

  // The response to the difference of two scores: clip(centre + stiffness · upper · slack, 0, upper).
  double respond(std::int64_t pair, double difference) const {
    const double value = centre[pair] + stiffness * upper[pair] * (1.0 - difference);
    return std::min(std::max(value, 0.0), upper[pair]);
  }
};

// The responses to scores, and their sums by sample: positive for the first of a pair, negative for the second.
inline void respond_to_pairs(const ListedPairs& pairs, std::int64_t count, const double* scores, double* responses,
                             double* coefficients) {
  for (std::int64_t p = 0; p < count; ++p) {
    const std::int64_t i = pairs.first[p], j = pairs.second[p];
    const double response = pairs.respond(p, scores[i] - scores[j]);
    responses[p] = response;
    coefficients[i] += response;
    coefficients[j] -= response;
  }
}

// Σ response · (direction of the first − direction of the second) at scores + t · direction, of pairs begin to end.
inline double slope_of_pairs(const ListedPairs& pairs, std::int64_t begin, std::int64_t end, const double* scores,
                             const double* direction, double t) {
  double slope = 0.0;
  for (std::int64_t p = begin; p < end; ++p) {
    const std::int64_t i = pairs.first[p], j = pairs.second[p];
    const double change = direction[i] - direction[j];
    slope += pairs.respond(p, (scores[i] - scores[j]) + t * change) * change;
  }
  return slope;
}

// ---- pairs by the order of scores -------------------------------------------------------------------------------

// Samples sorted by query and, within a query, by increasing score; `starts` has the first place of each query and the
// end. Levels count from 0 within a query.
struct RankedSamples {
  const std::int64_t *order, *starts;
  std::int64_t queries;
  const std::int32_t* level;
  const double* scores;

  std::int32_t levels(std::int64_t query) const {
    std::int32_t most = 0;
    for (std::int64_t k = starts[query]; k < starts[query + 1]; ++k) most = std::max(most, level[order[k]]);
    return most + 1;
  }
};

// A sum of two parts, the rounding error of the first being the second (Dekker 1971; Neumaier 1974).
struct CompensatedSum {
  double value = 0.0, error = 0.0;

  void add(double term) {
    const double sum = value + term, part = sum - value;
    error += (value - (sum - part)) + (term - part);
    value = sum;
  }
  void add(const CompensatedSum& other) {
    add(other.value);
    error += other.error;
  }
  void subtract(const CompensatedSum& other) {
    add(-other.value);
    error -= other.error;
  }
  double total() const { return value + error; }
};

struct PlainSum {
  double value = 0.0;

  void add(double term) { value += term; }
  void add(const PlainSum& other) { value += other.value; }
  void subtract(const PlainSum& other) { value -= other.value; }
  double total() const { return value; }
};

// Sums of `columns` numbers over the samples of the lowest levels.
template <class Sum> class FenwickTree {
 public:
  explicit FenwickTree(std::int64_t columns) : columns_(columns) {}

  void clear(std::int32_t levels) {
    levels_ = levels;
    nodes_.assign(static_cast<std::size_t>(levels) * columns_, Sum());
  }
  void insert(std::int32_t level, const double* values) {
    for (std::int32_t k = level + 1; k <= levels_; k += k & -k) {
      Sum* node = nodes_.data() + (k - 1) * columns_;
      for (std::int64_t c = 0; c < columns_; ++c) node[c].add(values[c]);
    }
  }
  // Add the sums over all levels below `level` to `sums`, or subtract them.
  void sum_below(std::int32_t level, Sum* sums, bool subtract) const {
    for (std::int32_t k = level; k > 0; k -= k & -k) {
      const Sum* node = nodes_.data() + (k - 1) * columns_;
      for (std::int64_t c = 0; c < columns_; ++c) subtract ? sums[c].subtract(node[c]) : sums[c].add(node[c]);
    }
  }

 private:
  std::int64_t columns_;
  std::int32_t levels_ = 0;
  std::vector<Sum> nodes_;
};

// The sums over partners: of a sample as the first of its pairs those of lower levels, as the second those of higher
// levels. `inner` are the pairs whose scores differ by less than `low`, `window` those by `low` to less than `high`.
struct PartnerSums {
  double *inner, *window;  // of shape (samples, columns); inner may be null
};

template <class Sum>
void sum_partners(const RankedSamples& samples, const double* values, std::int64_t columns, double low, double high,
                  bool as_first, PartnerSums out) {
  FenwickTree<Sum> narrow(columns), wide(columns);
  std::vector<Sum> sums(columns);
  for (std::int64_t query = 0; query < samples.queries; ++query) {
    const std::int64_t begin = samples.starts[query], size = samples.starts[query + 1] - begin;
    const std::int32_t levels = samples.levels(query);
    narrow.clear(levels);
    wide.clear(levels);
    // As the first of a pair, samples are visited from the highest score down and partners enter from the top, as the
    // second from the lowest up: either way the difference of a partner's pair only falls, so it never leaves.
    const auto sample_at = [&](std::int64_t k) { return samples.order[begin + (as_first ? size - 1 - k : k)]; };
    const auto rank = [&](std::int64_t sample) {
      return as_first ? samples.level[sample] : levels - 1 - samples.level[sample];
    };
    const auto difference = [&](std::int64_t own, std::int64_t partner) {
      return as_first ? samples.scores[own] - samples.scores[partner] : samples.scores[partner] - samples.scores[own];
    };
    std::int64_t in_narrow = 0, in_wide = 0;
    for (std::int64_t k = 0; k < size; ++k) {
      const std::int64_t own = sample_at(k);
      for (; in_narrow < size && difference(own, sample_at(in_narrow)) < low; ++in_narrow)
        narrow.insert(rank(sample_at(in_narrow)), values + sample_at(in_narrow) * columns);
      for (; in_wide < size && difference(own, sample_at(in_wide)) < high; ++in_wide)
        wide.insert(rank(sample_at(in_wide)), values + sample_at(in_wide) * columns);
      std::fill(sums.begin(), sums.end(), Sum());
      narrow.sum_below(rank(own), sums.data(), false);
      if (out.inner)
        for (std::int64_t c = 0; c < columns; ++c) out.inner[own * columns + c] = sums[c].total();
      for (Sum& sum : sums) {
        Sum negative;
        negative.subtract(sum);
        sum = negative;
      }
      wide.sum_below(rank(own), sums.data(), false);
      for (std::int64_t c = 0; c < columns; ++c) out.window[own * columns + c] = sums[c].total();
    }
  }
}

// The largest value over the lowest levels.
class FenwickMaximum {
 public:
  void clear(std::int32_t levels) {
    nodes_.assign(static_cast<std::size_t>(levels), -std::numeric_limits<double>::infinity());
  }
  void insert(std::int32_t level, double value) {
    for (std::size_t k = level + 1; k <= nodes_.size(); k += k & -k) nodes_[k - 1] = std::max(nodes_[k - 1], value);
  }
  double below(std::int32_t level) const {
    double most = -std::numeric_limits<double>::infinity();
    for (std::int32_t k = level; k > 0; k -= k & -k) most = std::max(most, nodes_[k - 1]);
    return most;
  }

 private:
  std::vector<double> nodes_;
};

struct PairExtremes {
  double least_lead, most_lead;
};

// Of the pairs whose `scores` differ by at least `low`, the least difference of `values`; of those whose scores differ
// by less than `high`, the largest. Infinite if there are none.
inline PairExtremes extremes_of_pairs(const RankedSamples& samples, const double* values, double low, double high) {
  const double infinity = std::numeric_limits<double>::infinity();
  PairExtremes found{infinity, -infinity};
  FenwickMaximum far, near;
  for (std::int64_t query = 0; query < samples.queries; ++query) {
    const std::int64_t begin = samples.starts[query], size = samples.starts[query + 1] - begin;
    const std::int64_t* order = samples.order + begin;
    far.clear(samples.levels(query));
    near.clear(samples.levels(query));
    std::int64_t entered = 0;
    for (std::int64_t k = 0; k < size; ++k) {
      const std::int64_t own = order[k];
      for (; entered < size && samples.scores[own] - samples.scores[order[entered]] >= low; ++entered)
        far.insert(samples.level[order[entered]], values[order[entered]]);
      found.least_lead = std::min(found.least_lead, values[own] - far.below(samples.level[own]));
    }
    entered = 0;
    for (std::int64_t k = size - 1; k >= 0; --k) {
      const std::int64_t own = order[k];
      for (; entered < size && samples.scores[own] - samples.scores[order[size - 1 - entered]] < high; ++entered)
        near.insert(samples.level[order[size - 1 - entered]], -values[order[size - 1 - entered]]);
      found.most_lead = std::max(found.most_lead, values[own] + near.below(samples.level[own]));
    }
  }
  return found;
}

}  // namespace maxmargin
