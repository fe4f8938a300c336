"""
Which samples to label
======================

Labels cost money. Querying the samples closest to the boundary reaches the same accuracy with a fraction of the labels
of random queries.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from maxmargin import SVC, ActiveLearner

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = X[:1200] / 16, X[1200:] / 16, y[:1200], y[1200:]
labels = list(range(20, 221, 20))
figure, ax = plt.subplots(figsize=(8, 4.8), layout="constrained")
for strategy, colour in (("random", "#D55E00"), ("margin", "#0072B2")):
    learner = ActiveLearner(SVC(C=10, gamma=0.1, multi_class="ovr"), strategy, n_random=20, random_state=0).set_pool(X)
    accuracy = []
    for n_labels in labels:
        learner.run(label=y, n_labels=n_labels - learner.n_labels_, batch=10)
        accuracy.append(learner.estimator_.score(X_test, y_test))
    ax.plot(labels, accuracy, "-o", color=colour, label=strategy)
ax.set(xlabel="labels", ylabel="accuracy on new digits", title="Queries at random and by margin")
ax.legend()
