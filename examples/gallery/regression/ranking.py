"""
Ranking within queries
======================

Documents of several queries with relevance grades. Grades of different queries are not comparable; only the order
within a query is learned.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import LinearSVR, RankSVC

random = np.random.default_rng(0)
X = random.normal(size=(240, 2))
query = np.arange(240) % 12
relevance = X @ [1.0, 2.0] + random.normal(scale=0.3, size=240)
grades = np.digitize(relevance, [-2, 0, 2]) + 5 * query  # each query has grades of its own
train = query < 6
ranker = RankSVC(kernel="linear").fit(X[train], grades[train], query[train])
regression = LinearSVR().fit(X[train], grades[train])

figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
for name, score, ax in (
    ("RankSVC", ranker.predict(X), axes[0]),
    ("a regression of the grades", regression.predict(X), axes[1]),
):
    for one in range(6, 12):
        of_query = query == one
        ax.scatter(score[of_query], grades[of_query] - 5 * one + 0.08 * (one - 8), s=14)
    ax.set(xlabel="predicted score", ylabel="grade within the query", title=name)
print(f"pairs of new queries in order: {ranker.score(X[~train], grades[~train], query[~train]):.0%}")
