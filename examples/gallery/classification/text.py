"""
Words that decide: a linear model of documents
==============================================

Word counts of documents on two topics: thousands of sparse features and few samples per feature, where a linear model
is enough. ``penalty="l1"`` keeps a few words only.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from maxmargin import LinearSVC
from maxmargin.datasets import documents

X, y = documents(1000, seed=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
dense = LinearSVC(C=0.01).fit(X_train, y_train)
sparse = LinearSVC(C=0.1, penalty="l1").fit(X_train, y_train)

figure, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
for name, model, colour in (("l2", dense, "#0072B2"), ("l1", sparse, "#D55E00")):
    size = np.sort(np.abs(model.coef_[0]))[::-1]
    label = f"penalty {name}: {np.count_nonzero(size):,} words, {model.score(X_test, y_test):.1%} of new documents"
    ax.loglog(np.arange(1, len(size) + 1), np.where(size > 0, size, np.nan), color=colour, linewidth=2.2, label=label)
ax.set(xlabel="words by weight", ylabel="|weight|", ylim=(1e-4, 1))
ax.set_title(f"{X.shape[1]:,} words, {X_train.shape[0]} documents")
ax.legend()
